"""Features and regime of series of closed bars, built here or fed. market.state keeps all of them in one table."""

import math
from array import array
from collections.abc import Sequence
from typing import Any

from htfi.domain.decision import Regime
from htfi.domain.events import Bar
from htfi.market.config import is_intraday
from htfi.market.regime import Detector

# In the order in which a decision states them.
FEATURES = (
    "range_last",
    "range_vol",
    "return_last",
    "ewma_vol",
    "vol_ratio",
    "return_sigmas",
    "volume_ratio",
)

WINDOW = 20  # bars in range_vol and volume_ratio
DECAY = 0.94  # of ewma_vol a bar: RiskMetrics
FAST_BARS = 10.0  # half-lives of the bar regime
SLOW_BARS = 250.0

_PARKINSON = 1.0 / (4.0 * math.log(2.0))


class Series:
    """One series. `gap_ns`: a wider space between two bars of an intraday series is a night, and no return spans it."""

    def __init__(self, is_intraday: bool, gap_ns: int) -> None:
        self.is_intraday = is_intraday
        self.gap_ns = gap_ns
        self.num_bars = 0
        self.end_ns = 0
        self.close = 0.0
        self.variance = 0.0
        self.num_returns = 0
        self.move = 0.0
        self.range = 0.0
        self.volume_ratio = 0.0
        self.ranges = array("d", bytes(8 * WINDOW))  # (ln H/L)²
        self.volumes = array("d", bytes(8 * WINDOW))
        self.detector = Detector(FAST_BARS, SLOW_BARS)

    def add(self, bar: Bar) -> None:
        """Take in the bar that closed. The return starts at the close before, or, past a gap, at the open."""
        price_close, price_open = bar.close, bar.open
        start = self.close
        if self.num_bars == 0 or (self.is_intraday and bar.start_ns - self.end_ns > self.gap_ns):
            start = price_open
        self.range = math.log(bar.high) - math.log(bar.low)
        self.move = math.log(price_close) - math.log(start)
        if self.num_bars > 0 or self.is_intraday:
            self._learn(self.move)
        self._roll(bar.volume)
        self.close = price_close
        self.end_ns = bar.end_ns
        self.num_bars += 1

    def _learn(self, move: float) -> None:
        self.num_returns += 1
        self.variance += max(1.0 - DECAY, 1.0 / self.num_returns) * (move * move - self.variance)
        estimate = move * move
        if self.range > 0.0:  # a range says more than a return; a series of closes alone has none
            estimate = 0.5 * (estimate + _PARKINSON * self.range * self.range)
        self.detector.update(estimate, move)

    def _roll(self, volume: float) -> None:
        count = min(self.num_bars, WINDOW)
        total = 0.0
        for at in range(count):
            total += self.volumes[at]
        self.volume_ratio = volume * count / total if total > 0.0 else 0.0
        place = self.num_bars % WINDOW
        self.volumes[place] = volume
        self.ranges[place] = self.range * self.range

    def range_volatility(self) -> float:
        """Parkinson's, over the last bars: sqrt(mean (ln H/L)² / (4 ln 2)), per bar."""
        count = min(self.num_bars, WINDOW)
        total = 0.0
        for at in range(count):
            total += self.ranges[at]
        return math.sqrt(_PARKINSON * total / count)

    def fill(self, values: Any, at: int) -> None:
        """Write the `FEATURES` that are defined so far, from a place of `values` (float64) on."""
        if self.num_bars == 0:
            return
        values[at] = self.range
        values[at + 1] = self.range_volatility()
        if self.num_returns > 0:
            values[at + 2] = self.move
            values[at + 3] = math.sqrt(self.variance)
            values[at + 4] = self.detector.ratio()
            if self.num_returns > 1:
                values[at + 5] = self.detector.last_sigmas()
        if self.volume_ratio > 0.0:
            values[at + 6] = self.volume_ratio

    def level(self) -> int:
        return self.detector.level

    def regime(self) -> Regime:
        return self.detector.regime()

    def state(self) -> list[float]:
        scalars: list[float] = [self.num_bars, self.end_ns, self.num_returns]
        scalars += [self.close, self.variance, self.move, self.range, self.volume_ratio]
        for at in range(WINDOW):
            scalars += [self.ranges[at], self.volumes[at]]
        return scalars + self.detector.state()

    def restore(self, state: list[float]) -> None:
        self.num_bars, self.end_ns, self.num_returns = int(state[0]), int(state[1]), int(state[2])
        self.close, self.variance, self.move, self.range, self.volume_ratio = state[3:8]
        for at in range(WINDOW):
            self.ranges[at], self.volumes[at] = state[8 + 2 * at], state[9 + 2 * at]
        self.detector.restore(state[8 + 2 * WINDOW :])


class SeriesTable:
    """All series, by symbol and interval; each is made with its first bar."""

    def __init__(self, gap_ns: int) -> None:
        self.gap_ns = gap_ns
        self.series: dict[tuple[str, str], Series] = {}

    def find(self, symbol: str, interval: str) -> Series | None:
        return self.series.get((symbol, interval))

    def add(self, bars: Sequence[Bar]) -> None:
        """Take in bars that closed, in order."""
        for bar in bars:
            found = self.series.get((bar.symbol, bar.interval))
            if found is None:
                found = self.begin(bar.symbol, bar.interval)
            found.add(bar)

    def begin(self, symbol: str, interval: str) -> Series:
        """A new series."""
        found = self.series[symbol, interval] = Series(is_intraday(interval), self.gap_ns)
        return found
