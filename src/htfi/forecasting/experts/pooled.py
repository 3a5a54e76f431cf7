"""The pooled learner as an expert: scales by a fitted model, sizes and shape learnt online."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.pooled.features import MIN_BARS, PooledFeatures
from htfi.forecasting.pooled.models import NUM_SIDES, PooledModels
from htfi.forecasting.regression import PooledShape
from htfi.forecasting.shapes import scale_shape

Array = NDArray[np.float64]


class PooledExpert:
    """Trees over all series state a log scale below and above the median; the distribution has the shape that
    outcomes of all series had in units of their mean, at each one's size.

    A fit corrects only forecasts after what it was fitted to. Before the first fit of the folder the scale is the
    volatility that features are relative to, which needs none.
    """

    name = "pooled"

    def __init__(self, config: ForecastConfig, models: PooledModels) -> None:
        self.version = f"1@{models.digest[:12]}"
        self._models = models
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._features = PooledFeatures()
        self._shape = PooledShape(config)
        self._columns = SeriesColumns()
        self._columns.declare("scale", np.full(len(config.horizons), np.nan))
        self._columns.declare("sides", np.ones((len(config.horizons), NUM_SIDES)))

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._features.grow(num_series)
        self._shape.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        x, sigma = self._features.update(bars)
        log_scale = self._models.predict(x, bars.end_ns)
        middle = 0.5 * (log_scale[:, :, 0] + log_scale[:, :, 1])
        scale = sigma[:, None] * self._root_h * exact.exp(middle)
        old = bars.age[:, None] >= MIN_BARS - 1
        self._columns["scale"][bars.rows] = np.where(old, scale, np.nan)
        self._columns["sides"][bars.rows] = exact.exp(log_scale - middle[:, :, None])

    def learn(self, bars: BarBatch) -> None:
        self._shape.learn(bars, self._columns["scale"][bars.rows], self._features.groups)

    def quantiles(self, rows: Rows) -> Array:
        size, shape = self._shape.of(rows, self._features.groups[rows])
        sides = self._columns["sides"][rows]
        side = np.where(shape > 0.0, sides[:, :, 1:], sides[:, :, :1])
        return scale_shape(self._columns["scale"][rows] * size, shape * side)

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
