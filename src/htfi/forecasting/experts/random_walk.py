"""The benchmark: a random walk whose Gaussian steps have the volatility of the last 20 bars."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows, grown
from htfi.forecasting.shapes import gaussian_quantiles, spread

Array = NDArray[np.float64]


class RandomWalk:
    """Sample standard deviation of the last `history_bars` returns, scaled by √h."""

    name = "random_walk"
    version = "1"

    def __init__(self, config: ForecastConfig) -> None:
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = gaussian_quantiles(config.levels)
        self._window = np.zeros((0, config.history_bars))
        self._count = np.zeros(0, np.int64)

    def grow(self, num_series: int) -> None:
        self._window = grown(self._window, num_series)
        self._count = grown(self._count, num_series)

    def update(self, bars: BarBatch) -> None:
        count = self._count[bars.rows]
        index = np.arange(len(self._count))[bars.rows]
        self._window[index, count % self._window.shape[1]] = bars.returns
        self._count[bars.rows] = count + 1

    def sigma(self, rows: Rows) -> Array:
        width = self._window.shape[1]
        window = self._window[rows]
        away = window - window.mean(axis=1, keepdims=True)
        sigma = np.sqrt((away * away).sum(axis=1) / (width - 1))
        return np.where(self._count[rows] >= width, np.maximum(sigma, SIGMA_FLOOR), np.nan)

    def quantiles(self, rows: Rows) -> Array:
        return spread(self.sigma(rows)[:, None] * self._root_h, self._shape)

    def state(self) -> dict[str, Any]:
        return {"window": self._window.copy(), "count": self._count.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self._window = np.array(state["window"], np.float64)
        self._count = np.array(state["count"], np.int64)
