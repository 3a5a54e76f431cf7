"""Exponentially weighted variance (RiskMetrics, λ = 0.94) with the fat tails of a Student-t."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows, grown
from htfi.forecasting.shapes import gaussian_quantiles, spread

Array = NDArray[np.float64]


class Ewma:
    """var ← λ·var + (1−λ)·r², the plain mean until 1/(1−λ) bars are in."""

    name = "ewma"
    version = "1"

    def __init__(self, config: ForecastConfig) -> None:
        self._gain = 1.0 - config.ewma_decay
        self._min_bars = config.history_bars
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = gaussian_quantiles(config.levels)
        self._var = np.zeros(0)
        self._count = np.zeros(0, np.int64)

    def grow(self, num_series: int) -> None:
        self._var = grown(self._var, num_series)
        self._count = grown(self._count, num_series)

    def update(self, bars: BarBatch) -> None:
        count, var = self._count[bars.rows], self._var[bars.rows]
        gain = np.maximum(1.0 / (count + 1.0), self._gain)
        self._var[bars.rows] = var + gain * (bars.returns * bars.returns - var)
        self._count[bars.rows] = count + 1

    def sigma(self, rows: Rows) -> Array:
        sigma = np.maximum(np.sqrt(self._var[rows]), SIGMA_FLOOR)
        return np.where(self._count[rows] >= self._min_bars, sigma, np.nan)

    def quantiles(self, rows: Rows) -> Array:
        return spread(self.sigma(rows)[:, None] * self._root_h, self._shape)

    def state(self) -> dict[str, Any]:
        return {"var": self._var.copy(), "count": self._count.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self._var = np.array(state["var"], np.float64)
        self._count = np.array(state["count"], np.int64)
