"""Log-range HAR: the coming log range from its daily, weekly and monthly means (Corsi 2009)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows, grown
from htfi.forecasting.shapes import gaussian_quantiles, spread

Array = NDArray[np.float64]

_MONTH = 22
_PARKINSON = 1.0 / (4.0 * 0.6931471805599453)


class LogRangeHar:
    """Heterogeneous autoregression on log range variance."""

    name = "log_range_har"
    version = "1"

    def __init__(self, config: ForecastConfig) -> None:
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = gaussian_quantiles(config.levels)
        self._log_var = np.zeros((0, _MONTH))
        self._ratio = np.zeros(0)
        self._count = np.zeros(0, np.int64)

    def grow(self, num_series: int) -> None:
        self._log_var = grown(self._log_var, num_series)
        self._ratio = grown(self._ratio, num_series)
        self._count = grown(self._count, num_series)

    def update(self, bars: BarBatch) -> None:
        floor = np.maximum(0.1 * bars.usual, SIGMA_FLOOR)
        var = np.where(bars.ranges > 0, bars.ranges * bars.ranges * _PARKINSON, bars.returns * bars.returns)
        log_var = np.log(np.maximum(var, floor * floor))
        count = self._count[bars.rows]
        window = self._log_var[bars.rows].copy()
        window[:, :-1] = window[:, 1:]
        window[:, -1] = log_var
        self._log_var[bars.rows] = window
        gain = np.maximum(1.0 / (count + 1.0), 0.01)
        ratio = self._ratio[bars.rows]
        new = bars.returns * bars.returns / np.exp(self._level(window))
        self._ratio[bars.rows] = ratio + gain * (np.minimum(new, 30.0) - ratio)
        self._count[bars.rows] = count + 1

    def _level(self, window: Array) -> Array:
        day, week, month = window[:, -1], window[:, -5:].mean(axis=1), window.mean(axis=1)
        return 0.3 * day + 0.35 * week + 0.35 * month

    def sigma(self, rows: Rows) -> Array:
        sigma = np.sqrt(np.exp(self._level(self._log_var[rows])) * self._ratio[rows])
        return np.where(self._count[rows] >= _MONTH, np.maximum(sigma, SIGMA_FLOOR), np.nan)

    def quantiles(self, rows: Rows) -> Array:
        return spread(self.sigma(rows)[:, None] * self._root_h, self._shape)

    def state(self) -> dict[str, Any]:
        return {"log_var": self._log_var.copy(), "ratio": self._ratio.copy(), "count": self._count.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self._log_var = np.array(state["log_var"], np.float64)
        self._ratio = np.array(state["ratio"], np.float64)
        self._count = np.array(state["count"], np.int64)
