"""A foundation model of time series as an expert ('chronos'): it reads past returns, without a fit to them.

Off unless `forecasting.experts` names it and `forecasting.foundation` a folder.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.ports import ReturnModel
from htfi.forecasting.scaled_returns import CachedShapes, ewma_units

Array = NDArray[np.float64]

CONTEXT_BARS = 512
MAX_SERIES_PER_INSTANT = 16  # series at one instant: with a small Chronos-Bolt some tens of milliseconds
_QUESTION = "asked_at"


class FoundationExpert:
    """Asks the model about at most `num_asked` series an instant; the others keep their last shape, at their EWMA
    volatility of today."""

    name = "chronos"

    def __init__(
        self, config: ForecastConfig, model: ReturnModel, *, num_asked: int = MAX_SERIES_PER_INSTANT
    ) -> None:
        self.version = model.version
        self._model = model
        self._num_asked = num_asked
        self._horizons, self._levels = config.horizons, config.levels
        self._min_bars = config.history_bars
        self._width = min(model.max_context, CONTEXT_BARS)
        self._units = ewma_units(config.ewma_decay)
        self._columns = SeriesColumns()
        self._columns.declare("returns", np.zeros(self._width), np.float32)
        self._columns.declare("age", -1, np.int64)
        self._columns.declare("variance", np.zeros(1))
        self._shapes = CachedShapes(len(config.horizons), len(config.levels), (_QUESTION,))

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._shapes.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        self.observe(bars)
        ready = bars.age + 1 >= self._min_bars
        rows = self._shapes.take_turn(bars.index[ready], bars.age[ready], _QUESTION, self._num_asked)
        if len(rows):
            sigma = self._units.sigma(self._columns["variance"][rows])
            self._shapes.store(rows, slice(None), self.predict(rows) / sigma[:, None, None])

    def observe(self, bars: BarBatch) -> None:
        """Take in one closed bar of each row, and ask nothing of the model."""
        columns = self._columns
        columns["returns"][bars.index, bars.age % self._width] = bars.returns
        columns["age"][bars.rows] = bars.age
        variance = self._units.update(columns["variance"][bars.rows], bars.returns * bars.returns, bars.age)
        columns["variance"][bars.rows] = variance

    def predict(self, rows: NDArray[np.intp]) -> Array:
        """The model's quantiles [n, H, Q] of these rows now, NaN where it has none."""
        contexts: list[Array] = []
        for window, age in zip(
            self._columns["returns"][rows], self._columns["age"][rows].tolist(), strict=True
        ):
            begun = np.roll(window, -((age + 1) % self._width))  # oldest first
            contexts.append(begun[-min(age + 1, self._width) :].astype(np.float64))
        return self._model.quantiles(contexts, self._horizons, self._levels)

    def learn(self, bars: BarBatch) -> None:
        """There is nothing to fit."""

    def quantiles(self, rows: Rows) -> Array:
        """NaN until the model was asked once."""
        return self._shapes.quantiles(rows, self._units.sigma(self._columns["variance"][rows]))

    def state(self) -> dict[str, Any]:
        return {"bars": self._columns.state(), "kept": self._shapes.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["bars"])
        self._shapes.restore(state["kept"])
