"""The benchmark: a random walk whose Gaussian steps have the volatility of the last 20 bars."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows
from htfi.forecasting.shapes import gaussian_quantiles, scale_shape

Array = NDArray[np.float64]


class RandomWalkExpert:
    """Sample standard deviation of the last `history_bars` returns, times √h, without drift."""

    name = "random_walk"
    version = "1"

    def __init__(self, config: ForecastConfig) -> None:
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = gaussian_quantiles(config.levels)
        self._width = config.history_bars
        self._columns = SeriesColumns()
        self._columns.declare("window", np.full(self._width, np.nan))

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        self._columns["window"][bars.index, bars.age % self._width] = bars.returns

    def learn(self, bars: BarBatch) -> None:
        """There is nothing to fit."""

    def quantiles(self, rows: Rows) -> Array:
        window = self._columns["window"][rows]
        away = window - window.mean(axis=1, keepdims=True)  # NaN until the window is full
        sigma = np.maximum(np.sqrt((away * away).sum(axis=1)) / math.sqrt(self._width - 1), SIGMA_FLOOR)
        return scale_shape(sigma[:, None] * self._root_h, self._shape)

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)
