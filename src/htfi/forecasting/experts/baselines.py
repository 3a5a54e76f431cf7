"""The baselines: experts without a regression, on the volatility of past returns alone."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows, to_index
from htfi.forecasting.pooled_shapes import half_quantiles, half_scales, half_slopes
from htfi.forecasting.shapes import ResidualShapes, gaussian_quantiles, scale_shape, student_quantiles

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
        if compiled.core is not None:
            index = to_index(rows, self._columns.num_rows)
            quantiles = np.empty((len(index), len(self._root_h), len(self._shape)))
            compiled.core.fill_random_walk(
                index, self._columns["window"], self._root_h, self._shape, quantiles, np.empty(self._width), SIGMA_FLOOR
            )  # fmt: skip
            return quantiles
        window = self._columns["window"][rows]
        away = window - window.mean(axis=1, keepdims=True)  # NaN until the window is full
        sigma = np.maximum(np.sqrt((away * away).sum(axis=1)) / math.sqrt(self._width - 1), SIGMA_FLOOR)
        return scale_shape(sigma[:, None] * self._root_h, self._shape)

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)


_MAX_FREEDOM = 7.0  # of the tails at any horizon: volatility is as uncertain over many bars as over one


class EwmaExpert:
    """var ← λ·var + (1−λ)·r², a plain mean until 1/(1−λ) bars are in; σ√h, without drift.

    The excess kurtosis of a sum of h independent returns is that of one divided by h, and a Student-t
    with ν degrees of freedom has 6/(ν−4): so ν = 4 + h, but 7 at most, for the volatility over h bars is uncertain.
    """

    name = "ewma"
    version = "2"

    def __init__(self, config: ForecastConfig) -> None:
        self._gain = 1.0 - config.ewma_decay
        self._min_bars = config.history_bars
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = np.array(
            [student_quantiles(config.levels, min(4.0 + h, _MAX_FREEDOM)) for h in config.horizons]
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


_DECAY_BARS = [2.5 * 2.0**k for k in range(8)]  # 2.5 … 320
_MEMORY_BARS = 600.0
_SKEW_SAMPLES = 250.0


class HistoricalSimulationExpert:
    """Empirical quantiles of filtered returns (Barone-Adesi et al. 1999; Hull and White 1998).

    The filter has long memory: exponential means of the log range variance over 2.5 … 320 bars, with the
    logarithmically falling shares of Zumbach (RiskMetrics 2006). Logs, so that one wild bar counts little.
    """

    name = "historical_simulation"
    version = "2"

    def __init__(self, config: ForecastConfig) -> None:
        self._min_bars = config.history_bars
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._gains = np.array([round(1.0 - math.exp(-1.0 / bars), 12) for bars in _DECAY_BARS])
        shares = [1.0 - math.log(bars) / math.log(_MEMORY_BARS) for bars in _DECAY_BARS]
        self._shares = np.array([round(share / sum(shares), 12) for share in shares])
        self._columns = SeriesColumns()
        self._columns.declare("log_vars", np.zeros(len(_DECAY_BARS)))
        self._columns.declare("scale", np.full(len(config.horizons), np.nan))
        self._columns.declare(
            "above", np.zeros(len(config.horizons))
        )  # log volatility above the slowest mean
        self._residuals = ResidualShapes(config, _SKEW_SAMPLES)
        self._half_slopes = half_slopes(config.horizons)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._residuals.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        if compiled.core is not None:
            compiled.core.filter_variance(
                bars.index, bars.age, bars.log_variance, self._columns["log_vars"], self._gains, self._shares,
                self._root_h, self._columns["scale"], self._columns["above"], np.empty(len(_DECAY_BARS)),
                self._min_bars,
            )  # fmt: skip
            return
        log_vars = self._columns["log_vars"][bars.rows]
        gain = np.maximum(1.0 / (bars.age[:, None] + 1.0), self._gains)
        log_vars = log_vars + gain * (bars.log_variance[:, None] - log_vars)
        self._columns["log_vars"][bars.rows] = log_vars
        log_var = (log_vars * self._shares).sum(axis=1)
        sigma = np.where(bars.age + 1 >= self._min_bars, exact.exp(0.5 * log_var), np.nan)
        self._columns["scale"][bars.rows] = sigma[:, None] * self._root_h
        self._columns["above"][bars.rows] = (0.5 * (log_var - log_vars[:, -1]))[:, None]

    def learn(self, bars: BarBatch) -> None:
        self._residuals.learn(bars, self._halves(bars.rows))

    def quantiles(self, rows: Rows) -> Array:
        scale, above = self._columns["scale"][rows], self._columns["above"][rows]
        return half_quantiles(scale, above, self._half_slopes, self._residuals.shape(rows))

    def _halves(self, rows: Rows) -> Array:
        """Scales of falls and rises [n, H, 2]."""
        return half_scales(self._columns["scale"][rows], self._columns["above"][rows], self._half_slopes)

    def state(self) -> dict[str, Any]:
        return {"filter": self._columns.state(), "residuals": self._residuals.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["filter"])
        self._residuals.restore(state["residuals"])
