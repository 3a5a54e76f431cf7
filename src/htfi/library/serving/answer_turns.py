"""Whose question is worked out now, where tenants ask for more than the machine has: who used least of it lately.

A question that is being worked out is paused (its process is stopped, and goes on later) while that of a tenant is
worked out which has used less, so that who asks seldom does not wait for who asks often. What counts is processor time
of turns by the tenant's weight, and the past counts less and less: half as much after 1.4 s. At a cloud's engine a
tenant that was idle joins at the smallest counter; here having asked little counts, and what was used while no
other wanted it is forgotten in seconds.
"""

import asyncio
import math
import os
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from htfi.scheduling.turns.fair_share import UsageCounters, charge_usage

_SLICE_S = 0.025  # between looks at whose turn it is, while somebody waits
_GRACE_MS = 20.0  # who works is not paused for less
_MEMORY_MS = 2_000.0  # over which what was used falls to 1/e
_NOTHING_MS = 0.01


class PausableWork(Protocol):
    """A question that is being worked out."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


@dataclass(slots=True)
class _Turn:
    work: PausableWork
    may_begin: asyncio.Future[None]
    is_running: bool = False


def decayed(counters: UsageCounters, elapsed_ms: float) -> UsageCounters:
    """Counters after a time in which nothing was used; what has come to nothing is left out."""
    kept = math.exp(-elapsed_ms / _MEMORY_MS)
    return {name: ms * kept for name, ms in counters.items() if ms * kept > _NOTHING_MS}


def choose_running(
    counters: UsageCounters, wanting: Iterable[str], running: Iterable[str], num_at_once: int
) -> set[str]:
    """Of those who want a turn the ones that used least; among near equals those that have it keep it."""
    has = set(running)
    ordered = sorted(
        wanting, key=lambda name: (counters.get(name, 0.0) - (_GRACE_MS if name in has else 0.0), name)
    )
    return set(ordered[:num_at_once])


@dataclass(slots=True)
class AnswerTurns:
    """The turns of a service's tenants, each of which has one question worked out at a time."""

    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    num_at_once: int = max((os.cpu_count() or 2) - 1, 1)
    _counters: UsageCounters = field(default_factory=dict[str, float])
    _turns: dict[str, _Turn] = field(default_factory=dict[str, _Turn])
    _at_s: float = field(default_factory=time.monotonic)
    _timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, tenant: str, work: PausableWork) -> AsyncGenerator[None]:
        """Enter when it is the tenant's turn; `work` is paused and resumed until the block ends."""
        turn = _Turn(work, asyncio.get_running_loop().create_future())
        self._turns[tenant] = turn
        try:
            self._plan()
            await turn.may_begin
            yield
        finally:
            self._charge()
            del self._turns[tenant]
            self._plan()

    def _charge(self) -> None:
        now_s = time.monotonic()
        elapsed_s, self._at_s = now_s - self._at_s, now_s
        used = [
            (name, 1e3 * elapsed_s / self.weights.get(name, 1.0))
            for name, turn in self._turns.items()
            if turn.is_running
        ]
        self._counters = charge_usage(decayed(self._counters, 1e3 * elapsed_s), used)

    def _plan(self) -> None:
        self._charge()
        running = [name for name, turn in self._turns.items() if turn.is_running]
        chosen = choose_running(self._counters, self._turns, running, self.num_at_once)
        for name, turn in self._turns.items():
            if turn.is_running and name not in chosen:
                turn.is_running = False
                turn.work.pause()
        for name in chosen:
            turn = self._turns[name]
            if not turn.is_running:
                turn.is_running = True
                if turn.may_begin.done():
                    turn.work.resume()
                else:
                    turn.may_begin.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if len(self._turns) > self.num_at_once:
            self._timer = asyncio.get_running_loop().call_later(_SLICE_S, self._plan)
