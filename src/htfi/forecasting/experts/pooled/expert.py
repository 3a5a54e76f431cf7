"""The pooled learner as an expert: scales by a fitted model, sizes and shape learnt online."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.pooled.features import FEATURES, MIN_BARS, PooledFeatures
from htfi.forecasting.experts.pooled.models import PooledModels
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.pooled_shapes import PooledShape, half_quantiles, half_scales, half_slopes

Array = NDArray[np.float64]

_USUAL = FEATURES.index("log variance 300")  # of the usual less that of the next bar


class PooledExpert:
    """Linear terms and trees over all series state a log scale of each horizon; the distribution has the shape that
    outcomes of all series had in units of it, at each one's size.

    A fit forecasts only after what it was fitted to. Before the first, and without a folder of fits, typical linear
    terms do.
    """

    name = "pooled"

    def __init__(self, config: ForecastConfig, models: PooledModels | None = None) -> None:
        self._models = PooledModels(config.horizons) if models is None else models
        self.version = f"1@{self._models.digest[:12]}" if self._models.digest else "1"
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._features = PooledFeatures()
        self._shape = PooledShape(config)
        self._half_slopes = half_slopes(config.horizons)
        self._columns = SeriesColumns()
        self._columns.declare("scale", np.full(len(config.horizons), np.nan))
        self._columns.declare("above", np.zeros(len(config.horizons)))  # log volatility above the usual

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._features.grow(num_series)
        self._shape.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        self._forecast(bars, *self._features.update(bars))

    def _forecast(self, bars: BarBatch, x: NDArray[np.float32], sigma: Array) -> None:
        log_scale = self._models.predict(x, bars.end_ns)
        scale = sigma[:, None] * self._root_h * exact.exp(log_scale)
        self._columns["above"][bars.rows] = log_scale - 0.5 * x[:, _USUAL, None].astype(np.float64)
        old = bars.age[:, None] >= MIN_BARS - 1
        self._columns["scale"][bars.rows] = np.where(old, scale, np.nan)

    def learn(self, bars: BarBatch) -> None:
        scale, above = (self._columns[name][bars.rows] for name in ("scale", "above"))
        self._shape.learn(bars, half_scales(scale, above, self._half_slopes))

    def quantiles(self, rows: Rows) -> Array:
        size, shape = self._shape.of(rows, self._features.groups[rows])
        scale, above = self._columns["scale"][rows] * size, self._columns["above"][rows]
        return half_quantiles(scale, above, self._half_slopes, shape)

    def state(self) -> dict[str, Any]:
        return {
            "bars": self._columns.state(),
            "features": self._features.state(),
            "shape": self._shape.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["bars"])
        self._features.restore(state["features"])
        self._shape.restore(state["shape"])
