"""Multiplexes the frames of all streams in the event loop's thread; server and dialler run their streams here.

A `StreamObserver` receives health frames and changes of streams, in the transport's I/O thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol

from htfi.adapters.grpc import library
from htfi.adapters.grpc.library import DuplexStream, TransportLimits
from htfi.adapters.grpc.stream import GrpcStream, StreamTraffic
from htfi.decoding.link import frames
from htfi.decoding.link.frames import FrameChannel, RefusalReason, RefusedFrame
from htfi.decoding.link.ports import StreamArrival, StreamEvent
from htfi.domain.errors import InvalidInput


class StreamObserver(Protocol):
    """Called in one thread and never twice at once. Must not wait. A body it rejects raises InvalidInput."""

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        """A stream to a node is up; `dialled` by us, or accepted."""
        ...

    def ended(self, stream: str, node: str, reason: str) -> None: ...

    def received(self, stream: str, node: str, body: bytes) -> None:
        """A body on `FrameChannel.HEALTH`. Raises: InvalidInput, and the frame is refused by name."""
        ...

    def seen(self, stream: str, node: str) -> None:
        """A frame arrived on `FrameChannel.LINK`; called at most once per tick and stream."""
        ...

    def due(self) -> Sequence[tuple[str, bytes]]:
        """(stream, sealed) to send now; called each tick."""
        ...


class NullStreamObserver:
    """No observer: health frames are ignored."""

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        del stream, node, dialled

    def ended(self, stream: str, node: str, reason: str) -> None:
        del stream, node, reason

    def received(self, stream: str, node: str, body: bytes) -> None:
        del stream, node, body

    def seen(self, stream: str, node: str) -> None:
        del stream, node

    def due(self) -> Sequence[tuple[str, bytes]]:
        return ()


FLUSH_S = 0.5  # for what waits to be sent when the peer has ended its side
_MAX_LATE_TICKS = 4  # the rest of a gap between ticks was our own pause, which received nothing
_MAX_HEARTBEATING = 1024  # far more nodes than a cluster has


class StreamMultiplexer:
    """Streams by name, and what they bring, in one queue."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bounds: TransportLimits,
        watcher: StreamObserver,
        clock: Callable[[], float],
    ) -> None:
        self.bounds = bounds
        self.streams: dict[str, GrpcStream] = {}
        self.received: SimpleQueue[StreamArrival | None] = SimpleQueue()
        self.is_closing = False
        self.ended_traffic = StreamTraffic()
        self.failure: asyncio.Future[None] = loop.create_future()
        self._watcher = watcher
        self._clock = clock
        self._num_streams = 0
        self._last_tick_s = clock()
        self._heartbeating: dict[str, None] = {}  # nodes whose heartbeats came, the latest last

    def refusal_reason(self, node: str) -> str:
        """Why a stream that `node` opens is not taken; '' where it is.

        A node dials once at a time, so that a second stream means that the first is dead and we have not seen it: the
        newer wins. But where the first received a frame just now, two processes go by one name, and would throw each
        other out for ever: then the older stays.
        """
        older = self._accepted(node)
        if older is not None and self._clock() - older.last_received_s < self.bounds.fresh_s:
            return f"{node} is connected already: do two processes use its certificate?"
        return ""

    def open(self, node: str, dialled: bool) -> GrpcStream:
        if not dialled and (older := self._accepted(node)) is not None:
            older.drop(f"{node} opened a newer stream")
            self._report_end(older, f"{node} opened a newer stream")
        self._num_streams += 1
        stream = GrpcStream(f"{node}#{self._num_streams}", node, dialled, self.bounds, self._clock())
        self.streams[stream.name] = stream
        self.received.put(StreamArrival(stream.name, node, StreamEvent.UP))
        self._watcher.opened(stream.name, node, dialled)
        return stream

    async def run(
        self, stream: GrpcStream, duplex: DuplexStream, end: Callable[[], Awaitable[object]] | None
    ) -> str:
        """Carry frames until the stream ends; why it did. `end` informs the peer that we send no more."""
        reading = asyncio.ensure_future(self._read(stream, duplex))
        writing = asyncio.ensure_future(self._write(stream, duplex))
        reason = "the connection was lost"
        try:
            await _wait_for_any(reading, writing, stream.drop_reason)
            stream.outbox.close()
            await _wait_for_any(writing, stream.drop_reason, timeout_s=FLUSH_S)
            if stream.bad_frames:
                stream.drop(stream.bad_frames)
            if end is not None and not (stream.drop_reason.done() or reading.done()):
                with suppress(*library.CallError):
                    await end()
                await _wait_for_any(reading, stream.drop_reason, timeout_s=FLUSH_S)
            reason = self._end_reason(stream, reading, writing)
        finally:
            stream.outbox.close()
            for task in (reading, writing):
                task.cancel()
            self._report_end(stream, reason)
        await asyncio.wait((reading, writing), timeout=FLUSH_S)
        return reason

    def fail(self, error: BaseException) -> None:
        """What may not happen has happened: the transport ends, and its caller gets the error."""
        if not self.failure.done():
            self.failure.set_exception(error)

    def tick(self) -> None:
        """Send what the watcher has to say, and end streams to nodes that fell silent. Owed each `tick_ms`."""
        self._drop_silent()
        for stream in self.streams.values():
            stream.is_reported_alive = False
        for name, sealed in self._watcher.due():
            stream = self.streams.get(name)
            if stream is not None:
                stream.outbox.put(sealed)
                stream.sent_heartbeat = True

    def _drop_silent(self) -> None:
        """A stream whose bytes were lost stays up for ever, and holds up what is dialled in its place.

        Of two streams to a node, one may bear all heartbeats: it is silent where nothing comes on either.
        """
        now_s = self._clock()
        gap_s, self._last_tick_s = now_s - self._last_tick_s, now_s
        own_pause_s = max(0.0, gap_s - _MAX_LATE_TICKS * self.bounds.tick_ms / 1e3)
        received_s: dict[str, float] = {}
        for stream in self.streams.values():
            stream.last_received_s = (
                now_s if stream.is_full else min(now_s, stream.last_received_s + own_pause_s)
            )
            received_s[stream.node] = max(
                stream.last_received_s, received_s.get(stream.node, stream.last_received_s)
            )
        for stream in list(self.streams.values()):
            if now_s - received_s[stream.node] <= self.bounds.silent_s:
                continue
            if stream.node in self._heartbeating or (
                stream.sent_heartbeat and not stream.traffic.num_received
            ):
                stream.drop(f"{stream.node} was silent for {self.bounds.silent_s:g} s")

    def _report_end(self, stream: GrpcStream, reason: str) -> None:
        if self.streams.pop(stream.name, None) is not None:
            self.ended_traffic = self.ended_traffic.plus(stream.traffic)
            self.received.put(StreamArrival(stream.name, stream.node, StreamEvent.DOWN, reason=reason))
            self._watcher.ended(stream.name, stream.node, reason)

    def _accepted(self, node: str) -> GrpcStream | None:
        for stream in self.streams.values():
            if stream.node == node and not stream.dialled:
                return stream
        return None

    async def _read(self, stream: GrpcStream, duplex: DuplexStream) -> str:
        while True:
            message = await duplex.read()
            if not isinstance(message, bytes):
                return f"{stream.node} closed the stream"
            if stream.drop_reason.done():  # its end has been reported, perhaps
                return ""
            stream.last_received_s = self._clock()
            stream.traffic.num_received += 1
            stream.traffic.received_bytes += len(message)
            try:
                channel, body = frames.unseal(message)
            except InvalidInput as error:  # what was in it is lost: nothing may come after it
                stream.traffic.num_bad += 1
                stream.bad_frames = f"it sent a message that cannot be read: {error}"
                stream.outbox.put(_malformed(stream.bad_frames))
                return stream.bad_frames
            if channel is FrameChannel.HEALTH:
                self._receive_heartbeat(stream, body)
            else:
                self._deliver(stream, body)
            await stream.has_space()

    def _receive_heartbeat(self, stream: GrpcStream, body: bytes) -> None:
        try:
            self._watcher.received(stream.name, stream.node, body)
        except InvalidInput as error:
            self._refuse(stream, str(error))
        if stream.node not in self._heartbeating:
            if len(self._heartbeating) >= _MAX_HEARTBEATING:
                del self._heartbeating[next(iter(self._heartbeating))]
            self._heartbeating[stream.node] = None

    def _deliver(self, stream: GrpcStream, body: bytes) -> None:
        if not stream.is_reported_alive:
            stream.is_reported_alive = True
            self._watcher.seen(stream.name, stream.node)
        stream.arrived(len(body))
        self.received.put(StreamArrival(stream.name, stream.node, StreamEvent.FRAME, body))

    def _refuse(self, stream: GrpcStream, reason: str) -> None:
        stream.traffic.num_bad += 1
        if stream.traffic.num_bad >= self.bounds.num_bad_frames:
            stream.drop(f"{stream.traffic.num_bad} frames that cannot be read, the last: {reason}")
            return
        stream.outbox.put(_malformed(reason))

    async def _write(self, stream: GrpcStream, duplex: DuplexStream) -> None:
        while (sealed := await stream.outbox.next_frame()) is not None:
            await duplex.write(sealed)
            stream.outbox.frame_sent(sealed)
            stream.traffic.num_sent += 1
            stream.traffic.sent_bytes += len(sealed)

    def _end_reason(
        self, stream: GrpcStream, reading: "asyncio.Future[str]", writing: "asyncio.Future[None]"
    ) -> str:
        if stream.drop_reason.done():
            return stream.drop_reason.result()
        for task in (reading, writing):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                if isinstance(error, library.RpcError):
                    status, details = library.error_text(error)
                    return details or status
                if not isinstance(error, library.CallError):
                    self.fail(error)
                return "the connection was lost"
        if reading.done() and not reading.cancelled():
            return reading.result()
        return "closed here"


def _malformed(reason: str) -> bytes:
    return frames.encode(RefusedFrame(-1, 0, RefusalReason.MALFORMED, -1, reason))


async def _wait_for_any(*futures: "asyncio.Future[Any]", timeout_s: float | None = None) -> None:
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
