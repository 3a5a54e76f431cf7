"""The run that a caller asks about: its record as it is read, and the process that works things out on it."""

import click
from starlette.requests import HTTPConnection

from htfi.apps.service.bounded_threads import BoundedThreads
from htfi.apps.service.callers import caller_of
from htfi.domain.errors import NotFound
from htfi.library.serving.answer_turns import AnswerTurns
from htfi.library.serving.run import ReadableRun
from htfi.wiring.service.answered_requests import AnsweredRequests
from htfi.wiring.service.live_record import LiveRecord
from htfi.wiring.service.nodes import NodesReader
from htfi.wiring.service.run_process import RunPlace
from htfi.wiring.service.submitted_news import SubmittedNews
from htfi.wiring.trading import OrderBookReader

_NUM_READERS, _NUM_ACTING = 2, 4  # threads; an act waits up to 2 s for its run to record it
_MAX_WAITING = 64


class ServedRun(ReadableRun):
    """One run's folder, while the service is up, with what people ask of it."""

    def __init__(self, place: RunPlace, tenant: str = "", turns: AnswerTurns | None = None) -> None:
        folder = place.folder
        super().__init__(folder, tenant, turns, _report)
        self.governance = place.governance
        self.files = BoundedThreads("files", _NUM_READERS, _MAX_WAITING)
        self.acts = BoundedThreads("acts", _NUM_ACTING, _MAX_WAITING)
        self.answered = AnsweredRequests(folder)
        self.orders = OrderBookReader(folder)
        self.news = SubmittedNews(folder)
        self.nodes = NodesReader(folder)

    async def close(self) -> None:
        await super().close()
        self.files.close()
        self.acts.close()
        self.answered.close()


def _report(what: str) -> None:
    click.echo(f"htfi: {what}", err=True)


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
