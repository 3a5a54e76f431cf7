"""Filtered historical simulation: past h-bar returns in units of their own volatility, at today's."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.shapes import ResidualShapes, scale_shape

Array = NDArray[np.float64]

_DECAY_BARS = [2.5 * 2.0**k for k in range(8)]  # 2.5 … 320
_MEMORY_BARS = 600.0
_SKEW_SAMPLES = 250.0


class HistoricalSimulationExpert:
    """Empirical quantiles of filtered returns (Barone-Adesi et al. 1999; Hull and White 1998).

    The filter has long memory: exponential means of the log range variance over 2.5 … 320 bars, with the
    logarithmically falling shares of Zumbach (RiskMetrics 2006). Logs, so that one wild bar counts little.
    """

    name = "historical_simulation"
    version = "1"

    def __init__(self, config: ForecastConfig) -> None:
        self._min_bars = config.history_bars
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._gains = np.array([round(1.0 - math.exp(-1.0 / bars), 12) for bars in _DECAY_BARS])
        shares = [1.0 - math.log(bars) / math.log(_MEMORY_BARS) for bars in _DECAY_BARS]
        self._shares = np.array([round(share / sum(shares), 12) for share in shares])
        self._columns = SeriesColumns()
        self._columns.declare("log_vars", np.zeros(len(_DECAY_BARS)))
        self._columns.declare("scale", np.full(len(config.horizons), np.nan))
        self._residuals = ResidualShapes(config, _SKEW_SAMPLES)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._residuals.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        log_vars = self._columns["log_vars"][bars.rows]
        gain = np.maximum(1.0 / (bars.age[:, None] + 1.0), self._gains)
        log_vars = log_vars + gain * (bars.log_variance[:, None] - log_vars)
        self._columns["log_vars"][bars.rows] = log_vars
        log_var = (log_vars * self._shares).sum(axis=1)
        sigma = np.where(bars.age + 1 >= self._min_bars, exact.exp(0.5 * log_var), np.nan)
        self._columns["scale"][bars.rows] = sigma[:, None] * self._root_h

    def learn(self, bars: BarBatch) -> None:
        self._residuals.learn(bars, self._columns["scale"][bars.rows])

    def quantiles(self, rows: Rows) -> Array:
        return scale_shape(self._columns["scale"][rows], self._residuals.shape(rows))

    def state(self) -> dict[str, Any]:
        return {"filter": self._columns.state(), "residuals": self._residuals.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["filter"])
        self._residuals.restore(state["residuals"])
