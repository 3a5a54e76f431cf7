"""The pooled learner as an expert: scales by a fitted model, sizes and shape learnt online."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.pooled.features import MIN_BARS, PooledFeatures
from htfi.forecasting.experts.pooled.models import PooledModels
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.pooled_shapes import PooledShape
from htfi.forecasting.shapes import scale_shape

Array = NDArray[np.float64]


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
        self._columns = SeriesColumns()
        self._columns.declare("scale", np.full(len(config.horizons), np.nan))

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._features.grow(num_series)
        self._shape.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        self._forecast(bars, *self._features.update(bars))

    def _forecast(self, bars: BarBatch, x: NDArray[np.float32], sigma: Array) -> None:
        scale = sigma[:, None] * self._root_h * exact.exp(self._models.predict(x, bars.end_ns))
        old = bars.age[:, None] >= MIN_BARS - 1
        self._columns["scale"][bars.rows] = np.where(old, scale, np.nan)

    def learn(self, bars: BarBatch) -> None:
        scale = self._columns["scale"][bars.rows]
        self._shape.learn(bars, np.stack([scale, scale], axis=-1))  # falls and rises alike

    def quantiles(self, rows: Rows) -> Array:
        size, shape = self._shape.of(rows, self._features.groups[rows])
        return scale_shape(self._columns["scale"][rows] * size, shape)

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
