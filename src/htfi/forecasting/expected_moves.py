"""The moves that are expected of series: a drift, or the way back to a level of their own.

Experts learn from outcomes less what was expected, and their quantiles come out moved by it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.drift import PooledDrift
from htfi.forecasting.mean_reversion import MeanReversion
from htfi.forecasting.panel import BarBatch, Rows

Array = NDArray[np.float64]


class ExpectedMoves:
    """What is expected of every series over each horizon, and what was, until its outcome comes."""

    def __init__(self, horizons: tuple[int, ...]) -> None:
        self._horizons = np.array(horizons)
        self._longest = horizons[-1]
        self._reversion = MeanReversion(horizons)
        self._drift = PooledDrift(horizons)
        self._columns = SeriesColumns()
        self._columns.declare("coming", np.zeros(len(horizons)))
        self._columns.declare("expected", np.zeros((self._longest, len(horizons))))
        self._is_any = False  # a move was ever expected: of pairs of currencies alone none is

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._reversion.grow(num_series)

    def returns(self, index: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which rows [n] are held to return to a level of their own."""
        return self._reversion.returns(index)

    def update(self, bars: BarBatch, log_price: Array, drift_days: Array) -> None:
        """Take in the log prices [n] at the end of these bars, and how many trading days a bar of each series that
        drifts holds [n], zero for others. A series that returns to a level does not drift."""
        self._reversion.update(bars, log_price)
        coming, returns = self._reversion.coming(bars.index), self._reversion.returns(bars.index)
        if drift_days.any():
            self._drift.update(bars, np.where(returns, 0.0, drift_days), coming)
            self._is_any = True
        self._is_any = self._is_any or bool(returns.any())
        self._columns["coming"][bars.rows] = coming

    def coming(self, rows: Rows) -> Array | None:
        """The move expected over each horizon [n, H], as a log return; None where none ever was."""
        return self._columns["coming"][rows] if self._is_any else None

    def less_expected(self, bars: BarBatch) -> BarBatch:
        """The bars, their outcomes less the moves that were expected; before `learn`."""
        if not self._is_any:
            return bars
        if compiled.core is not None:
            less = np.empty(bars.outcomes.shape)
            is_any = compiled.core.less_expected(
                bars.index, bars.age, self._horizons, self._columns["expected"], bars.outcomes, less
            )
            return replace(bars, outcomes=less) if is_any else bars
        slots, across = (bars.age[:, None] - self._horizons) % self._longest, np.arange(len(self._horizons))
        expected = self._columns["expected"][bars.index[:, None], slots, across]
        return replace(bars, outcomes=bars.outcomes - expected) if expected.any() else bars

    def learn(self, bars: BarBatch, may_return: NDArray[np.bool_]) -> None:
        """Learn from the outcomes of the same bars, as they were; follows each `update`. Rows [n] that may not return
        are never held to."""
        self._reversion.learn(bars, may_return)
        if self._is_any:
            expected, coming = self._columns["expected"], self._columns["coming"]
            expected[bars.index, bars.age % self._longest] = coming[bars.rows]

    def state(self) -> dict[str, Any]:
        return {
            "moves": self._columns.state(),
            "mean_reversion": self._reversion.state(),
            "drift": self._drift.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["moves"])
        self._reversion.restore(state["mean_reversion"])
        self._drift.restore(state["drift"])
        self._is_any = any(bool(column.any()) for column in self._columns.values())
