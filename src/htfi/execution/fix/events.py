"""What happens to a FIX session, and what it asks of its shell."""

from enum import StrEnum

import msgspec

from htfi.execution.fix.messages import Fields, FixMessage


class ConnectionPhase(StrEnum):
    """Where a session stands."""

    DISCONNECTED = "disconnected"
    LOGON_AWAITED = "logon_awaited"  # connected as acceptor, or as initiator that has sent its Logon
    LOGGED_ON = "logged_on"
    LOGOUT_SENT = "logout_sent"


class SessionState(msgspec.Struct, frozen=True):
    """A session at one instant. `next_out` and `next_in` outlive connections; times are UTC nanoseconds."""

    next_out: int = 1
    next_in: int = 1
    phase: ConnectionPhase = ConnectionPhase.DISCONNECTED
    heartbeat_ns: int = 0
    phase_since_ns: int = 0
    last_sent_ns: int = 0
    last_received_ns: int = 0
    num_tests: int = 0  # TestRequests without an answer
    gap_end: int = 0  # the highest number that a ResendRequest of ours waits for; 0: no gap
    gap_since_ns: int = 0
    num_gap_requests: int = 0
    waiting: tuple[FixMessage, ...] = ()  # came before others that are missing, by number
    has_sent_reset: bool = False


class Connected(msgspec.Struct, frozen=True):
    """The connection stands. An initiator logs on."""

    at_ns: int


class Disconnected(msgspec.Struct, frozen=True):
    at_ns: int


class Received(msgspec.Struct, frozen=True):
    """A frame of `split_frames`."""

    at_ns: int
    frame: bytes


class Tick(msgspec.Struct, frozen=True):
    """Time has passed: no later than `next_deadline_ns` of the state."""

    at_ns: int


class ClockStepped(msgspec.Struct, frozen=True):
    """The wall clock was set by `by_ns`: what the session measures intervals from moves with it."""

    at_ns: int
    by_ns: int


class SendRequested(msgspec.Struct, frozen=True):
    """The application has a message; `header` may hold PossResend (97) and routing fields."""

    at_ns: int
    msg_type: str
    body: Fields
    header: Fields = ()


class LogoutRequested(msgspec.Struct, frozen=True):
    at_ns: int
    text: str = ""


Event = Connected | Disconnected | Received | Tick | ClockStepped | SendRequested | LogoutRequested


class SendMessage(msgspec.Struct, frozen=True):
    """Write down, then send. Session messages are stored as numbers alone: they are never sent again."""

    sequence: int
    frame: bytes
    is_application: bool


class Resend(msgspec.Struct, frozen=True):
    """Send the stored messages of these numbers again, by `resend_frames`."""

    begin: int
    end: int


class Deliver(msgspec.Struct, frozen=True):
    """Write down, then give to the application: a message of its own, or a Reject (35=3)."""

    sequence: int
    message: FixMessage


class ExpectNext(msgspec.Struct, frozen=True):
    """Write down the next number that is expected, where no message was delivered."""

    sequence: int


class ResetNumbers(msgspec.Struct, frozen=True):
    """Both sequences begin at 1: what was stored is not sent again."""


class LoggedOn(msgspec.Struct, frozen=True):
    """The application may send."""


class Disconnect(msgspec.Struct, frozen=True):
    why: str


class NotSent(msgspec.Struct, frozen=True):
    """A message of the application was refused, since the session is not logged on. It has no number."""

    msg_type: str
    why: str


class Note(msgspec.Struct, frozen=True):
    """For the log."""

    text: str


Action = (
    SendMessage | Resend | Deliver | ExpectNext | ResetNumbers | LoggedOn | Disconnect | NotSent | Note
)  # fmt: skip
