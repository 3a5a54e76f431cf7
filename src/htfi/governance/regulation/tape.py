"""The market's recent past in an instrument: prices by the second, volume, and the usual move of the price."""

import math
from bisect import bisect_right
from collections import deque
from itertools import islice

from htfi.domain.time import NS_PER_S

KEPT_NS = 1_200 * NS_PER_S
STEP_NS = 10 * NS_PER_S
MIN_STEPS = 20  # before the usual move is known
_DECAY = math.exp(-1 / 60)  # of a step: a memory of ten minutes
_MAX_STEP_SIGMAS = 3.0  # a step counts for no more, so that the pattern looked for does not hide itself


class MarketTape:
    """Prices no closer than a second and volume, over the last twenty minutes; constant memory."""

    __slots__ = (
        "_mids",
        "_num_steps",
        "_step_mid",
        "_step_ns",
        "_times",
        "_variance",
        "_volume",
        "_volume_times",
    )

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=KEPT_NS // NS_PER_S)
        self._mids: deque[float] = deque(maxlen=KEPT_NS // NS_PER_S)
        self._volume_times: deque[int] = deque(maxlen=KEPT_NS // NS_PER_S)
        self._volume: deque[float] = deque(maxlen=KEPT_NS // NS_PER_S)
        self._step_ns, self._step_mid = 0, 0.0
        self._num_steps = 0
        self._variance = 0.0  # of a step's return

    def take(self, at_ns: int, mid: float | None, quantity: int) -> None:
        if quantity > 0:
            self._add_volume(at_ns, quantity)
        if mid is None or mid <= 0.0:
            return
        if self._times and at_ns - self._times[-1] < NS_PER_S:
            self._mids[-1] = mid
        else:
            self._times.append(at_ns)
            self._mids.append(mid)
        if not self._step_ns or at_ns - self._step_ns > 10 * STEP_NS:  # a pause is no move
            self._step_ns, self._step_mid = at_ns, mid
        elif at_ns - self._step_ns >= STEP_NS:
            self._take_step(math.log(mid / self._step_mid) / math.sqrt((at_ns - self._step_ns) / STEP_NS))
            self._step_ns, self._step_mid = at_ns, mid

    def usual_move(self, span_ns: int) -> float | None:
        """One standard deviation of the log return over a span; None before enough was seen."""
        if self._num_steps < MIN_STEPS or self._variance <= 0.0:
            return None
        return math.sqrt(self._variance * max(span_ns, STEP_NS) / STEP_NS)

    def mid_at(self, at_ns: int) -> float | None:
        """The newest price at or before an instant; None where that is forgotten."""
        place = bisect_right(self._times, at_ns)
        return self._mids[place - 1] if place else None

    def volume_since(self, at_ns: int) -> float:
        """Lots of all participants from an instant on, by the second."""
        place = bisect_right(self._volume_times, at_ns - NS_PER_S)
        return sum(islice(self._volume, place, None))

    def _add_volume(self, at_ns: int, quantity: int) -> None:
        second_ns = at_ns - at_ns % NS_PER_S
        if self._volume_times and self._volume_times[-1] == second_ns:
            self._volume[-1] += quantity
        else:
            self._volume_times.append(second_ns)
            self._volume.append(quantity)

    def _take_step(self, change: float) -> None:
        self._num_steps += 1
        if self._num_steps > MIN_STEPS:
            limit = _MAX_STEP_SIGMAS * math.sqrt(self._variance)
            change = max(-limit, min(limit, change)) if limit > 0.0 else change
        weight = max(1 - _DECAY, 1 / self._num_steps)
        self._variance += weight * (change * change - self._variance)
