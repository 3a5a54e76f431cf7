"""Performs the actions of a session on its journal; what is to be sent and delivered waits for who owns the connection.

`SessionRunner` drives one on sockets and in real time; tests drive one in memory and in virtual time.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from htfi.domain.errors import DependencyUnavailable
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.events import (
    Action,
    Deliver,
    Disconnect,
    Event,
    ExpectNext,
    LoggedOn,
    Note,
    NotSent,
    Received,
    Resend,
    ResetNumbers,
    SendMessage,
)
from htfi.execution.fix.messages import FixMessage, decode
from htfi.execution.fix.resending import resend_frames
from htfi.execution.fix.session import advance, initial_state

_LOG = logging.getLogger("htfi.fix")


class SessionJournal(Protocol):
    """What a session has sent and received. What is added lasts once `flush` has returned."""

    next_out: int
    next_in: int

    def add_sent(self, number: int, frame: bytes) -> None:
        """A message of ours; `frame` empty: a session message, which is never sent again."""
        ...

    def add_received(self, number: int, frame: bytes) -> None: ...

    def add_expected(self, number: int) -> None: ...

    def sent(self, number: int) -> bytes | None:
        """An application message of ours; None where the number is of a session message."""
        ...

    def flush(self) -> None:
        """Raises: DependencyUnavailable; then nothing of what was added counts."""
        ...

    def reset(self) -> None: ...


class SessionDriver:
    """A session's state over its journal, and what its events have left to be done."""

    def __init__(
        self,
        settings: FixSession,
        journal: SessionJournal,
        may_resend: Callable[[bytes], bool] = lambda _: True,
    ) -> None:
        """`may_resend`: whether a message that the counterparty asks for again is sent; else a gap fill is."""
        self.settings = settings
        self.dictionary = load_dictionary(settings.dictionary_name)
        self.state = initial_state(journal.next_out, journal.next_in)
        self.outgoing: list[bytes] = []
        self.deliveries: list[FixMessage | LoggedOn] = []
        self.closing = ""  # why the connection is to end
        self.refusal: NotSent | None = None  # of the newest request to send
        self._journal = journal
        self._may_resend = may_resend
        self.on_refused: Callable[[str, bytes], None] = lambda _why, _frame: None
        """Learns of what came and was refused by the session: why, and its bytes."""

    def perform(self, event: Event) -> list[Action]:
        """The state's next, and its actions but for what waits until the journal is on disk.

        Raises: DependencyUnavailable where the journal cannot be written.
        """
        self.state, actions = advance(self.settings, self.dictionary, self.state, event)
        try:
            for action in actions:
                self._perform_action(action, event.at_ns)
                if isinstance(event, Received) and (why := self._why_refused(action)):
                    self.on_refused(why, event.frame)
        except DependencyUnavailable as error:
            self.fail(error)
            raise
        return actions

    def fail(self, error: DependencyUnavailable) -> None:
        """The journal cannot be written: nothing of what is not on disk has happened."""
        self.outgoing.clear()
        self.deliveries.clear()
        self.closing = str(error)
        self.state = initial_state(self._journal.next_out, self._journal.next_in)

    def take_outgoing(self) -> bytes:
        """What is to be sent now: the journal has it."""
        self._journal.flush()
        data = b"".join(self.outgoing)
        self.outgoing.clear()
        return data

    def take_deliveries(self) -> list[FixMessage | LoggedOn]:
        """What the application is to be given now, in order."""
        deliveries, self.deliveries = self.deliveries, []
        return deliveries

    def take_refusal(self) -> NotSent | None:
        """Why the newest message was not sent, once."""
        refusal, self.refusal = self.refusal, None
        return refusal

    def _perform_action(self, action: Action, at_ns: int) -> None:
        match action:
            case SendMessage():
                self._journal.add_sent(action.sequence, action.frame if action.is_application else b"")
                self.outgoing.append(action.frame)
            case Deliver():
                self._journal.add_received(action.sequence, action.message.frame)
                self.deliveries.append(action.message)
            case ExpectNext():
                self._journal.add_expected(action.sequence)
            case Resend():
                self.outgoing += resend_frames(
                    self.settings, self.dictionary, self._stored, action.begin, action.end, at_ns
                )
            case ResetNumbers():
                self._journal.reset()
            case LoggedOn():
                self.deliveries.append(action)
            case Disconnect():
                self.closing = action.why
            case NotSent():
                self.refusal = action
            case Note():
                _LOG.info("%s-%s: %s", self.settings.sender, self.settings.target, action.text)

    def _why_refused(self, action: Action) -> str:
        """What an action says of a message that came and is not used; empty where it says nothing of the kind."""
        if isinstance(action, Note):
            return action.text
        if not isinstance(action, SendMessage) or b"\x0135=3\x01" not in action.frame[:40]:
            return ""
        reject = decode(action.frame, self.dictionary)
        if not isinstance(reject, FixMessage):
            return ""
        tag = f" {reject.get(371)}" if reject.get(371) else ""
        return f"rejected MsgSeqNum {reject.get(45)} of type {reject.get(372)}: {reject.get(58)}{tag}"

    def _stored(self, number: int) -> bytes | None:
        """The message of a number that may be sent again."""
        frame = self._journal.sent(number)
        return frame if frame is not None and self._may_resend(frame) else None
