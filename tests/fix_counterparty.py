"""A live venue for tests, on a thread: it acknowledges each order and fills it at its limit, unless told otherwise."""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from htfi.adapters.fix.connections import Acceptor
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.messages import FixMessage, decode
from htfi.execution.fix.order_codes import Composed

Answer = Callable[["Counterparty", FixMessage], list[Composed]]


def report(order: FixMessage, exec_id: str, exec_type: str, **more: str) -> Composed:
    """An ExecutionReport (35=8) on an order; `more` fields by f-number."""
    status = {"0": "0", "F": "2", "4": "4", "8": "8", "H": "0", "G": "1"}[exec_type]
    fields = {37: f"V-{order.get(41) or order.get(11)}", 11: order.get(11), 17: exec_id, 150: exec_type, 39: status,
              55: order.get(55), 54: order.get(54), 151: "0", 14: "0", 6: "0", 60: order.get(60)}  # fmt: skip
    return "8", list((fields | {int(tag[1:]): value for tag, value in more.items()}).items())


def no_mass_cancels(message: FixMessage) -> Composed:
    """A BusinessMessageReject (35=j) of an OrderMassCancelRequest: it is not supported."""
    return "j", [(45, str(message.sequence)), (372, "q"), (380, "3"), (58, "no mass cancels")]


def acknowledged(order: FixMessage, number: int) -> Composed:
    return report(order, f"A{number}", "0")


def filled(order: FixMessage, number: int) -> Composed:
    return report(order, f"E{number}", "F", f32=order.get(38), f31=order.get(44), f14=order.get(38))


def fill_all(venue: "Counterparty", message: FixMessage) -> list[Composed]:
    """Acknowledge and fill each order; refuse each cancel, since it comes too late."""
    number = message.sequence or 0
    if message.msg_type == "D":
        return [acknowledged(message, number), filled(message, number)]
    if message.msg_type == "q":
        return [no_mass_cancels(message)]
    return [too_late(venue, message)]


def too_late(venue: "Counterparty", message: FixMessage) -> Composed:
    known = message.get(41) in venue.orders
    body = [(37, "V"), (11, message.get(11)), (41, message.get(41)), (39, "2" if known else "8"), (434, "1")]
    return "9", body if known else [*body, (102, "1")]


def trade_some(venue: "Counterparty", message: FixMessage) -> list[Composed]:
    """Acknowledge each order; fill what takes by half and end the rest, let what rests stand until it is cancelled."""
    number = message.sequence or 0
    if message.msg_type != "D":
        return leave_open(venue, message)
    answers = [acknowledged(message, number)]
    if message.get(59) != "3":
        return answers
    half = (int(message.get(38)) + 1) // 2
    answers.append(report(message, f"E{number}", "F", f32=str(half), f31=message.get(44), f14=str(half)))
    if half < int(message.get(38)):
        answers.append(report(message, f"C{number}", "4"))
    return answers


def mass_cancelled(venue: "Counterparty", message: FixMessage) -> list[Composed]:
    """As `leave_open`, and it takes mass cancels: every order that it has not cancelled yet ends."""
    if message.msg_type != "q":
        if message.msg_type == "F":
            venue.gone.add(message.get(41))
        return leave_open(venue, message)
    symbol = message.get(55)
    ended = [
        one for name, one in venue.orders.items() if name not in venue.gone and symbol in ("", one.get(55))
    ]
    venue.gone |= {one.get(11) for one in ended}
    kind = message.get(530)
    answer = [(11, message.get(11)), (37, "V"), (530, kind), (531, kind), (533, str(len(ended)))]
    reports = [report(one, f"M{one.sequence}", "4") for one in ended]
    return [("r", answer), *reports]


def leave_open(venue: "Counterparty", message: FixMessage) -> list[Composed]:
    """Acknowledge each order, and cancel it when it is asked to."""
    number = message.sequence or 0
    if message.msg_type == "D":
        return [acknowledged(message, number)]
    if message.msg_type == "q":
        return [no_mass_cancels(message)]
    if message.get(41) not in venue.orders:
        return [too_late(venue, message)]
    return [report(message, f"C{number}", "4", f41=message.get(41))]


@dataclass
class Counterparty:
    """The application. `answer` gives what a request is answered with; it answers each once, whoever was killed."""

    answer: Answer
    orders: dict[str, FixMessage] = field(default_factory=dict)  # by ClOrdID
    requests: list[FixMessage] = field(default_factory=list)
    refused_by_client: list[FixMessage] = field(default_factory=list)
    runner: SessionRunner | None = None
    loop: asyncio.AbstractEventLoop | None = None
    unsent: list[Composed] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # ClOrdIDs of orders that were cancelled

    def on_logon(self, runner: SessionRunner) -> None:
        self.flush(runner)

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        if message.msg_type in ("3", "j"):
            self.refused_by_client.append(message)
            return
        self.requests.append(message)
        answers = self.answer(self, message)
        if message.msg_type == "D":
            self.orders[message.get(11)] = message
        self.unsent += answers
        self.flush(runner)

    def on_disconnect(self, runner: SessionRunner, why: str) -> None:
        del runner, why

    def flush(self, runner: SessionRunner) -> None:
        while self.unsent and runner.is_logged_on and not isinstance(runner.send(*self.unsent[0]), NotSent):
            self.unsent.pop(0)

    def send(self, *messages: Composed) -> None:
        """From the test's thread."""

        def send() -> None:
            self.unsent.extend(messages)
            assert self.runner is not None
            self.flush(self.runner)

        assert self.loop is not None
        self.loop.call_soon_threadsafe(send)

    def drop(self) -> None:
        """Break the connection off."""
        assert self.loop is not None
        assert self.runner is not None
        self.loop.call_soon_threadsafe(self._break)

    def _break(self) -> None:
        assert self.runner is not None
        transport = self.runner._transport
        if isinstance(transport, asyncio.Transport):
            transport.abort()

    def sent_fills(self) -> list[FixMessage]:
        """The fills that it has written down as sent."""
        assert self.runner is not None
        journal = self.runner.journal
        frames = [journal.sent(number) for number in range(1, journal.next_out)]
        messages = [decode(frame, self.runner.dictionary) for frame in frames if frame is not None]
        return [one for one in messages if isinstance(one, FixMessage) and one.get(150) == "F"]


@contextmanager
def counterparty(
    folder: Path, port: int, answer: Answer = fill_all, name: str = "XSIM"
) -> Generator[Counterparty]:
    """A venue that listens inside; its journal is in the folder."""
    settings = FixSession(name, "HTFI", initiator=False)
    venue = Counterparty(answer)
    journal = MessageJournal(folder / f"counterparty-{name}", sync=False)
    is_listening, is_over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        venue.loop = asyncio.get_running_loop()
        venue.runner = SessionRunner(settings, journal, venue)
        acceptor = Acceptor([venue.runner])
        await acceptor.listen("127.0.0.1", port)
        is_listening.set()
        await is_over.wait()
        await acceptor.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_listening.wait(20)
    try:
        yield venue
    finally:
        assert venue.loop is not None
        venue.loop.call_soon_threadsafe(is_over.set)
        thread.join(20)
        journal.close()
