"""Runs one session on an event loop: its connection and timer; it writes down before it sends or delivers."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from htfi.adapters.fix.journal import MessageJournal
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.driver import SessionDriver
from htfi.execution.fix.events import (
    ClockStepped,
    Connected,
    ConnectionPhase,
    Disconnected,
    Event,
    LogoutRequested,
    NotSent,
    Received,
    SendRequested,
    Tick,
)
from htfi.execution.fix.framing import split_frames
from htfi.execution.fix.messages import Fields, FixMessage
from htfi.execution.fix.session import next_deadline_ns

_MAX_CLOCK_DRIFT_NS = 50 * NS_PER_MS
_CHECK = "check sender, target, TLS and clock of both sides, and that no other process is it"


class Application(Protocol):
    """Who uses a session. All calls come on the session's event loop; what they raise ends the connection."""

    def on_logon(self, runner: "SessionRunner") -> None:
        """Messages may be sent."""
        ...

    def on_message(self, runner: "SessionRunner", message: FixMessage) -> None:
        """A message for the application, or a Reject (35=3), which is in the journal already."""
        ...

    def on_disconnect(self, runner: "SessionRunner", why: str) -> None: ...


class ByteTransport(Protocol):
    """What a runner needs of a connection."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class SessionRunner:
    """One session over the life of its connections."""

    def __init__(
        self,
        settings: FixSession,
        journal: MessageJournal,
        application: Application,
        may_resend: Callable[[bytes], bool] = lambda _: True,
    ) -> None:
        """`may_resend`: whether a message that the counterparty asks for again is sent; else a gap fill is."""
        self.journal = journal
        self._application = application
        self._driver = SessionDriver(settings, journal, may_resend)
        self._transport: ByteTransport | None = None
        self._rest = b""
        self._is_busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._clock_offset_ns = time.time_ns() - time.monotonic_ns()

    @property
    def settings(self) -> FixSession:
        return self._driver.settings

    @property
    def dictionary(self) -> Dictionary:
        return self._driver.dictionary

    @property
    def is_connected(self) -> bool:
        return self._transport is not None

    @property
    def is_logged_on(self) -> bool:
        return self._driver.state.phase is ConnectionPhase.LOGGED_ON

    @property
    def num_unsent_bytes(self) -> int:
        """Bytes that the connection has not taken yet."""
        size = getattr(self._transport, "get_write_buffer_size", None)
        return 0 if size is None else int(size())

    def watch_refused(self, on_refused: Callable[[str, bytes], None]) -> None:
        """Tell of each message that comes and is refused by the session: why, and its bytes."""
        self._driver.on_refused = on_refused

    @property
    def next_out(self) -> int:
        return self._driver.state.next_out

    @property
    def next_in(self) -> int:
        return self._driver.state.next_in

    def connect(self, transport: ByteTransport) -> None:
        """A connection stands."""
        self._transport = transport
        self._rest = b""
        self._driver.closing = ""
        self._perform(Connected(self._now()))
        self._finish()

    def receive(self, data: bytes) -> None:
        """Bytes of the connection."""
        frames, self._rest = split_frames(self._rest + data, self.settings.max_body_bytes)
        for frame in frames:
            if self._driver.closing:
                break
            self._perform(Received(self._now(), frame))
        self._finish()

    def lose(self, why: str) -> None:
        """The connection has ended."""
        if self._transport is None:
            return
        if self._driver.state.phase is ConnectionPhase.LOGON_AWAITED:
            why += f" before the logon: {_CHECK}"
        self._transport = None
        self._perform(Disconnected(self._now()))
        self._driver.outgoing.clear()
        self._finish()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._application.on_disconnect(self, self._driver.closing or why)

    def send(self, msg_type: str, body: Fields, header: Fields = ()) -> int | NotSent:
        """Write a message down and send it: its number; where the session is not logged on, why it was not sent.

        Raises: InvalidInput where a value cannot be sent; DependencyUnavailable where the journal cannot be written.
        """
        number = self._driver.state.next_out
        self._perform(SendRequested(self._now(), msg_type, body, header))
        refusal = self._driver.take_refusal()
        self._finish()
        return refusal or number

    def log_out(self, text: str = "") -> None:
        self._perform(LogoutRequested(self._now(), text))
        self._finish()

    def _now(self) -> int:
        wall, steady = time.time_ns(), time.monotonic_ns()
        step = wall - steady - self._clock_offset_ns
        if abs(step) > _MAX_CLOCK_DRIFT_NS:
            self._clock_offset_ns += step
            self._driver.perform(ClockStepped(wall, step))
        return wall

    def _perform(self, event: Event) -> None:
        try:
            self._driver.perform(event)
        except DependencyUnavailable:
            if self._transport is not None:
                self._transport.close()
            raise

    def _finish(self) -> None:
        """Write down, send, deliver; again for what the application sends meanwhile."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            self._write_and_send()
            while deliveries := self._driver.take_deliveries():
                for each in deliveries:
                    if isinstance(each, FixMessage):
                        self._application.on_message(self, each)
                    elif self.is_connected:
                        self._application.on_logon(self)
                self._write_and_send()
        except DependencyUnavailable as error:
            self._driver.fail(error)
            raise
        finally:
            self._is_busy = False
            if self._driver.closing and self._transport is not None:
                self._transport.close()
        self._set_timer()

    def _write_and_send(self) -> None:
        data = self._driver.take_outgoing()
        if data and self._transport is not None:
            self._transport.write(data)

    def _set_timer(self) -> None:
        """One timer, no later than the session's deadline; it may be early."""
        deadline_ns = next_deadline_ns(self.settings, self._driver.state)
        if deadline_ns is None or self._transport is None:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.001, (deadline_ns - time.time_ns()) / NS_PER_S)
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = loop.call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._perform(Tick(self._now()))
        self._finish()
