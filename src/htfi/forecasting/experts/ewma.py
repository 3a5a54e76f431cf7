"""Exponentially weighted variance (RiskMetrics 1996, λ = 0.94) with the fat tails of a Student-t."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows
from htfi.forecasting.shapes import scale_shape, student_quantiles

Array = NDArray[np.float64]

_EXCESS_KURTOSIS = 6.0  # of one bar's return at unit volatility: a Student-t with 5 degrees of freedom


class EwmaExpert:
    """var ← λ·var + (1−λ)·r², a plain mean until 1/(1−λ) bars are in; σ√h, without drift.

    The excess kurtosis of a sum of h independent returns is that of one divided by h, and a Student-t
    with ν degrees of freedom has 6/(ν−4): so ν = 4 + h, the tails thinning towards the Gaussian.
    """

    name = "ewma"
    version = "1"

    def __init__(self, config: ForecastConfig) -> None:
        self._gain = 1.0 - config.ewma_decay
        self._min_bars = config.history_bars
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = np.array(
            [student_quantiles(config.levels, 4.0 + 6.0 * h / _EXCESS_KURTOSIS) for h in config.horizons]
        )
        self._columns = SeriesColumns()
        self._columns.declare("var", 0.0)
        self._columns.declare("num", 0, np.int64)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        var = self._columns["var"][bars.rows]
        gain = np.maximum(1.0 / (bars.age + 1.0), self._gain)
        self._columns["var"][bars.rows] = var + gain * (bars.returns * bars.returns - var)
        self._columns["num"][bars.rows] = bars.age + 1

    def learn(self, bars: BarBatch) -> None:
        """There is nothing to fit."""

    def quantiles(self, rows: Rows) -> Array:
        sigma = np.maximum(np.sqrt(self._columns["var"][rows]), SIGMA_FLOOR)
        sigma = np.where(self._columns["num"][rows] >= self._min_bars, sigma, np.nan)
        return scale_shape(sigma[:, None] * self._root_h, self._shape)

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)
