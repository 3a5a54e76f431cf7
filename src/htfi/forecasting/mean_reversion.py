"""The expected move of series that return to a level of their own, as volatility indices do.

Prices of most things have no level to return to, so a way back is expected only where a test with enough bars says so.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.panel import BarBatch, Rows

Array = NDArray[np.float64]

_MIN_BARS = 500
_LEVEL_GAIN = 0.002  # of the level's mean, which is of all bars until there are 500
_KEEP = 0.999538008  # half-life of what the slopes rest on: 1,500 bars
_FIRST_BARS = 50  # before that there is no level to be away from
_MAX_DISTANCE = 3.0  # log price from its level
# Of the slope's t: under a random walk, Dickey and Fuller's is above 3.4 with a chance of 1%. Between, no change.
_SIGNIFICANT, _REFUTED = 3.5, 2.0
_HALF_TRUST_SQUARE = 4.0  # the t², of h bars, at which a slope is trusted by half


class MeanReversion:
    """For each horizon h: the move expected over h bars = slope · (level − log price), by least squares with fading.

    The level is a mean of the log price. A series is held to return once its slope over one bar is significant, and no
    longer when it is far from it; other series expect no move. Errors allow for overlap.
    """

    def __init__(self, horizons: tuple[int, ...]) -> None:
        self._horizons = np.array(horizons)
        self._longest, num = horizons[-1], len(horizons)
        self._columns = SeriesColumns()
        self._columns.declare("level", 0.0)
        self._columns.declare("distance", 0.0)
        self._columns.declare("distances", np.full(self._longest, np.nan))
        for name in ("xx", "xy", "yy", "bars", "slope", "coming"):
            self._columns.declare(name, np.zeros(num))
        self._columns.declare("does_return", 0, np.int64)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)

    def returns(self, index: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which rows [n] are held to return to their level."""
        return self._columns["does_return"][index] > 0

    def update(self, bars: BarBatch, log_price: Array) -> None:
        """Take in the log prices [n] at the end of these bars."""
        columns, rows = self._columns, bars.rows
        if compiled.core is not None:
            names = ("level", "distance", "does_return", "slope", "coming")
            compiled.core.read_levels(
                bars.index,
                bars.age,
                log_price,
                *(columns[name] for name in names),
                _LEVEL_GAIN,
                _MAX_DISTANCE,
            )
            return
        level = columns["level"][rows]
        level = level + np.maximum(1.0 / (bars.age + 1.0), _LEVEL_GAIN) * (log_price - level)
        distance = np.minimum(np.maximum(level - log_price, -_MAX_DISTANCE), _MAX_DISTANCE)
        columns["level"][rows], columns["distance"][rows] = level, distance
        is_on = columns["does_return"][rows] > 0
        columns["coming"][rows] = np.where(is_on[:, None], columns["slope"][rows] * distance[:, None], 0.0)

    def learn(self, bars: BarBatch, may_return: NDArray[np.bool_]) -> None:
        """Learn from the outcomes of the same bars, as they were; follows each `update`. Of rows [n] that may not
        return no move is expected."""
        columns, rows, at = self._columns, bars.rows, bars.index[:, None]
        if compiled.core is not None:
            names = (
                "distances",
                "xx",
                "xy",
                "yy",
                "bars",
                "slope",
                "distance",
                "does_return",
            )
            compiled.core.learn_levels(
                bars.index, bars.age, bars.outcomes, may_return.view(np.uint8), self._horizons,
                *(columns[name] for name in names), _KEEP, _FIRST_BARS, _MIN_BARS, _SIGNIFICANT, _REFUTED,
                _HALF_TRUST_SQUARE,
            )  # fmt: skip
            return
        slots = (bars.age[:, None] - self._horizons) % self._longest
        x = columns["distances"][at, slots]
        known = (
            np.isfinite(x) & np.isfinite(bars.outcomes) & (bars.age[:, None] >= self._horizons + _FIRST_BARS)
        )
        x, y = np.where(known, x, 0.0), np.where(known, bars.outcomes, 0.0)
        keep = np.where(known, _KEEP, 1.0)
        xx, xy = keep * columns["xx"][rows] + x * x, keep * columns["xy"][rows] + x * y
        yy, num = keep * columns["yy"][rows] + y * y, keep * columns["bars"][rows] + known
        columns["xx"][rows], columns["xy"][rows], columns["yy"][rows], columns["bars"][rows] = xx, xy, yy, num
        safe = np.maximum(xx, 1e-300)
        slope = xy / safe
        noise = np.maximum(yy - slope * xy, 1e-300) / np.maximum(num, 1.0)
        square = slope * slope * safe / (noise * self._horizons)  # t², one independent outcome in h bars
        columns["slope"][rows] = np.where(slope > 0.0, slope * (square / (square + _HALF_TRUST_SQUARE)), 0.0)
        t = np.where(slope[:, 0] > 0.0, np.sqrt(square[:, 0]), 0.0)
        is_on = columns["does_return"][rows] > 0
        is_on = may_return & (bars.age >= _MIN_BARS) & np.where(is_on, t > _REFUTED, t > _SIGNIFICANT)
        columns["does_return"][rows] = is_on
        columns["distances"][bars.index, bars.age % self._longest] = columns["distance"][rows]

    def coming(self, rows: Rows) -> Array:
        """The move expected over each horizon [n, H], as a log return; zero for most."""
        return self._columns["coming"][rows]

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)
