"""What algorithms learn of an instrument's market: its volume by the time of day, its volatility, its volume a second.

Bounded: a fixed number of times of day. The same events give the same state.
"""

from dataclasses import dataclass, field
from itertools import accumulate

from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.execution.order_routing.venues import Flow

DAY_STEPS = 288  # times of day: of five minutes each
CURVE_STEPS = 16
_DAYS_KEPT = 0.8  # of what was seen a day before
_SIGMA_KEPT = 0.995  # of the variance that was seen a second before
_MAX_GAP_S = 60.0  # a longer silence says nothing of volatility


def _no_volume() -> list[float]:
    return [0.0] * DAY_STEPS


@dataclass(slots=True)
class ObservedMarket:
    """The market of one instrument as it was seen so far. Prices in ticks, quantities in lots."""

    profile: list[float] = field(default_factory=_no_volume)
    volume: Flow = field(default_factory=Flow)
    variance: float = 0.0  # of the middle, ticks² a second
    day: int = 0
    middle: float = 0.0
    middle_ns: int = 0
    last_middle: float = 0.0  # the newest, where the other one is that of the last step of a second

    def traded(self, lots: int, at_ns: int) -> None:
        """Somebody traded."""
        day = at_ns // NS_PER_DAY
        if day != self.day:
            if self.day:
                self.profile = [_DAYS_KEPT * one for one in self.profile]
            self.day = day
        self.profile[at_ns % NS_PER_DAY * DAY_STEPS // NS_PER_DAY] += lots
        self.volume.add(lots, at_ns)

    def moved(self, middle: float, at_ns: int) -> None:
        """The middle of the market is another; volatility is taken from steps of a second or more."""
        self.last_middle = middle
        gap_s = (at_ns - self.middle_ns) / NS_PER_S
        if self.middle and gap_s < 1.0:
            return
        if self.middle and gap_s <= _MAX_GAP_S:
            squared = (middle - self.middle) ** 2 / gap_s
            kept = _SIGMA_KEPT**gap_s
            self.variance = squared if not self.variance else kept * self.variance + (1 - kept) * squared
        self.middle, self.middle_ns = middle, at_ns

    def curve(self, start_ns: int, end_ns: int) -> tuple[float, ...]:
        """Expected cumulative volume between two instants, at equal steps from 0 to 1; empty: nothing is known."""
        length = end_ns - start_ns
        if length <= 0 or length > NS_PER_DAY:
            return ()
        middles = (start_ns + length * (2 * step + 1) // (2 * CURVE_STEPS) for step in range(CURVE_STEPS))
        each = [self.profile[at_ns % NS_PER_DAY * DAY_STEPS // NS_PER_DAY] for at_ns in middles]
        total = sum(each)
        if total <= 0.0:
            return ()
        return (0.0, *(one / total for one in accumulate(each)))
