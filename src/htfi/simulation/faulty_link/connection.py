"""One proxied connection: two sockets, the two pipes between them, and how it begins and ends."""

import asyncio
import contextlib
import socket
import struct
from typing import Protocol, cast

from htfi.simulation.faulty_link.course import MS, Course, Lane
from htfi.simulation.faulty_link.pipe import Ending, Pipe, Traffic
from htfi.simulation.faulty_link.weather import Way, Weather

_DIAL_S = 10.0
_LINGER_RESET = struct.pack("ii", 1, 0)  # close sends RST and forgets what was not sent
_BACK = {Way.UP: Way.DOWN, Way.DOWN: Way.UP}


class Host(Protocol):
    """What a connection needs of the proxy that it belongs to."""

    loop: asyncio.AbstractEventLoop
    target: tuple[str, int]
    weather: Weather
    seed: int
    lanes: dict[Way, Lane]

    def note(self, connection: int, words: str) -> None: ...

    def has_room(self) -> bool: ...

    def joined(self, connection: "Connection") -> None: ...

    def left(self, connection: "Connection") -> None: ...


class End(asyncio.Protocol):
    """One socket of a connection: what it reads goes `way`, what comes back it writes."""

    def __init__(self, connection: "Connection", way: Way) -> None:
        self._connection, self._way = connection, way
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.made(self._way)

    def data_received(self, data: bytes) -> None:
        self._connection.take(self._way, data)

    def eof_received(self) -> bool:
        self._connection.pipes[self._way].end(Ending.CLOSE)
        return True  # the other direction may go on

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._connection.lost(self._way, exc)

    def pause_writing(self) -> None:
        self._connection.pipes[_BACK[self._way]].full(True)

    def resume_writing(self) -> None:
        self._connection.pipes[_BACK[self._way]].full(False)

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


class Connection:
    """Begins when its first side was accepted, ends when both sides are gone."""

    def __init__(self, host: Host, number: int) -> None:
        self._host, self.number = host, number
        self.ends = {way: End(self, way) for way in Way}
        self.pipes = {way: self._pipe(way) for way in Way}
        self._num_bytes = 0  # since the weather came
        self._num_closed = 0
        self._is_over = False
        self._dialling: asyncio.Task[None] | None = None

    def _pipe(self, way: Way) -> Pipe:
        host = self._host
        course = Course(way, host.lanes[way], (host.seed, self.number, int(way is Way.UP)), host.weather)
        return Pipe(host.loop, way, course, lambda ending: self._arrived(way, ending))

    def made(self, way: Way) -> None:
        """A socket stands: the accepted one first, the target's after the dial."""
        transport = self.ends[way].transport
        assert transport is not None
        self.pipes[way].read_from(transport)
        if way is Way.DOWN:
            if self._is_over:
                self.ends[way].abort()
                return
        elif not self._begins():
            return
        self.pipes[_BACK[way]].write_to(transport)

    def take(self, way: Way, data: bytes) -> None:
        pipe, most = self.pipes[way], self._host.weather.resets_after_bytes
        if 0 <= most < self._num_bytes + len(data):
            if most > self._num_bytes:
                pipe.take(data[: most - self._num_bytes])
            self.reset(f"reset after {most} bytes")
            return
        self._num_bytes += len(data)
        was_lost = pipe.is_lost
        pipe.take(data)
        if pipe.is_lost and not was_lost:
            self._host.note(self.number, f"dark {way.value} from byte {pipe.num_bytes - len(data)} on")
        for words in pipe.notes():
            self._host.note(self.number, words)

    def enter(self, weather: Weather) -> None:
        self._num_bytes = 0
        for pipe in self.pipes.values():
            pipe.enter(weather)
        if weather.resets_after_bytes == 0:
            self.reset("reset by the weather")

    def reset(self, words: str) -> None:
        self._host.note(self.number, words)
        for way in Way:
            self.pipes[way].stop()
            self.ends[way].abort()
        self._leave()

    def lost(self, way: Way, exc: Exception | None) -> None:
        """One socket is gone, by its peer (then with an error) or by us."""
        if self._is_over:
            return
        self.pipes[_BACK[way]].stop()
        if exc is not None:
            self.pipes[way].end(Ending.RESET)
        if all(end.transport is None for end in self.ends.values()):
            self._leave()

    def traffic(self) -> list[Traffic]:
        return [
            Traffic(self.number, way, pipe.num_bytes, pipe.num_chunks, pipe.num_bytes_arrived)
            for way, pipe in self.pipes.items()
        ]

    def _begins(self) -> bool:
        host, weather = self._host, self._host.weather
        is_welcome = host.has_room()
        host.joined(self)
        if not is_welcome:
            self.reset(f"refused: more than {weather.max_connections} connections")
        elif weather.resets_after_bytes == 0:
            self.reset("reset as it came")
        elif weather.is_dark and weather.spoils(Way.UP):
            for pipe in self.pipes.values():
                pipe.stop()
            host.note(self.number, "came in the dark")
        else:
            host.note(self.number, "came")
            self._dialling = host.loop.create_task(self._dial(1.5 * weather.rtt_ms * MS))
            return True
        return False

    async def _dial(self, after_s: float) -> None:
        """Connects to the target once the client's hand-shake would have reached it over a link this long."""
        loop, target = self._host.loop, self._host.target
        try:
            if after_s > 0:
                await asyncio.sleep(after_s)
            if not self._is_over:
                dialled = loop.create_connection(lambda: self.ends[Way.DOWN], *target)
                await asyncio.wait_for(dialled, _DIAL_S)
        except (OSError, TimeoutError) as error:
            await asyncio.sleep(after_s / 3)
            self.reset(f"target {target[0]}:{target[1]} does not answer: {error}")

    def _arrived(self, way: Way, ending: Ending) -> None:
        """An ending has come to the far side."""
        self._host.note(self.number, f"{ending.value} {way.value}")
        if ending is Ending.RESET:
            self.ends[_BACK[way]].abort()
            return
        self.ends[_BACK[way]].shut()
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
