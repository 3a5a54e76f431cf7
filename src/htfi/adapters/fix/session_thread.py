"""A FIX session on a thread of its own, for who works without an event loop: post a message, wait for the next.

Messages that the journal holds from earlier processes, since a run began, come first.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from htfi.adapters.fix.connections import Initiator
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.fix.settings import FixEndpoint
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.time import NS_PER_S
from htfi.execution.fix.dictionary import Dictionary, load_dictionary
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.messages import FixMessage, decode
from htfi.execution.fix.order_codes import Composed
from htfi.execution.fix.timestamps import parse_timestamp

_CLOSE_S = 5.0
_POST_S = 60.0


class JournalPlace(NamedTuple):
    """Where a run begins in its session's journal: files put aside by then, and the next numbers."""

    num_files: int
    next_out: int
    next_in: int


class SessionThread:
    """An initiator's session. It connects when it is started, and again after each end."""

    def __init__(self, endpoint: FixEndpoint) -> None:
        """Raises: DependencyUnavailable where another process owns the session; IntegrityError; InvalidInput."""
        self.endpoint = endpoint
        self.dictionary: Dictionary = load_dictionary(endpoint.session.dictionary_name)
        self.num_logons: int = 0
        self.num_interruptions: int = 0  # logons after the first of all
        self._journal = MessageJournal(
            Path(endpoint.journal), sync=endpoint.sync and not endpoint.orders.is_simulated
        )
        self._runner = SessionRunner(endpoint.session, self._journal, self, self._may_resend)
        self._initiator = Initiator(endpoint, self._runner)
        self._changed = threading.Condition()
        self._incoming: deque[FixMessage] = deque()
        self._why_down = "not connected yet"
        self._error: BaseException | None = None
        self._has_logged_on = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="fix-session", daemon=True)

    @property
    def name(self) -> str:
        """Who speaks with whom, for people."""
        endpoint = self.endpoint
        return (
            f"FIX session {endpoint.session.sender}-{endpoint.session.target} "
            f"at {endpoint.host}:{endpoint.port}"
        )

    def place(self) -> JournalPlace:
        """Where the journal is now. To be asked before the start."""
        return JournalPlace(self._journal.num_files, self._journal.next_out, self._journal.next_in)

    def start(self, since: JournalPlace, num_handled: int = 0) -> list[FixMessage]:
        """Connect; the messages of ours that were sent since a place. Those received since then come again, but for
        the first that were handled.
        """
        sent = [self._decoded(frame) for frame in self._journal.sent_since(*since[:2])]
        received = islice(self._journal.received_since(*since[::2]), num_handled, None)
        self._incoming.extend(self._decoded(frame) for frame in received)
        self._has_logged_on = bool(sent)
        self._thread.start()
        return sent

    def post(self, composed: Composed) -> int | NotSent:
        """Write a message down and send it: its number, or why it was not sent.

        Raises: InvalidInput; DependencyUnavailable where the journal cannot be written, or the session has failed.
        """
        self._check()
        assert self._loop is not None, "post before start"
        try:
            return asyncio.run_coroutine_threadsafe(self._send(composed), self._loop).result(_POST_S)
        except (TimeoutError, RuntimeError) as error:  # its event loop has ended, or hangs
            self._check()
            raise DependencyUnavailable(f"{self.name} does not take messages any more") from error

    def next_message(self, wait_s: float = 0.0) -> FixMessage | None:
        """The next message for the application; None where none came in time. Raises: DependencyUnavailable.

        A new order or replace is one of ours that did not arrive and is too old to be sent again.
        """
        with self._changed:
            self._wait(lambda: bool(self._incoming), wait_s)
            return self._incoming.popleft() if self._incoming else None

    def take_messages(self, max_num: int, wait_s: float) -> list[FixMessage]:
        """The next messages for the application, as many as have come by then. Raises: DependencyUnavailable."""
        with self._changed:
            self._wait(lambda: bool(self._incoming), wait_s)
            return [self._incoming.popleft() for _ in range(min(max_num, len(self._incoming)))]

    def watch_refused(self, on_refused: Callable[[str, bytes], None]) -> None:
        """Tell of each message that comes and is refused by the session; on the session's thread."""
        self._runner.watch_refused(on_refused)

    def wait_for_logon(self, wait_s: float) -> bool:
        """Whether messages can be sent, by then. Raises: DependencyUnavailable."""
        with self._changed:
            self._wait(lambda: self._runner.is_logged_on, wait_s)
            return self._runner.is_logged_on

    @property
    def why_down(self) -> str:
        """Why messages cannot be sent, in words; empty where they can."""
        if self._runner.is_logged_on:
            return ""
        return f"cannot connect: {self._initiator.problem}" if self._initiator.problem else self._why_down

    @property
    def last_end(self) -> str:
        """Why the connection ended last."""
        return self._why_down

    def close(self) -> None:
        """Log out and end the thread."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._initiator.close)
            self._thread.join(_CLOSE_S)
        self._journal.close()

    # Called on the thread of the session

    def on_logon(self, runner: SessionRunner) -> None:
        del runner
        with self._changed:
            self.num_logons += 1
            self.num_interruptions += self._has_logged_on
            self._has_logged_on = True
            self._changed.notify_all()

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        del runner
        with self._changed:
            self._incoming.append(message)
            self._changed.notify_all()

    def on_disconnect(self, runner: SessionRunner, why: str) -> None:
        del runner
        with self._changed:
            self._why_down = why
            self._changed.notify_all()

    def _may_resend(self, frame: bytes) -> bool:
        """Whether a message of ours that did not arrive is still wanted; else an order comes back as a message."""
        message = self._decoded(frame)
        sent_ns = parse_timestamp(message.get(52)) or 0
        max_age_ns = self.endpoint.orders.max_resend_age_s * NS_PER_S
        if self.endpoint.orders.is_simulated or message.msg_type not in ("D", "G"):
            return True
        if time.time_ns() - sent_ns <= max_age_ns:
            return True
        with self._changed:
            self._incoming.append(message)
            self._changed.notify_all()
        return False

    def _run(self) -> None:
        async def serve() -> None:
            with self._changed:
                self._loop = asyncio.get_running_loop()
                self._changed.notify_all()
            await self._initiator.run()

        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised again on the thread that uses the session
            with self._changed:
                self._error = error
                self._changed.notify_all()

    async def _send(self, composed: Composed) -> int | NotSent:
        return self._runner.send(*composed)

    def _wait(self, is_so: Callable[[], bool], wait_s: float) -> None:
        """With the condition held."""
        deadline_s = time.monotonic() + wait_s
        self._check()
        while not is_so():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            self._changed.wait(left_s)
            self._check()

    def _check(self) -> None:
        if self._loop is None and self._thread.is_alive():
            with self._changed:
                self._changed.wait_for(lambda: self._loop is not None or self._error is not None, _CLOSE_S)
        if self._error is not None:
            if isinstance(self._error, HtfiError):
                raise self._error
            raise DependencyUnavailable(f"{self.name} has failed: {self._error}") from self._error

    def _decoded(self, frame: bytes) -> FixMessage:
        message = decode(frame, self.dictionary)
        assert isinstance(message, FixMessage), "the journal holds what was sent or checked"
        return message
