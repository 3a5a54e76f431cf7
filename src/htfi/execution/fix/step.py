"""One event's work on a session: a copy of its state, the actions so far, and what a session can do."""

from htfi.domain.time import NS_PER_S
from htfi.execution.fix.checking import REASON_TEXTS, MessageFault
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import SESSION_TYPES, Dictionary
from htfi.execution.fix.events import (
    Action,
    ConnectionPhase,
    Disconnect,
    ExpectNext,
    ResetNumbers,
    SendMessage,
    SessionState,
)
from htfi.execution.fix.messages import Fields, FixMessage, encode
from htfi.execution.fix.timestamps import format_timestamp

_REVERSED = ((115, 128), (116, 129), (128, 115), (129, 116), (144, 145), (145, 144))  # routing of a Reject


class SessionStep:
    """Sends, counts and enters phases; `session` decides what of it an event asks for."""

    def __init__(self, settings: FixSession, dictionary: Dictionary, state: SessionState, at_ns: int) -> None:
        self.settings = settings
        self.dictionary = dictionary
        self.at_ns = at_ns
        self.actions: list[Action] = []
        self.next_out: int = state.next_out
        self.next_in: int = state.next_in
        self.phase = state.phase
        self.heartbeat_ns = state.heartbeat_ns
        self.phase_since_ns: int = state.phase_since_ns
        self.last_sent_ns = state.last_sent_ns
        self.last_received_ns = state.last_received_ns
        self.num_tests = state.num_tests
        self.gap_end = state.gap_end
        self.gap_since_ns: int = state.gap_since_ns
        self.num_gap_requests = state.num_gap_requests
        self.waiting = state.waiting
        self.has_sent_reset = state.has_sent_reset

    def state(self) -> SessionState:
        if self.gap_end and self.next_in > self.gap_end:
            self.gap_end = self.num_gap_requests = 0
        return SessionState(
            self.next_out, self.next_in, self.phase, self.heartbeat_ns, self.phase_since_ns, self.last_sent_ns,
            self.last_received_ns, self.num_tests, self.gap_end, self.gap_since_ns, self.num_gap_requests,
            self.waiting, self.has_sent_reset,
        )  # fmt: skip

    def send(self, kind: str, body: Fields, extra: Fields = ()) -> None:
        settings = self.settings
        header: list[tuple[int, str]] = [
            (34, str(self.next_out)), (49, settings.sender), (52, format_timestamp(self.at_ns)),
            (56, settings.target), *extra,
        ]  # fmt: skip
        frame = encode(settings.begin_string, kind, sorted(header) if extra else header, body)
        self.actions.append(SendMessage(self.next_out, frame, kind not in SESSION_TYPES))
        self.next_out += 1
        self.last_sent_ns = self.at_ns

    def log_out(self, text: str) -> None:
        self.send("5", [(58, text)] if text else [])
        self.enter(ConnectionPhase.LOGOUT_SENT)

    def disconnect(self, why: str) -> None:
        self.actions.append(Disconnect(why))
        self.enter(ConnectionPhase.DISCONNECTED)

    def expect(self, number: int) -> None:
        self.next_in = number
        self.actions.append(ExpectNext(number))

    def enter(self, phase: ConnectionPhase) -> None:
        self.phase = phase
        self.phase_since_ns = self.at_ns

    def reset_numbers(self) -> None:
        self.next_in = self.next_out = 1
        self.gap_end = self.num_gap_requests = 0
        self.waiting = ()
        self.actions.append(ResetNumbers())

    def send_logon(self, *, with_reset: bool) -> None:
        settings = self.settings
        fields = [(98, "0"), (108, str(self.heartbeat_ns // NS_PER_S))]
        if with_reset:
            fields.append((141, "Y"))
        if settings.is_test:
            fields.append((464, "Y"))
        if settings.initiator and settings.username:
            fields += [(553, settings.username), (554, settings.password)]
        if settings.application_version:
            fields.append((1137, settings.application_version))
        self.send("A", fields)

    def request_resend(self) -> None:
        self.num_gap_requests += 1
        self.gap_since_ns = self.at_ns
        self.send("2", [(7, str(self.next_in)), (16, "0")])

    def reject(self, message: FixMessage, fault: MessageFault) -> None:
        """Reject (35=3). It counts the message, unless that is a SequenceReset or came out of its turn."""
        body = [(45, str(message.sequence or 0)), (58, fault.text or REASON_TEXTS[fault.reason])]
        if fault.tag is not None:
            body.append((371, str(fault.tag)))
        body += [(372, message.msg_type), (373, str(fault.reason.value))]
        route = sorted((to, message.get(tag)) for tag, to in _REVERSED if message.get(tag))
        safe = [(tag, value) for tag, value in route if value.isascii() and value.isprintable()]
        if not (message.msg_type.isascii() and message.msg_type.isprintable() and message.msg_type):
            body = [field for field in body if field[0] != 372]
        self.send("3", body, safe)
        if message.sequence == self.next_in and message.msg_type != "4":
            self.expect(self.next_in + 1)

    def is_over(self) -> bool:
        return self.phase is ConnectionPhase.DISCONNECTED
