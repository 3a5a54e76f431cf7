"""The run that a caller asks about: its record as it is read, and the process that works things out on it."""

from pathlib import Path

from starlette.requests import HTTPConnection

from htfi.apps.service.answer_turns import AnswerTurns
from htfi.apps.service.callers import caller_of
from htfi.apps.service.live_record import LiveRecord
from htfi.apps.service.problems import NotFound
from htfi.apps.service.worker import AnswerProcess


class ServedRun:
    """One run's folder, while the service is up."""

    def __init__(self, folder: Path, tenant: str = "", turns: AnswerTurns | None = None) -> None:
        self.folder = folder
        self.record = LiveRecord(folder)
        self.worker = AnswerProcess(folder, tenant, turns)

    def open(self) -> None:
        """In the running event loop. Raises: as `LiveRecord.open`."""
        self.record.open()

    async def close(self) -> None:
        await self.record.close()
        await self.worker.close()


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
