"""Filtered historical simulation: past returns in units of their own volatility, at today's volatility."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows, grown
from htfi.forecasting.shapes import gaussian_quantiles, spread

Array = NDArray[np.float64]


class HistoricalSimulation:
    """Empirical quantiles of filtered residuals (Barone-Adesi, Giannopoulos and Vosper 1999)."""

    name = "historical_simulation"
    version = "1"

    def __init__(self, config: ForecastConfig) -> None:
        self._gain = 1.0 - config.ewma_decay
        self._min_bars = config.history_bars
        self._levels = np.array(config.levels)
        self._normal = gaussian_quantiles(config.levels)
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._var = np.zeros(0)
        self._residuals = np.zeros((0, config.residual_window_bars), np.float32)
        self._count = np.zeros(0, np.int64)

    def grow(self, num_series: int) -> None:
        self._var = grown(self._var, num_series)
        self._residuals = grown(self._residuals, num_series, fill=np.nan)
        self._count = grown(self._count, num_series)

    def update(self, bars: BarBatch) -> None:
        count, var = self._count[bars.rows], self._var[bars.rows]
        sigma = np.maximum(np.sqrt(var), 0.1 * bars.usual)
        index = np.arange(len(self._count))[bars.rows]
        residuals = np.clip(bars.returns / sigma, -10, 10)
        self._residuals[index, count % self._residuals.shape[1]] = np.where(count > 5, residuals, np.nan)
        gain = np.maximum(1.0 / (count + 1.0), self._gain)
        self._var[bars.rows] = var + gain * (bars.returns * bars.returns - var)
        self._count[bars.rows] = count + 1

    def sigma(self, rows: Rows) -> Array:
        sigma = np.maximum(np.sqrt(self._var[rows]), SIGMA_FLOOR)
        return np.where(self._count[rows] >= self._min_bars, sigma, np.nan)

    def quantiles(self, rows: Rows) -> Array:
        ranked = np.sort(self._residuals[rows], axis=1)
        num = np.maximum(np.minimum(self._count[rows], ranked.shape[1]) - 6, 1)
        place = self._levels * (num[:, None] - 1.0)
        low = place.astype(np.intp)
        high = np.minimum(low + 1, num[:, None] - 1)
        below = np.take_along_axis(ranked, low, axis=1)
        above = np.take_along_axis(ranked, high, axis=1)
        empirical = below + (place - low) * (above - below)
        trust = (num / (num + 50.0))[:, None]
        shape = trust * empirical + (1.0 - trust) * self._normal
        shape = np.maximum.accumulate(shape, axis=1)
        return spread(self.sigma(rows)[:, None] * self._root_h, shape[:, None, :])

    def state(self) -> dict[str, Any]:
        return {"var": self._var.copy(), "residuals": self._residuals.copy(), "count": self._count.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self._var = np.array(state["var"], np.float64)
        self._residuals = np.array(state["residuals"], np.float32)
        self._count = np.array(state["count"], np.int64)
