"""An event loop whose timers are late by hundredths of a millisecond: asyncio's own rounds up to a whole one.

The faulty link for synchronous code: a proxy in a thread of its own, between a client and a target over TCP.
"""

import asyncio
import dataclasses
import select
import selectors
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from htfi.domain.errors import DependencyUnavailable
from htfi_eval.faulty_link.conditions import CLEAR, Direction, LinkConditions, LinkSchedule
from htfi_eval.faulty_link.connection import PipeTraffic
from htfi_eval.faulty_link.proxy import Proxy, TimelineEntry

_MAX_SELECT_FD = 1024  # of select(2)
_EARLY = 0.005  # of a wait that the kernel may be late by, and a fixed part: then the loop asks again
_EARLY_S = 0.000_12


class _PreciseSelector(selectors.DefaultSelector):
    """Sleeps a little short in select(2), which takes microseconds, on the one descriptor that stands for all others.

    The loop finds its timer not yet due and asks again for the rest, so that only the last 0.1 ms is spent awake.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        fileno = getattr(self, "fileno", None)  # epoll and kqueue have one
        if timeout is not None and timeout > 0 and fileno is not None and fileno() < _MAX_SELECT_FD:
            short_s = timeout * (1.0 - _EARLY) - _EARLY_S
            if short_s > 0:
                select.select([fileno()], (), (), short_s)
            timeout = 0
        return super().select(timeout)


def precise_timer_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(_PreciseSelector())


T = TypeVar("T")
_TIMEOUT_S = 10.0


class LinkControl(ABC):
    """What can be asked of a faulty link, wherever it runs. Every method has taken effect when it returns."""

    target: tuple[str, int]
    address: tuple[str, int]
    seed: int

    @property
    @abstractmethod
    def conditions(self) -> LinkConditions: ...

    @conditions.setter
    @abstractmethod
    def conditions(self, conditions: LinkConditions) -> None:
        """From now on, in place of what a schedule still held."""

    @abstractmethod
    def play_schedule(self, schedule: LinkSchedule) -> None:
        """Conditions to come, counted from now. Nothing waits for them."""

    @abstractmethod
    def set_target(self, target: tuple[str, int]) -> None:
        """Where connections go that come from now on: a target that was restarted may have another port."""

    @abstractmethod
    def reset(self) -> None:
        """RST to both sides of every open connection."""

    @abstractmethod
    def traffic(self) -> list[PipeTraffic]:
        """Counts of every connection so far, each way."""

    @abstractmethod
    def timeline(self) -> list[TimelineEntry]:
        """What it did, as far back as it remembers."""

    @abstractmethod
    def close(self) -> None:
        """Resets what is open and frees the port."""

    def stall(self, for_s: float) -> None:
        """No byte passes for so long, then all that waited; the conditions stays as it is beside that."""
        now = self.conditions
        self.conditions = dataclasses.replace(now, is_stalled=True)
        self.play_schedule(((for_s, now),))

    def num_bytes(self, way: Direction) -> int:
        return sum(one.num_bytes for one in self.traffic() if one.direction is way)

    def describe(self, num_notes: int = 40) -> str:
        """Seed, conditions and the last deeds, for the message of a test that failed."""
        host, port = self.address
        head = f"faulty link {host}:{port} → {self.target[0]}:{self.target[1]}, seed {self.seed}: {self.conditions}"
        notes = self.timeline()[-num_notes:]
        return "\n".join([head, *(f"  {at_s:9.4f} s  #{number}  {words}" for at_s, number, words in notes)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class FaultyLink(LinkControl):
    """`with FaultyLink(target) as link:` – connect to `link.address`, and change `link.conditions` at any time.

    Any thread may do so. A user that computes in Python between its frames delays the link's own thread by up to 5 ms
    at a time: where delays are measured, take `FaultyLinkProcess`. Raises: DependencyUnavailable.
    """

    def __init__(
        self,
        target: tuple[str, int],
        conditions: LinkConditions = CLEAR,
        seed: int = 0,
        listen: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.target, self.seed = target, seed
        self._loop = precise_timer_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-link", daemon=True)
        self._thread.start()
        self._is_closed = False
        try:
            self._proxy = self._run_in_loop(self._open(conditions))
            self.address = self._run_in_loop(self._proxy.open(listen))
        except BaseException:
            self._end()
            raise

    @property
    def conditions(self) -> LinkConditions:
        return self._proxy.conditions

    @conditions.setter
    def conditions(self, conditions: LinkConditions) -> None:
        self._run_in_loop(self._proxy.set_conditions(conditions))

    def play_schedule(self, schedule: LinkSchedule) -> None:
        self._run_in_loop(self._proxy.play_schedule(schedule))

    def set_target(self, target: tuple[str, int]) -> None:
        self.target = target
        self._run_in_loop(self._proxy.set_target(target))

    def reset(self) -> None:
        self._run_in_loop(self._proxy.reset())

    def traffic(self) -> list[PipeTraffic]:
        return self._run_in_loop(self._proxy.traffic())

    def timeline(self) -> list[TimelineEntry]:
        return self._run_in_loop(self._proxy.timeline())

    def close(self) -> None:
        if not self._is_closed:
            try:
                self._run_in_loop(self._proxy.close())
            finally:
                self._end()

    async def _open(self, conditions: LinkConditions) -> Proxy:
        return Proxy(self.target, conditions, self.seed)

    def _run_in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        if self._is_closed:
            work.close()
            raise DependencyUnavailable("faulty link: it has been closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)

    def _end(self) -> None:
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.close()
