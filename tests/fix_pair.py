"""Two sessions in virtual time with memory for a journal, joined by a pipe that tests may break."""

from dataclasses import dataclass, field, replace

from fix_peer import CLIENT, VENUE
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.driver import SessionDriver
from htfi.execution.fix.events import (
    Action,
    Connected,
    ConnectionPhase,
    Disconnected,
    Event,
    Received,
    SendMessage,
    SendRequested,
    SessionState,
    Tick,
)
from htfi.execution.fix.framing import split_frames
from htfi.execution.fix.messages import FixMessage, decode

START_NS = 1_700_000_000 * NS_PER_S


class MemoryJournal:
    """A session's journal in memory."""

    def __init__(self, next_out: int = 1, next_in: int = 1) -> None:
        self.next_out, self.next_in = next_out, next_in
        self._sent: dict[int, bytes] = {}

    def add_sent(self, number: int, frame: bytes) -> None:
        self.next_out = number + 1
        if frame:
            self._sent[number] = frame

    def add_received(self, number: int, frame: bytes) -> None:
        del frame
        self.next_in = number + 1

    def add_expected(self, number: int) -> None:
        self.next_in = number

    def sent(self, number: int) -> bytes | None:
        return self._sent.get(number)

    def flush(self) -> None:
        pass

    def reset(self) -> None:
        self._sent.clear()
        self.next_out = self.next_in = 1


class End:
    """One side: what is written down survives `kill`, all else does not."""

    def __init__(self, settings: FixSession, next_out: int = 1, next_in: int = 1) -> None:
        self.journal = MemoryJournal(next_out, next_in)
        self.driver = SessionDriver(settings, self.journal)
        self.delivered: list[FixMessage] = []
        self.outbox = b""
        self.refusals: list[str] = []
        self.ends: list[str] = []
        self.num_logons = 0
        self.is_connected = False
        self._rest = b""

    @property
    def settings(self) -> FixSession:
        return self.driver.settings

    @property
    def dictionary(self) -> Dictionary:
        return self.driver.dictionary

    @property
    def state(self) -> SessionState:
        return self.driver.state

    def handle(self, event: Event) -> list[Action]:
        actions = self.driver.perform(event)
        self.outbox += self.driver.take_outgoing()
        for delivery in self.driver.take_deliveries():
            if isinstance(delivery, FixMessage):
                self.delivered.append(delivery)
            else:
                self.num_logons += 1
        refusal = self.driver.take_refusal()
        if refusal is not None:
            self.refusals.append(refusal.why)
        if self.driver.closing:
            self.ends.append(self.driver.closing)
            self.driver.closing = ""
            self.is_connected = False
        return actions

    def receive(self, data: bytes, at_ns: int) -> None:
        frames, self._rest = split_frames(self._rest + data, self.settings.max_body_bytes)
        for frame in frames:
            if self.is_connected:
                self.handle(Received(at_ns, frame))

    def connect(self, at_ns: int) -> None:
        self.is_connected, self._rest, self.outbox = True, b"", b""
        self.handle(Connected(at_ns))

    def lose(self, at_ns: int) -> None:
        self.is_connected, self.outbox = False, b""
        self.handle(Disconnected(at_ns))

    def kill(self) -> None:
        """The process ends at once: the numbers of its journal remain."""
        self.is_connected, self.outbox = False, b""
        self.driver = SessionDriver(self.settings, self.journal)

    def take(self) -> bytes:
        data, self.outbox = self.outbox, b""
        return data

    def frames(self) -> list[FixMessage]:
        """What it has sent since, as messages."""
        frames, rest = split_frames(self.take(), 2**20)
        assert rest == b""
        messages = [decode(frame, self.dictionary) for frame in frames]
        assert all(isinstance(message, FixMessage) for message in messages)
        return [message for message in messages if isinstance(message, FixMessage)]


@dataclass
class Pair:
    """A client and a venue, and what is on its way between them."""

    client: End = field(default_factory=lambda: End(CLIENT))
    venue: End = field(default_factory=lambda: End(VENUE))
    now_ns: int = START_NS
    to_venue: bytes = b""
    to_client: bytes = b""

    @classmethod
    def of(cls, version: str = "FIX.4.4", **changes: object) -> "Pair":
        return cls(
            End(replace(CLIENT, version=version, **changes)), End(replace(VENUE, version=version, **changes))
        )

    def connect(self) -> None:
        self.to_venue = self.to_client = b""
        for end in (self.venue, self.client):
            end.connect(self.now_ns)

    def break_off(self) -> None:
        for end in (self.venue, self.client):
            end.lose(self.now_ns)
        self.to_venue = self.to_client = b""

    def pump(self, num_bytes: int | None = None) -> bool:
        """Moves what is on its way, at most so many bytes each way; whether there was any."""
        self.to_venue += self.client.take()
        self.to_client += self.venue.take()
        there, self.to_venue = self.to_venue[:num_bytes], self.to_venue[len(self.to_venue[:num_bytes]) :]
        back, self.to_client = self.to_client[:num_bytes], self.to_client[len(self.to_client[:num_bytes]) :]
        if there:
            self.venue.receive(there, self.now_ns)
        if back:
            self.client.receive(back, self.now_ns)
        if not (self.venue.is_connected and self.client.is_connected):
            self.break_off()
        return bool(there or back)

    def settle(self) -> None:
        """Until nothing is on its way."""
        for _ in range(10_000):
            if not self.pump():
                return
        raise AssertionError("the sessions never stop sending")

    def tick(self, milliseconds: int) -> None:
        self.now_ns += milliseconds * NS_PER_MS
        for end in (self.client, self.venue):
            end.handle(Tick(self.now_ns))

    def log_on(self) -> "Pair":
        self.connect()
        self.settle()
        assert self.client.state.phase is self.venue.state.phase is ConnectionPhase.LOGGED_ON
        return self

    def send(self, end: End, cl_ord_id: str) -> bool:
        """Whether an order of this id was sent."""
        from fix_peer import order_fields

        actions = end.handle(SendRequested(self.now_ns, "D", order_fields(cl_ord_id)))
        return any(isinstance(action, SendMessage) for action in actions)
