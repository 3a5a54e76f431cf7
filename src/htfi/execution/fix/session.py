"""The FIX session as a pure machine: `advance(settings, dictionary, state, event) → (state, actions)`.

The shell performs the actions in order, and writes down before it sends. Rules are those of the FIX session layer;
where it leaves a choice, that of QuickFIX's acceptance definitions.
"""

import msgspec

from htfi.domain.time import NS_PER_S
from htfi.execution.fix.checking import REASON_TEXTS, MessageFault, RejectReason, check_message
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import SESSION_TYPES, Dictionary
from htfi.execution.fix.events import (
    Action,
    ClockStepped,
    Connected,
    ConnectionPhase,
    Deliver,
    Disconnected,
    Event,
    LoggedOn,
    LogoutRequested,
    Note,
    NotSent,
    Received,
    Resend,
    SendRequested,
    SessionState,
    Tick,
)
from htfi.execution.fix.logon import identity_problem, logon_problem
from htfi.execution.fix.messages import FixMessage, Garbled, decode
from htfi.execution.fix.step import SessionStep
from htfi.execution.fix.timestamps import parse_timestamp

_TEST_REQUEST_AT = 1.2  # heartbeats without a message until a TestRequest
_TIMED_OUT_AT = 2.4
_MAX_GAP_REQUESTS = 3


def advance(
    settings: FixSession, dictionary: Dictionary, state: SessionState, event: Event
) -> tuple[SessionState, list[Action]]:
    """The state after an event, and what to do, in order."""
    step = _Step(settings, dictionary, state, event.at_ns)
    match event:
        case Received(frame=frame):
            step.receive(frame)
        case SendRequested():
            step.send_application(event)
        case Tick():
            step.tick()
        case ClockStepped(by_ns=by_ns):
            step.step_clock(by_ns)
        case Connected():
            step.connect()
        case Disconnected():
            step.phase = ConnectionPhase.DISCONNECTED
        case LogoutRequested(text=text):
            if step.phase is ConnectionPhase.LOGGED_ON:
                step.log_out(text)
            elif step.phase is ConnectionPhase.LOGON_AWAITED:
                step.disconnect("logged out before the logon was complete")
    return step.state(), step.actions


def next_deadline_ns(settings: FixSession, state: SessionState) -> int | None:
    """When the next Tick is due; None while disconnected."""
    if state.phase is ConnectionPhase.DISCONNECTED:
        return None
    if state.phase is ConnectionPhase.LOGON_AWAITED:
        return state.phase_since_ns + int(settings.logon_timeout_s * NS_PER_S)
    deadlines: list[int] = []
    if state.phase is ConnectionPhase.LOGOUT_SENT:
        deadlines.append(state.phase_since_ns + int(settings.logout_timeout_s * NS_PER_S))
    if state.gap_end:
        deadlines.append(state.gap_since_ns + int(settings.resend_timeout_s * NS_PER_S))
    if state.heartbeat_ns:
        deadlines.append(state.last_sent_ns + state.heartbeat_ns)
        waits = _TIMED_OUT_AT if state.num_tests else _TEST_REQUEST_AT
        deadlines.append(state.last_received_ns + int(waits * state.heartbeat_ns))
    return min(deadlines, default=None)


class _Step(SessionStep):
    """What each event asks for."""

    # Connection and time

    def connect(self) -> None:
        self.num_tests = self.gap_end = self.num_gap_requests = self.heartbeat_ns = 0
        self.waiting = ()
        self.has_sent_reset = False
        self.last_received_ns = self.last_sent_ns = self.at_ns
        self.enter(ConnectionPhase.LOGON_AWAITED)
        if self.settings.initiator:
            if self.settings.reset_on_logon:
                self.reset_numbers()
                self.has_sent_reset = True
            self.heartbeat_ns = self.settings.heartbeat_s * NS_PER_S
            self.send_logon(with_reset=self.has_sent_reset)

    def step_clock(self, by_ns: int) -> None:
        self.phase_since_ns += by_ns
        self.last_sent_ns += by_ns
        self.last_received_ns += by_ns
        self.gap_since_ns += by_ns

    def tick(self) -> None:
        now, waited = self.at_ns, self.at_ns - self.phase_since_ns
        if self.phase is ConnectionPhase.DISCONNECTED:
            return
        if self.phase is ConnectionPhase.LOGON_AWAITED:
            if waited >= self.settings.logon_timeout_s * NS_PER_S:
                self.disconnect("no Logon came in time")
            return
        if self.phase is ConnectionPhase.LOGOUT_SENT and waited >= self.settings.logout_timeout_s * NS_PER_S:
            self.disconnect("no answer to our Logout came in time")
            return
        if self.gap_end and now - self.gap_since_ns >= self.settings.resend_timeout_s * NS_PER_S:
            if self.num_gap_requests >= _MAX_GAP_REQUESTS:
                self.log_out(f"MsgSeqNum {self.next_in} was requested {self.num_gap_requests} times")
                self.gap_end = 0
            else:
                self.request_resend()
        if not self.heartbeat_ns:
            return
        silent = now - self.last_received_ns
        if silent >= _TIMED_OUT_AT * self.heartbeat_ns:
            self.disconnect("nothing was received in 2.4 heartbeat intervals")
        elif not self.num_tests and silent >= _TEST_REQUEST_AT * self.heartbeat_ns:
            self.num_tests = 1
            self.send("1", [(112, "TEST")])
        elif now - self.last_sent_ns >= self.heartbeat_ns:
            self.send("0", [])

    # Receiving

    def receive(self, frame: bytes) -> None:
        if self.phase is ConnectionPhase.DISCONNECTED:
            return
        message = decode(frame, self.dictionary)
        if isinstance(message, Garbled):
            self.actions.append(Note(f"ignored a garbled message: {message.why}"))
            if self.phase is ConnectionPhase.LOGON_AWAITED:
                self.disconnect("what came first is garbled")
            return
        self._process(message)
        while self.waiting and not self.is_over():
            first = self.waiting[0]
            if (first.sequence or 0) > self.next_in:
                break
            self.waiting = self.waiting[1:]
            if first.sequence == self.next_in:
                if first.msg_type in ("2", "A"):  # acted on when it came
                    self.expect(self.next_in + 1)
                else:
                    self._process(first)

    def _process(self, message: FixMessage) -> None:
        kind, sequence = message.msg_type, message.sequence
        if message.begin_string != self.settings.begin_string:
            self._refuse_begin_string(message)
            return
        if self.phase is ConnectionPhase.LOGON_AWAITED and kind != "A":
            said = f": {message.get(58)[:120]}" if kind in ("3", "5") and message.get(58) else ""
            self.disconnect(f"the first message is no Logon but of type {kind[:8]}{said}")
            return
        fault = check_message(message, self.dictionary, allow_user_fields=self.settings.allow_user_fields)
        if self.phase is ConnectionPhase.LOGON_AWAITED:
            self._log_on(message, fault)
            return
        if sequence is None:
            if fault is None or fault.tag != 34:
                fault = MessageFault(RejectReason.REQUIRED_TAG_MISSING, 34)
            self.log_out(f"MsgSeqNum (34): {REASON_TEXTS[fault.reason]}")
            self.disconnect("a message has no MsgSeqNum")
            return
        if fault is None or fault.tag not in (49, 52, 56):
            problem = identity_problem(self.settings, message, self.at_ns)
            if problem is not None:
                self.reject(message, MessageFault(problem))
                self.log_out("")
                return
        self.last_received_ns = self.at_ns
        self.num_tests = 0
        is_reset = (kind == "A" and message.get(141) == "Y") or (kind == "4" and message.get(123) != "Y")
        if not is_reset and kind not in ("2", "5"):
            if sequence < self.next_in:
                self._receive_low(message, fault)
                return
            if sequence > self.next_in:
                self._receive_high(message)
                return
        if fault is not None:
            self.reject(message, fault)
            return
        self._dispatch(message, sequence)

    def _dispatch(self, message: FixMessage, sequence: int) -> None:
        kind = message.msg_type
        if kind not in SESSION_TYPES or kind == "3":
            self.actions.append(Deliver(sequence, message))
            self.next_in += 1
        elif kind == "0":
            self.expect(self.next_in + 1)
        elif kind == "1":
            self.expect(self.next_in + 1)
            self.send("0", [(112, message.get(112))])
        elif kind == "2":
            self._receive_resend_request(message, sequence)
        elif kind == "4":
            self._receive_sequence_reset(message)
        elif kind == "5":
            self._receive_logout(sequence)
        elif message.get(141) == "Y":
            self._log_on(message, None)
        else:
            self.reject(message, MessageFault(RejectReason.OTHER, None, "already logged on"))

    def _receive_low(self, message: FixMessage, fault: MessageFault | None) -> None:
        if not message.is_flagged_duplicate:
            self.send(
                "5", [(58, f"MsgSeqNum too low, expecting {self.next_in} but received {message.sequence}")]
            )
            self.disconnect(f"MsgSeqNum {message.sequence} came, {self.next_in} was expected")
            return
        if message.msg_type == "4":
            return
        original = message.get(122)
        if not original:
            self.reject(message, MessageFault(RejectReason.REQUIRED_TAG_MISSING, 122))
            return
        original_ns, sent_ns = parse_timestamp(original), parse_timestamp(message.get(52))
        if original_ns is None or sent_ns is None:
            self.reject(message, fault or MessageFault(RejectReason.INCORRECT_FORMAT, 122))
        elif original_ns > sent_ns:
            self.reject(message, MessageFault(RejectReason.SENDING_TIME))
            self.log_out("")

    def _receive_high(self, message: FixMessage) -> None:
        self._keep(message)
        if not self.gap_end and self.phase is ConnectionPhase.LOGGED_ON:
            self._begin_gap((message.sequence or 1) - 1)

    def _keep(self, message: FixMessage) -> None:
        number = message.sequence or 0
        numbers = [each.sequence or 0 for each in self.waiting]
        if number in numbers or len(numbers) >= self.settings.max_waiting:
            return  # the resend brings it once more
        if not numbers or number > numbers[-1]:
            self.waiting = (*self.waiting, message)
        else:
            self.waiting = tuple(sorted((*self.waiting, message), key=lambda each: each.sequence or 0))

    def _begin_gap(self, end: int) -> None:
        self.gap_end = end
        self.num_gap_requests = 0
        self.request_resend()

    def _receive_resend_request(self, message: FixMessage, sequence: int) -> None:
        begin, end = int(message.get(7)), int(message.get(16))
        if not 1 <= begin < self.next_out or (end and end < begin):
            tag = 7 if not 1 <= begin < self.next_out else 16
            self.reject(message, MessageFault(RejectReason.VALUE_OUT_OF_RANGE, tag))
            return
        last = self.next_out - 1
        self.actions.append(Resend(begin, min(end, last) if end else last))
        self.last_sent_ns = self.at_ns
        if sequence == self.next_in:
            self.expect(sequence + 1)
        elif (
            sequence > self.next_in
        ):  # the numbers before it are missing; our own request must not wait for theirs
            self._receive_high(message)

    def _receive_sequence_reset(self, message: FixMessage) -> None:
        number = int(message.get(36))
        is_gap_fill = message.get(123) == "Y"
        if number < self.next_in or (is_gap_fill and number == self.next_in):
            self.reject(message, MessageFault(RejectReason.VALUE_OUT_OF_RANGE))
        elif number > self.next_in:
            self.expect(number)

    def _receive_logout(self, sequence: int) -> None:
        if self.phase is not ConnectionPhase.LOGOUT_SENT:
            self.send("5", [])
        if sequence == self.next_in:
            self.expect(sequence + 1)
        self.disconnect("logged out")

    def _refuse_begin_string(self, message: FixMessage) -> None:
        if self.phase is ConnectionPhase.LOGON_AWAITED:
            self.disconnect(
                f"BeginString (8) is {message.begin_string[:20]}, not {self.settings.begin_string}"
            )
        elif message.msg_type == "5":
            self._receive_logout(self.next_in)
        else:
            self.log_out("Incorrect BeginString")
            self.expect(self.next_in + 1)

    # Logon

    def _log_on(self, message: FixMessage, fault: MessageFault | None) -> None:
        """The first message, or a Logon with ResetSeqNumFlag (141) in a session."""
        problem = logon_problem(self.settings, message, fault, self.at_ns)
        if problem:
            self.disconnect(problem)
            return
        with_reset = message.get(141) == "Y"
        sequence = message.sequence or 1
        answers = self.settings.initiator and self.phase is ConnectionPhase.LOGON_AWAITED
        if with_reset and not self.has_sent_reset:
            self.reset_numbers()
            answers = False  # a reset that we did not ask for is answered by a Logon of number 1
        elif self.settings.reset_on_logon and not self.settings.initiator:
            self.reset_numbers()
        if sequence < self.next_in:
            self.send("5", [(58, f"MsgSeqNum too low, expecting {self.next_in} but received {sequence}")])
            self.disconnect(f"MsgSeqNum {sequence} came with the Logon, {self.next_in} was expected")
            return
        self.last_received_ns = self.at_ns
        self.num_tests = 0
        if not answers:
            self.heartbeat_ns = int(message.get(108)) * NS_PER_S
            self.send_logon(with_reset=with_reset)
        self.has_sent_reset = False
        self.enter(ConnectionPhase.LOGGED_ON)
        if sequence > self.next_in:
            self._receive_high(message)
        else:
            self.expect(self.next_in + 1)
        self.actions.append(LoggedOn())

    def send_application(self, event: SendRequested) -> None:
        if event.msg_type in SESSION_TYPES:
            self.actions.append(NotSent(event.msg_type, "the session itself sends such messages"))
        elif self.phase is not ConnectionPhase.LOGGED_ON:
            self.actions.append(NotSent(event.msg_type, f"the session is {self.phase.value}"))
        else:
            self.send(event.msg_type, event.body, event.header)


def initial_state(next_out: int, next_in: int) -> SessionState:
    """The state that a store's numbers give."""
    return msgspec.structs.replace(SessionState(), next_out=next_out, next_in=next_in)
