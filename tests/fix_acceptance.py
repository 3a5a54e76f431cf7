"""Reads QuickFIX's acceptance definitions and runs them against the session in virtual time.

Grammar of a line: `I`/`E` and a message is sent by the tester, or expected; `i`/`e` with CONNECT or DISCONNECT; a digit
and a comma after the letter name the connection. `<TIME±n>` is the time; lengths and checksums are added where missing.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fix_pair import MemoryJournal
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.driver import SessionDriver
from htfi.execution.fix.events import (
    Connected,
    ConnectionPhase,
    Disconnected,
    Event,
    Received,
    SendRequested,
    SessionState,
    Tick,
)
from htfi.execution.fix.framing import split_frames
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.routing import SessionKey, session_key_of
from htfi.execution.fix.timestamps import format_timestamp

SOH = "\x01"
START_NS = 1_700_000_000 * NS_PER_S
TICK_NS = 100 * NS_PER_MS
MAX_WAIT_NS = 60 * NS_PER_S
PATTERNS = {
    10: re.compile(r"\d{3}"),
    42: re.compile(r"\d{8}-\d{2}:\d{2}:\d{2}"),
    52: re.compile(r"\d{8}-\d{2}:\d{2}:\d{2}([.]\d{3})?"),
    60: re.compile(r"\d{8}-\d{2}:\d{2}:\d{2}"),
    122: re.compile(r"\d{8}-\d{2}:\d{2}:\d{2}([.]\d{3})?"),
}


@dataclass(frozen=True)
class Line:
    """One line: what (`I`, `E`, `i` or `e`), on which connection, with what text."""

    number: int
    what: str
    connection: int
    text: str


def read_definition(path: Path) -> list[Line]:
    """The lines of a definition, without comments."""
    lines: list[Line] = []
    for number, text in enumerate(path.read_text("latin-1").split("\n"), 1):
        text = text.strip("\r\n ")
        found = re.match(r"([IEie])(?:(\d),)?(.+)", text, re.DOTALL)
        if found:
            lines.append(Line(number, found[1], int(found[2] or 1), found[3]))
        else:
            assert not text or text.startswith("#"), f"{path.name}:{number}: {text!r}"
    return lines


def message_of(text: str, now_ns: int) -> bytes:
    """A line's message, with the time, and with length and checksum where it has none."""

    def time_of(found: re.Match[str]) -> str:
        return format_timestamp(now_ns + int(found[1] or 0) * NS_PER_S)[:-4]

    text = re.sub(r"<TIME([+-]\d+)?>", time_of, text)
    if not text.startswith("8="):
        return text.encode("latin-1")
    head, _, rest = text.partition(SOH)
    checksum = re.search(r"\x01(10=[^\x01]*\x01)$", rest)
    if checksum:
        rest = rest[: checksum.start() + 1]
    length = "" if rest.startswith("9=") or f"{SOH}9=" in rest else f"9={len(rest)}{SOH}"
    text = head + SOH + length + rest
    return (text + (checksum[1] if checksum else f"10={sum(text.encode('latin-1')) % 256:03d}{SOH}")).encode(
        "latin-1"
    )


def difference(expected: str, frame: bytes) -> str:
    """How a frame differs from what a line expects; empty: it does not."""
    left, right = expected.split(SOH), frame.decode("latin-1").split(SOH)
    if not any(part.startswith("10=") for part in left):  # the reader would add it
        right = [part for part in right if not part.startswith("10=")]
    if not any(part.startswith("9=") for part in left):
        right = [part for part in right if not part.startswith("9=")]
    if len(left) != len(right):
        return f"expected {left}, was {right}"
    for one, other in zip(left, right, strict=True):
        tag, _, value = one.partition("=")
        other_tag, _, other_value = other.partition("=")
        pattern = PATTERNS.get(int(tag or 0))
        if tag != other_tag or not (pattern.match(other_value) if pattern else value == other_value):
            return f"expected {one!r}, was {other!r} in {right}"
    return ""


class EchoApplication:
    """Sends orders and security definitions back, their fields by tag, as QuickFIX's test application does."""

    def __init__(self) -> None:
        self._order_ids: set[str] = set()

    def receive(
        self, message: FixMessage, dictionary: Dictionary
    ) -> list[tuple[str, list[tuple[int, str]], list[tuple[int, str]]]]:
        """Answers: type, body, header."""
        kind = message.msg_type
        if kind == "3":
            return []
        if kind not in ("D", "d"):
            body = [(45, message.get(34)), (58, "Unsupported Message Type"), (372, kind), (380, "3")]
            return [("j", body, [])]
        if kind == "D":
            if message.get(97) == "Y" and message.get(11) in self._order_ids:
                return []
            self._order_ids.add(message.get(11))
        header = [(97, "Y")] if message.get(97) == "Y" else []
        body = sorted(
            (item for item in message.fields if item[0] not in dictionary.header_tags and item[0] != 10),
            key=lambda item: item[0],
        )
        return [(kind, body, header)]


@dataclass
class Connection:
    """The tester's side of a connection."""

    data: bytes = b""
    sent: list[bytes] = field(default_factory=list)
    is_open: bool = True
    session: "Session | None" = None


class Session:
    """The shell of one session, in virtual time and memory."""

    def __init__(self, settings: FixSession) -> None:
        self.settings = settings
        self.driver = SessionDriver(settings, MemoryJournal())
        self.connection: Connection | None = None
        self.application = EchoApplication()
        self.notes: list[str] = []

    @property
    def state(self) -> SessionState:
        return self.driver.state

    def handle(self, event: Event) -> None:
        self.driver.perform(event)
        self._send()
        while deliveries := self.driver.take_deliveries():
            for message in deliveries:
                if isinstance(message, FixMessage):
                    for kind, body, header in self.application.receive(message, self.driver.dictionary):
                        self.driver.perform(SendRequested(event.at_ns, kind, body, header))
            self._send()
        if self.driver.closing:
            self.notes.append(self.driver.closing)
            self.driver.closing = ""
            if self.connection is not None:
                self.connection.is_open = False
            self.connection = None
            self.application = EchoApplication()

    def _send(self) -> None:
        frames, _ = split_frames(self.driver.take_outgoing(), 2**20)
        if self.connection is not None:
            self.connection.sent += frames


class Acceptor:
    """Gives connections to sessions by their first frame."""

    def __init__(self, sessions: list[Session]) -> None:
        self.sessions = {
            SessionKey(one.settings.begin_string, one.settings.sender, one.settings.target): one
            for one in sessions
        }

    def receive(self, connection: Connection, data: bytes, now_ns: int) -> None:
        frames, connection.data = split_frames(connection.data + data, 2**20)
        for frame in frames:
            if not connection.is_open:
                return
            if connection.session is None:
                key = session_key_of(frame)
                session = self.sessions.get(key) if key else None
                if session is None or session.connection is not None:
                    connection.is_open = False
                    return
                connection.session, session.connection = session, connection
                session.handle(Connected(now_ns))
            connection.session.handle(Received(now_ns, frame))


def run_definition(
    lines: list[Line],
    acceptor: Acceptor,
    tolerate: Callable[[Line, bytes], str] = lambda line, frame: difference(line.text, frame),
) -> int:
    """Runs the lines; the number of messages that were as expected. Raises AssertionError where one is not."""
    now_ns = START_NS
    connections: dict[int, Connection] = {}
    num_expected = 0

    def waits(is_done: Callable[[], bool]) -> Iterator[None]:
        nonlocal now_ns
        deadline = now_ns + MAX_WAIT_NS
        while not is_done() and now_ns < deadline:
            now_ns += TICK_NS
            for session in acceptor.sessions.values():
                session.handle(Tick(now_ns))
            yield

    for line in lines:
        if line.what == "i" and line.text == "CONNECT":
            connections[line.connection] = Connection()
            continue
        connection = connections[line.connection]
        if line.what == "i":
            assert line.text == "DISCONNECT"
            connection.is_open = False
            if connection.session is not None:
                connection.session.connection = None
                connection.session.handle(Disconnected(now_ns))
        elif line.what == "I":
            acceptor.receive(connection, message_of(line.text, now_ns), now_ns)
        elif line.what == "E":
            for _ in waits(lambda c=connection: bool(c.sent)):
                pass
            assert connection.sent, f"line {line.number}: nothing came, expected {line.text!r}"
            wrong = tolerate(line, connection.sent.pop(0))
            assert not wrong, f"line {line.number}: {wrong}"
            num_expected += 1
        else:
            assert line.text == "DISCONNECT"
            for _ in waits(lambda c=connection: not c.is_open):
                pass
            assert not connection.is_open, f"line {line.number}: still connected"
            late = [frame for frame in connection.sent if b"\x0135=0\x01" not in frame]
            assert not late, f"line {line.number}: sent before the end: {late}"
            assert (
                connection.session is None or connection.session.state.phase is ConnectionPhase.DISCONNECTED
            )
    return num_expected
