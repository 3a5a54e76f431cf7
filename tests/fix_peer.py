"""Two ends of FIX sessions for tests: settings of each, an application that answers orders, sessions on sockets."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from htfi.adapters.fix.connections import Acceptor
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.messages import FixMessage

VENUE = FixSession("VENUE", "HTFI", initiator=False)
CLIENT = FixSession("HTFI", "VENUE")


def order_fields(cl_ord_id: str, symbol: str = "IBM") -> list[tuple[int, str]]:
    """A limit order of 100 lots."""
    return [
        (11, cl_ord_id), (55, symbol), (54, "1"), (60, "20231114-22:13:20.000"), (38, "100"), (40, "2"), (44, "101.25"),
    ]  # fmt: skip


def report_fields(order: FixMessage, number: int) -> list[tuple[int, str]]:
    """ExecutionReport (35=8): the order is new."""
    return [
        (37, f"V{number}"), (11, order.get(11)), (17, f"E{number}"), (150, "0"), (39, "0"), (55, order.get(55)),
        (54, order.get(54)), (38, order.get(38)), (151, order.get(38)), (14, "0"), (6, "0"),
        (60, "20231114-22:13:20.000"),
    ]  # fmt: skip


@dataclass
class Recorder:
    """Keeps what a session brings; answers each order with a report where it `answers`."""

    answers: bool = False
    messages: list[FixMessage] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    num_logons: int = 0
    then: Callable[[SessionRunner], None] | None = None

    def on_logon(self, runner: SessionRunner) -> None:
        self.num_logons += 1
        if self.then is not None:
            self.then(runner)

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        self.messages.append(message)
        if self.answers and message.msg_type == "D":
            runner.send("8", report_fields(message, len(self.messages)))

    def on_disconnect(self, runner: SessionRunner, why: str) -> None:
        self.ends.append(why)


async def until(is_so: Callable[[], bool], what: str, patience_s: float = 20.0) -> None:
    """Waits for a condition. Raises AssertionError, which says for what."""
    for _ in range(int(patience_s / 0.002)):
        if is_so():
            return
        await asyncio.sleep(0.002)
    raise AssertionError(f"waited in vain for {what}")


def runner_of(
    folder: Path, settings: FixSession, application: Recorder, *, sync: bool = False
) -> SessionRunner:
    return SessionRunner(settings, MessageJournal(folder / settings.sender, sync=sync), application)


async def listen(runner: SessionRunner) -> tuple[Acceptor, int]:
    acceptor = Acceptor([runner])
    return acceptor, await acceptor.listen("127.0.0.1", 0)
