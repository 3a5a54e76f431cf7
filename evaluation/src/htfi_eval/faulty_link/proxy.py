"""The proxy on its event loop: listens at its address, and holds the conditions and every connection under it."""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Coroutine
from typing import Any, NamedTuple

from htfi.domain.errors import DependencyUnavailable
from htfi_eval.faulty_link.conditions import Direction, LinkConditions, LinkSchedule
from htfi_eval.faulty_link.connection import PipeTraffic, ProxiedConnection, SocketEnd
from htfi_eval.faulty_link.delivery import BandwidthLimit

MAX_TIMELINE = 4096
_BACKLOG = 1024
_CLOSE_S = 2.0


class TimelineEntry(NamedTuple):
    """Something that the link did. `connection` counts from 0 in order of coming; −1 means the link itself."""

    at_s: float
    connection: int
    text: str


class Proxy:
    """All state of a link; every method runs on its loop."""

    def __init__(self, target: tuple[str, int], conditions: LinkConditions, seed: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.target, self.conditions, self.seed = target, conditions, seed
        self.bandwidth_limits = {way: BandwidthLimit() for way in Direction}
        self.notes: deque[TimelineEntry] = deque(maxlen=MAX_TIMELINE)
        self._open: dict[int, ProxiedConnection] = {}
        self._closed_traffic: list[PipeTraffic] = []
        self._num_connections = 0
        self._start_s = self.loop.time()
        self._timers: list[asyncio.TimerHandle] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeper: socket.socket | None = None
        self._listening: socket.socket | None = None

    async def open(self, listen: tuple[str, int]) -> tuple[str, int]:
        """Raises: DependencyUnavailable."""
        # a bound socket that never listens holds the port while no process is to answer there
        self._keeper = _bound(listen)
        self.address: tuple[str, int] = self._keeper.getsockname()[:2]
        self.note(-1, f"conditions: {self.conditions}")
        self._listen()
        return self.address

    async def set_conditions(self, conditions: LinkConditions) -> None:
        """The conditions from now on, whatever was to come."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        await self._change(conditions)

    async def play_schedule(self, schedule: LinkSchedule) -> None:
        """Conditions to come, in place of those that were to."""
        for timer in self._timers:
            timer.cancel()
        self._timers = [
            self.loop.call_later(after_s, self._follow_schedule, conditions)
            for after_s, conditions in schedule
        ]

    async def set_target(self, target: tuple[str, int]) -> None:
        self.target = target
        self.note(-1, f"target: {target[0]}:{target[1]}")

    async def reset(self, words: str = "reset on demand") -> None:
        for connection in list(self._open.values()):
            connection.reset(words)

    async def traffic(self) -> list[PipeTraffic]:
        return self._closed_traffic + [
            one for connection in self._open.values() for one in connection.traffic()
        ]

    async def timeline(self) -> list[TimelineEntry]:
        return list(self.notes)

    async def close(self) -> None:
        await self.play_schedule(())
        self._stop_listening()
        if self._keeper is not None:
            self._keeper.close()
        if self._tasks:  # what was accepted joins first
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        await self.reset("the link was closed")
        dialling = asyncio.all_tasks() - {asyncio.current_task()}
        if dialling:  # cancelled by the reset
            await asyncio.wait(dialling, timeout=_CLOSE_S)
        for _ in range(3):  # transports close their sockets in a later turn
            await asyncio.sleep(0)

    def note(self, connection: int, words: str) -> None:
        self.notes.append(TimelineEntry(self.loop.time() - self._start_s, connection, words))

    def has_space(self) -> bool:
        return len(self._open) < self.conditions.max_connections

    def joined(self, connection: ProxiedConnection) -> None:
        self._open[connection.number] = connection

    def left(self, connection: ProxiedConnection) -> None:
        self._closed_traffic += connection.traffic()
        del self._open[connection.number]

    def _follow_schedule(self, conditions: LinkConditions) -> None:
        self._start(self._change(conditions))

    async def _change(self, conditions: LinkConditions) -> None:
        self.conditions = conditions
        self.note(-1, f"conditions: {conditions}")
        for connection in list(self._open.values()):
            connection.set_conditions(conditions)
        self._listen()

    def _listen(self) -> None:
        if self.conditions.refuses:
            self._stop_listening()
        elif self._listening is None:
            self._listening = _bound(self.address)
            self._listening.setblocking(False)
            self._listening.listen(_BACKLOG)
            self.loop.add_reader(self._listening, self._accept, self._listening)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self.loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def _accept(self, listening: socket.socket) -> None:
        # not asyncio's server: closed while it accepts, it loses the socket unclosed
        with contextlib.suppress(OSError):  # none left, or gone again
            for _ in range(_BACKLOG):
                accepted, _ = listening.accept()
                end = ProxiedConnection(self, self._num_connections).ends[Direction.UP]
                self._num_connections += 1
                self._start(self._adopt(accepted, end))

    async def _adopt(self, accepted: socket.socket, end: SocketEnd) -> None:
        await self.loop.connect_accepted_socket(lambda: end, accepted)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _bound(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise DependencyUnavailable(
            f"faulty link: cannot listen on {address[0]}:{address[1]}: {error}"
        ) from error
    return bound
