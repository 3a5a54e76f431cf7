"""The drift of prices that carry a premium for risk: a mean return that all series of an interval share.

Expected returns differ far less between series, and between calm and wild times, than volatilities do (Black 1972;
Moreira and Muir 2017). So a drift is a log return a bar, the same for all of them, and no multiple of a scale.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns, distinct
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]

_DAYS_A_YEAR = 252.0
# What is held of a year's log return before anything is seen: the world's equities in the twentieth century, in money
# of the day, and how far countries lay apart (Dimson, Marsh and Staunton 2002).
_YEAR_MEAN, _YEAR_DEVIATION = 0.075, 0.04
_MAX_SHARPE = 0.8  # of a year: a series that hardly moves drifts no further (Cochrane and Saá-Requejo 2000)
_VARIANCE_GAIN = 0.002  # of the common return's variance, a plain mean until there are 500
_MIN_VARIANCE = 1e-8


class PooledDrift:
    """For each group of series: the mean of their common return, a normal prior moved by what came.

    The common return of a bar is the mean of all series' returns, each by the inverse of its usual deviation: what
    shifts medians for all of them counts in units of their bands.
    """

    def __init__(self, horizons: tuple[int, ...]) -> None:
        self._horizons = np.array(horizons)
        self._groups = SeriesColumns()
        self._groups.declare("sum", 0.0)
        self._groups.declare("num", 0.0)
        self._groups.declare("variance", 0.0)

    def update(self, bars: BarBatch, days: Array, coming: Array) -> None:
        """Take in the returns of these bars, which hold so many trading days [n], none where no drift is expected; add
        the drift of each over every horizon to `coming` [n, H], in log return."""
        groups = self._groups
        groups.grow(int(bars.group.max()) + 1)
        columns = [groups[name] for name in ("sum", "num", "variance")]
        share = days / _DAYS_A_YEAR
        if compiled.core is not None:
            compiled.core.add_drift(
                bars.age, bars.group, bars.returns, bars.usual, share, self._horizons, *columns, coming,
                _YEAR_MEAN, _YEAR_DEVIATION, _MAX_SHARPE, _VARIANCE_GAIN, _MIN_VARIANCE,
            )  # fmt: skip
            return
        applies = (share > 0.0) & (bars.usual > 0.0)
        for group in distinct(bars.group[applies]):
            of_group = applies & (bars.group == group)
            self._learn(group, bars, of_group & (bars.age > 0))
            total, num, variance = (float(column[group]) for column in columns)
            noise, prior = max(variance, _MIN_VARIANCE), (_YEAR_DEVIATION * share[of_group]) ** 2
            mean = (_YEAR_MEAN * share[of_group] * noise + total * prior) / (noise + num * prior)
            most = _MAX_SHARPE * np.sqrt(share[of_group]) * bars.usual[of_group]
            mean = np.minimum(np.maximum(mean, -most), most)
            coming[of_group] += mean[:, None] * self._horizons

    def _learn(self, group: int, bars: BarBatch, counted: NDArray[np.bool_]) -> None:
        if not counted.any():
            return
        groups, weight = self._groups, 1.0 / bars.usual[counted]
        moved, weights = np.stack([weight * bars.returns[counted], weight], axis=1).sum(axis=0).tolist()
        common = moved / weights
        num = float(groups["num"][group]) + 1.0
        variance = float(groups["variance"][group])
        groups["sum"][group] += common
        groups["num"][group] = num
        groups["variance"][group] = variance + max(1.0 / num, _VARIANCE_GAIN) * (common * common - variance)

    def state(self) -> dict[str, Any]:
        return self._groups.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._groups.restore(state)
