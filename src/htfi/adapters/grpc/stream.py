"""One stream's state: what waits to be sent, what waits to be received, and what it has counted.

The transport's caller puts frames in and takes arrivals out; the I/O thread does the opposite.
"""

import asyncio
import threading
from collections import deque
from dataclasses import dataclass

from htfi.adapters.grpc.library import TransportLimits


@dataclass(slots=True)
class StreamTraffic:
    """Messages as handed to gRPC and got from it, seals included. `num_bad` of those received were refused."""

    num_sent: int = 0
    sent_bytes: int = 0
    num_received: int = 0
    received_bytes: int = 0
    num_bad: int = 0

    def plus(self, other: "StreamTraffic") -> "StreamTraffic":
        return StreamTraffic(
            self.num_sent + other.num_sent,
            self.sent_bytes + other.sent_bytes,
            self.num_received + other.num_received,
            self.received_bytes + other.received_bytes,
            self.num_bad + other.num_bad,
        )


class Outbox:
    """Frames in the order of sending, at most so many bytes. `put` from any thread, the rest in the loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_bytes: int) -> None:
        self._loop = loop
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._frames: deque[bytes] = deque()
        self._num_bytes = 0
        self._is_closed = False
        self._waiting: asyncio.Future[None] | None = None
        self._is_notified = False

    def put(self, sealed: bytes) -> bool:
        with self._lock:
            if self._is_closed or self._num_bytes + len(sealed) > self._max_bytes:
                return False
            self._frames.append(sealed)
            self._num_bytes += len(sealed)
            return self._wake()

    def close(self) -> None:
        """Nothing more goes in; what is there may still be taken."""
        with self._lock:
            self._is_closed = True
            self._wake()

    async def next_frame(self) -> bytes | None:
        """The next frame; None where there will be none. Its bytes count until `taken`."""
        while True:
            with self._lock:
                self._is_notified = False
                if self._frames:
                    return self._frames.popleft()
                if self._is_closed:
                    return None
                waiting = self._waiting = self._loop.create_future()
            await waiting

    def frame_sent(self, sealed: bytes) -> None:
        with self._lock:
            self._num_bytes -= len(sealed)

    def _wake(self) -> bool:
        # One wake-up serves all that is put before the loop comes round.
        if self._waiting is not None and not self._is_notified:
            try:
                self._loop.call_soon_threadsafe(self._notify_waiter)
            except RuntimeError:  # the loop is closed: so is the stream
                return False
            self._is_notified = True
        return True

    def _notify_waiter(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


class GrpcStream:
    """A connection to a node. Made in the loop's thread."""

    def __init__(self, name: str, node: str, dialled: bool, bounds: TransportLimits, now_s: float) -> None:
        self.name = name
        self.node = node
        self.dialled = dialled
        self.last_received_s = now_s
        self.sent_heartbeat = False  # we have sent it something for the watch
        self.is_reported_alive = False  # the watcher has been notified of its frames in this tick
        self.bad_frames = ""  # what came, and cannot be read: the stream ends
        self.traffic = StreamTraffic()
        self._loop = asyncio.get_running_loop()
        self.outbox = Outbox(self._loop, bounds.outbox_bytes)
        self.drop_reason: asyncio.Future[str] = self._loop.create_future()
        self._inbox_bytes = bounds.inbox_bytes
        self._lock = threading.Lock()
        self._num_unread = 0
        self._has_space_event: asyncio.Future[None] | None = None

    def drop(self, reason: str) -> None:
        """In the loop's thread: end it now, whatever waits. The first words stand."""
        self.outbox.close()
        if not self.drop_reason.done():
            self.drop_reason.set_result(reason)

    def arrived(self, num_bytes: int) -> None:
        with self._lock:
            self._num_unread += num_bytes

    @property
    def is_full(self) -> bool:
        """We do not read: it is we who are silent."""
        return self._has_space_event is not None

    async def has_space(self) -> None:
        """Wait while too much has arrived that is not received yet: HTTP/2 then holds the peer back."""
        while True:
            with self._lock:
                if self._num_unread < self._inbox_bytes:
                    return
                waiter = self._has_space_event = self._loop.create_future()
            await waiter

    def received(self, num_bytes: int) -> None:
        """From the caller's thread."""
        with self._lock:
            self._num_unread -= num_bytes
            if self._has_space_event is None or self._num_unread * 2 > self._inbox_bytes:
                return
            waiter, self._has_space_event = self._has_space_event, None
        try:
            self._loop.call_soon_threadsafe(_set_event, waiter)
        except RuntimeError:  # the loop is closed
            return


def _set_event(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
