"""One direction of one proxied connection, on the event loop: what was read waits here until it is due.

One proxied connection: two sockets, the two pipes between them, and how it begins and ends.
"""

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol, cast

from htfi_eval.faulty_link.conditions import Direction, LinkConditions
from htfi_eval.faulty_link.delivery import MS, BandwidthLimit, DeliverySchedule

MAX_QUEUED_BYTES = 1 << 22  # then the source is read no further: the window of a TCP connection


class CloseReason(Enum):
    """How a side stops speaking."""

    CLOSE = "closed"
    RESET = "was reset"


class PipeTraffic(NamedTuple):
    """Of one direction of one connection. A chunk is one read: at least one segment of TCP."""

    connection: int
    direction: Direction
    num_bytes: int
    num_chunks: int
    num_bytes_arrived: int


class Pipe:
    """Reads come in by `take` and `end`, and leave at `sink` when they are due and the conditions lets them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        way: Direction,
        course: DeliverySchedule,
        ended: Callable[[CloseReason], None],
    ) -> None:
        self.direction = way
        self._loop, self._delivery, self._ended = loop, course, ended
        self._queue: deque[tuple[float, bytes | CloseReason]] = deque()
        self._num_queued_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._source: asyncio.ReadTransport | None = None
        self._sink: asyncio.WriteTransport | None = None
        self._is_full = False  # the sink takes no more now
        self._is_reading = True
        self.is_lost = False  # bytes were swallowed: nothing after them makes sense
        self.num_bytes = self.num_chunks = self.num_bytes_arrived = 0

    @property
    def _conditions(self) -> LinkConditions:
        return self._delivery.conditions

    def set_conditions(self, conditions: LinkConditions) -> None:
        self._delivery.set_conditions(conditions)
        self._flush()

    def notes(self) -> list[str]:
        notes, self._delivery.notes = self._delivery.notes, []
        return notes

    def read_from(self, source: asyncio.ReadTransport) -> None:
        self._source = source

    def write_to(self, sink: asyncio.WriteTransport) -> None:
        self._sink = sink
        self._flush()

    def enqueue(self, data: bytes) -> None:
        self.num_bytes += len(data)
        self.num_chunks += 1
        if self._swallows():
            return
        for due_s, part in self._delivery.pieces(self._loop.time(), data):
            self._queue.append((due_s, part))
            self._num_queued_bytes += len(part)
        self._flush()

    def end(self, ending: CloseReason) -> None:
        if not self._swallows():
            self._queue.append((self._delivery.end_s(self._loop.time()), ending))
            self._flush()

    def full(self, is_full: bool) -> None:
        self._is_full = is_full
        self._flush()

    def stop(self) -> None:
        """Nothing more arrives; what still comes is swallowed."""
        self.is_lost, self._sink = True, None
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _swallows(self) -> bool:
        if self._conditions.is_dark and self._conditions.affects(self.direction):
            self.is_lost = True
        return self.is_lost

    def _flush(self) -> None:
        queue, sink = self._queue, self._sink
        while queue and sink is not None and not self._is_full and not self._conditions.is_stalled:
            due_s, part = queue[0]
            if due_s > self._loop.time():
                break
            queue.popleft()
            if isinstance(part, CloseReason):
                self._ended(part)
                return
            self._num_queued_bytes -= len(part)
            self.num_bytes_arrived += len(part)
            sink.write(part)
        self._arm()
        self._throttle()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue and self._sink is not None and not self._is_full and not self._conditions.is_stalled:
            self._timer = self._loop.call_at(self._queue[0][0], self._flush)

    def _throttle(self) -> None:
        source = self._source
        if source is None or source.is_closing():
            return
        if self._is_reading and self._num_queued_bytes > MAX_QUEUED_BYTES:
            self._is_reading = False
            source.pause_reading()
        elif not self._is_reading and self._num_queued_bytes <= MAX_QUEUED_BYTES // 2:
            self._is_reading = True
            source.resume_reading()


_DIAL_S = 10.0
_LINGER_RESET = struct.pack("ii", 1, 0)  # close sends RST and forgets what was not sent
_OPPOSITE = {Direction.UP: Direction.DOWN, Direction.DOWN: Direction.UP}


class ConnectionHost(Protocol):
    """What a connection needs of the proxy that it belongs to."""

    loop: asyncio.AbstractEventLoop
    target: tuple[str, int]
    conditions: LinkConditions
    seed: int
    bandwidth_limits: dict[Direction, BandwidthLimit]

    def note(self, connection: int, words: str) -> None: ...

    def has_space(self) -> bool: ...

    def joined(self, connection: "ProxiedConnection") -> None: ...

    def left(self, connection: "ProxiedConnection") -> None: ...


class SocketEnd(asyncio.Protocol):
    """One socket of a connection: what it reads goes `way`, what comes back it writes."""

    def __init__(self, connection: "ProxiedConnection", way: Direction) -> None:
        self._connection, self._direction = connection, way
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.made(self._direction)

    def data_received(self, data: bytes) -> None:
        self._connection.receive_bytes(self._direction, data)

    def eof_received(self) -> bool:
        self._connection.pipes[self._direction].end(CloseReason.CLOSE)
        return True  # the other direction may continue

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._connection.lost(self._direction, exc)

    def pause_writing(self) -> None:
        self._connection.pipes[_OPPOSITE[self._direction]].full(True)

    def resume_writing(self) -> None:
        self._connection.pipes[_OPPOSITE[self._direction]].full(False)

    def shut(self) -> None:
        if self.transport is not None:
            with contextlib.suppress(OSError):  # its peer may have gone meanwhile
                self.transport.write_eof()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            with contextlib.suppress(OSError):
                bare = self.transport.get_extra_info("socket")
                bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            self.transport.abort()


class ProxiedConnection:
    """Begins when its first side was accepted, ends when both sides are gone."""

    def __init__(self, host: ConnectionHost, number: int) -> None:
        self._host, self.number = host, number
        self.ends = {way: SocketEnd(self, way) for way in Direction}
        self.pipes = {way: self._pipe(way) for way in Direction}
        self._num_bytes = 0  # since the conditions came
        self._num_closed = 0
        self._is_over = False
        self._dialling: asyncio.Task[None] | None = None

    def _pipe(self, way: Direction) -> Pipe:
        host = self._host
        course = DeliverySchedule(
            way,
            host.bandwidth_limits[way],
            (host.seed, self.number, int(way is Direction.UP)),
            host.conditions,
        )
        return Pipe(host.loop, way, course, lambda ending: self._arrived(way, ending))

    def made(self, way: Direction) -> None:
        """A socket stands: the accepted one first, the target's after the dial."""
        transport = self.ends[way].transport
        assert transport is not None
        self.pipes[way].read_from(transport)
        if way is Direction.DOWN:
            if self._is_over:
                self.ends[way].abort()
                return
        elif not self._begins():
            return
        self.pipes[_OPPOSITE[way]].write_to(transport)

    def receive_bytes(self, way: Direction, data: bytes) -> None:
        pipe, most = self.pipes[way], self._host.conditions.resets_after_bytes
        if 0 <= most < self._num_bytes + len(data):
            if most > self._num_bytes:
                pipe.enqueue(data[: most - self._num_bytes])
            self.reset(f"reset after {most} bytes")
            return
        self._num_bytes += len(data)
        was_lost = pipe.is_lost
        pipe.enqueue(data)
        if pipe.is_lost and not was_lost:
            self._host.note(self.number, f"dark {way.value} from byte {pipe.num_bytes - len(data)} on")
        for words in pipe.notes():
            self._host.note(self.number, words)

    def set_conditions(self, conditions: LinkConditions) -> None:
        self._num_bytes = 0
        for pipe in self.pipes.values():
            pipe.set_conditions(conditions)
        if conditions.resets_after_bytes == 0:
            self.reset("reset by the conditions")

    def reset(self, words: str) -> None:
        self._host.note(self.number, words)
        for way in Direction:
            self.pipes[way].stop()
            self.ends[way].abort()
        self._leave()

    def lost(self, way: Direction, exc: Exception | None) -> None:
        """One socket is gone, by its peer (then with an error) or by us."""
        if self._is_over:
            return
        self.pipes[_OPPOSITE[way]].stop()
        if exc is not None:
            self.pipes[way].end(CloseReason.RESET)
        if all(end.transport is None for end in self.ends.values()):
            self._leave()

    def traffic(self) -> list[PipeTraffic]:
        return [
            PipeTraffic(self.number, way, pipe.num_bytes, pipe.num_chunks, pipe.num_bytes_arrived)
            for way, pipe in self.pipes.items()
        ]

    def _begins(self) -> bool:
        host, conditions = self._host, self._host.conditions
        is_welcome = host.has_space()
        host.joined(self)
        if not is_welcome:
            self.reset(f"refused: more than {conditions.max_connections} connections")
        elif conditions.resets_after_bytes == 0:
            self.reset("reset as it came")
        elif conditions.is_dark and conditions.affects(Direction.UP):
            for pipe in self.pipes.values():
                pipe.stop()
            host.note(self.number, "came in the dark")
        else:
            host.note(self.number, "came")
            self._dialling = host.loop.create_task(self._dial(1.5 * conditions.rtt_ms * MS))
            return True
        return False

    async def _dial(self, after_s: float) -> None:
        """Connects to the target once the client's hand-shake would have reached it over a link this long."""
        loop, target = self._host.loop, self._host.target
        try:
            if after_s > 0:
                await asyncio.sleep(after_s)
            if not self._is_over:
                dialled = loop.create_connection(lambda: self.ends[Direction.DOWN], *target)
                await asyncio.wait_for(dialled, _DIAL_S)
        except (OSError, TimeoutError) as error:
            await asyncio.sleep(after_s / 3)
            self.reset(f"target {target[0]}:{target[1]} does not answer: {error}")

    def _arrived(self, way: Direction, ending: CloseReason) -> None:
        """An ending has come to the far side."""
        self._host.note(self.number, f"{ending.value} {way.value}")
        if ending is CloseReason.RESET:
            self.ends[_OPPOSITE[way]].abort()
            return
        self.ends[_OPPOSITE[way]].shut()
        self._num_closed += 1
        if self._num_closed == len(self.ends):
            for end in self.ends.values():
                end.close()

    def _leave(self) -> None:
        if not self._is_over:
            self._is_over = True
            if self._dialling is not None and not self._dialling.done():
                self._dialling.cancel()
            self._host.left(self)
