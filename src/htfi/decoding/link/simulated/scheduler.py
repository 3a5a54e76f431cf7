"""Time that moves from event to event, for the simulated network: never by itself, and always in the same order."""

import heapq
from collections import deque
from collections.abc import Callable

from htfi.domain.errors import InvalidInput

NUM_NOTES = 400
_MAX_SIMULTANEOUS = 100_000


class EventScheduler:
    """Seconds from 0. While `is_held`, a step runs: what it consumes is added, and nothing else happens."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._num_events = 0
        self._num_at_once = 0
        self._spent_s = 0.0
        self.is_held = False
        self.notes: deque[tuple[float, str]] = deque(maxlen=NUM_NOTES)

    @property
    def now_s(self) -> float:
        return self._now_s + self._spent_s

    def at(self, at_s: float, action: Callable[[], None]) -> None:
        self._num_events += 1
        heapq.heappush(self._events, (at_s, self._num_events, action))

    def note(self, event: str) -> None:
        self.notes.append((self.now_s, event))

    def advance(self, until_s: float) -> None:
        """Everything that happens until then. Raises: InvalidInput within a step."""
        if self.is_held:
            raise InvalidInput("simulated network: a step cannot move time on: it consumes it")
        while self.next_by(until_s):
            pass
        self._now_s = max(self._now_s, until_s)

    def next_by(self, until_s: float) -> bool:
        """The next thing that happens until then; False where there is none."""
        if not self._events or self._events[0][0] > until_s:
            return False
        at_s, _, action = heapq.heappop(self._events)
        self._num_at_once = self._num_at_once + 1 if at_s <= self._now_s else 0
        if self._num_at_once > _MAX_SIMULTANEOUS:
            raise InvalidInput("simulated network: time stands still; is there a step that never waits?")
        self._now_s = max(self._now_s, at_s)
        action()
        return True

    def consume_time(self, seconds: float) -> None:
        if self.is_held:
            self._spent_s += seconds
        else:
            self.advance(self._now_s + seconds)

    def hold(self, step: Callable[[], float | None]) -> tuple[float, float | None]:
        """Runs a step: the seconds that it consumed, and what it returned. Time goes on where it began."""
        self.is_held = True
        try:
            wants_s = step()
            return self._spent_s, wants_s
        finally:
            self.is_held, self._spent_s = False, 0.0
