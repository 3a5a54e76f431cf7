"""One direction of one proxied connection, on the event loop: what was read waits here until it is due."""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from htfi.simulation.faulty_link.course import Course
from htfi.simulation.faulty_link.weather import Way, Weather

MOST_QUEUED_BYTES = 1 << 22  # then the source is read no further: the window of a TCP connection


class Ending(Enum):
    """How a side stops speaking."""

    CLOSE = "closed"
    RESET = "was reset"


class Traffic(NamedTuple):
    """Of one direction of one connection. A chunk is one read: at least one segment of TCP."""

    connection: int
    way: Way
    num_bytes: int
    num_chunks: int
    num_bytes_arrived: int


class Pipe:
    """Reads come in by `take` and `end`, and leave at `sink` when they are due and the weather lets them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, way: Way, course: Course, ended: Callable[[Ending], None]
    ) -> None:
        self.way = way
        self._loop, self._course, self._ended = loop, course, ended
        self._queue: deque[tuple[float, bytes | Ending]] = deque()
        self._num_queued_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._source: asyncio.ReadTransport | None = None
        self._sink: asyncio.WriteTransport | None = None
        self._is_full = False  # the sink takes no more now
        self._is_reading = True
        self.is_lost = False  # bytes were swallowed: nothing after them makes sense
        self.num_bytes = self.num_chunks = self.num_bytes_arrived = 0

    @property
    def _weather(self) -> Weather:
        return self._course.weather

    def enter(self, weather: Weather) -> None:
        self._course.enter(weather)
        self._flush()

    def notes(self) -> list[str]:
        notes, self._course.notes = self._course.notes, []
        return notes

    def read_from(self, source: asyncio.ReadTransport) -> None:
        self._source = source

    def write_to(self, sink: asyncio.WriteTransport) -> None:
        self._sink = sink
        self._flush()

    def take(self, data: bytes) -> None:
        self.num_bytes += len(data)
        self.num_chunks += 1
        if self._swallows():
            return
        for due_s, part in self._course.pieces(self._loop.time(), data):
            self._queue.append((due_s, part))
            self._num_queued_bytes += len(part)
        self._flush()

    def end(self, ending: Ending) -> None:
        if not self._swallows():
            self._queue.append((self._course.end_s(self._loop.time()), ending))
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
        if self._weather.is_dark and self._weather.spoils(self.way):
            self.is_lost = True
        return self.is_lost

    def _flush(self) -> None:
        queue, sink = self._queue, self._sink
        while queue and sink is not None and not self._is_full and not self._weather.is_stalled:
            due_s, part = queue[0]
            if due_s > self._loop.time():
                break
            queue.popleft()
            if isinstance(part, Ending):
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
        if self._queue and self._sink is not None and not self._is_full and not self._weather.is_stalled:
            self._timer = self._loop.call_at(self._queue[0][0], self._flush)

    def _throttle(self) -> None:
        source = self._source
        if source is None or source.is_closing():
            return
        if self._is_reading and self._num_queued_bytes > MOST_QUEUED_BYTES:
            self._is_reading = False
            source.pause_reading()
        elif not self._is_reading and self._num_queued_bytes <= MOST_QUEUED_BYTES // 2:
            self._is_reading = True
            source.resume_reading()
