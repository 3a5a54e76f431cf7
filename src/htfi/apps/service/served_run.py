"""The run that a caller asks about."""

from starlette.requests import HTTPConnection

from htfi.apps.service.callers import caller_of
from htfi.domain.errors import NotFound
from htfi.library.serving.run import ServedRun
from htfi.wiring.service.live_record import LiveRecord


def run_of(connection: HTTPConnection) -> ServedRun:
    """The run of the caller's tenant: there is no way to name another's. Raises: NotFound."""
    runs: dict[str, ServedRun] = connection.app.state.runs
    tenant = caller_of(connection).tenant
    if tenant not in runs:
        raise NotFound(f"no run of tenant {tenant!r} is served here")
    return runs[tenant]


def record_of(connection: HTTPConnection) -> LiveRecord:
    """The record of the caller's run. Raises: NotFound."""
    return run_of(connection).record
