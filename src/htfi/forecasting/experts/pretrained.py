"""Experts over models of others: a foundation model of time series ('chronos'), the trajectory model ('mini'), and
volatility models of the package arch ('arch:garch_t').

The first two read past returns without a fit to them. Off unless `forecasting.experts` names them; wiring opens their
models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import RENEWAL_BARS, BarBatch, Rows
from htfi.forecasting.ports import FittedReturnModel, PathSampler, ReturnModel
from htfi.forecasting.scaled_returns import (
    CachedShapes,
    VolatilityUnits,
    ewma_units,
    long_memory_units,
    path_quantiles,
)

Array = NDArray[np.float64]

_MAX_FOUNDATION_BARS = 512
_RENEWALS_PER_FIT = 2  # a series is renewed at every tenth bar: fitted at every twentieth
MAX_SERIES_PER_INSTANT = 16  # series at one instant: with a small Chronos-Bolt some tens of milliseconds
_QUESTION = "asked_at"


class FoundationExpert:
    """Asks the model about at most `num_asked` series an instant; the others keep their last shape, at their EWMA
    volatility of today."""

    def __init__(
        self,
        config: ForecastConfig,
        model: ReturnModel,
        *,
        name: str = "chronos",
        num_asked: int = MAX_SERIES_PER_INSTANT,
    ) -> None:
        self.name = name
        self.version = model.version
        self._model = model
        self._num_asked = num_asked
        self._horizons, self._levels = config.horizons, config.levels
        self._min_bars = config.history_bars
        self._width = min(model.max_context, _MAX_FOUNDATION_BARS)
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
        return self._model.quantiles(self.contexts(rows), self._horizons, self._levels)

    def contexts(self, rows: NDArray[np.intp]) -> list[Array]:
        """The last returns of these rows, oldest first."""
        contexts: list[Array] = []
        for window, age in zip(
            self._columns["returns"][rows], self._columns["age"][rows].tolist(), strict=True
        ):
            begun = np.roll(window, -((age + 1) % self._width))  # oldest first
            contexts.append(begun[-min(age + 1, self._width) :].astype(np.float64))
        return contexts

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


class FittedExpert(FoundationExpert):
    """Fits the model to each series at every twentieth of its bars; those parameters hold for the bars between."""

    def __init__(
        self, config: ForecastConfig, model: FittedReturnModel, *, name: str, num_asked: int
    ) -> None:
        super().__init__(config, model, name=name, num_asked=num_asked)
        self._fitted = model
        self._columns.declare("parameters", np.full(model.num_parameters, np.nan))

    def predict(self, rows: NDArray[np.intp]) -> Array:
        found = np.full((len(rows), len(self._horizons), len(self._levels)), np.nan)
        parameters = self._columns["parameters"][rows]
        for place, context in enumerate(self.contexts(rows)):
            if np.isfinite(parameters[place]).all():
                found[place] = self._fitted.quantiles_of(
                    context, parameters[place], self._horizons, self._levels
                )
        return found

    def learn(self, bars: BarBatch) -> None:
        """Fit those whose turn it is, after the forecast is out."""
        enough = bars.age + 1 >= self._fitted.min_context
        first = np.isnan(self._columns["parameters"][bars.index]).any(axis=1)
        turn = bars.due & (bars.age // RENEWAL_BARS % _RENEWALS_PER_FIT == 0)
        rows = bars.index[enough & (first | turn)]
        for row, context in zip(rows.tolist(), self.contexts(rows), strict=True):
            found = self._fitted.fit(context)
            if np.isfinite(found).all():
                self._columns["parameters"][row] = found


_PATH_CONTEXT_BARS = 32
_MEAN_SIZE = 0.775  # E|z| of a scaled return in the model's training
_SIZE_PRIOR_BARS, _SIZE_BARS = 60.0, 1000.0
_MIN_SIZE, _MAX_SIZE = 0.3, 2.5  # a price that does not move for years must not lose its unit
_MAX_SCALED_RETURN = 10.0
_READ_AT, _DRAWN_AT = "read_at", "drawn_at"


@dataclass(frozen=True, slots=True)
class SamplingBudget:
    """How much may be drawn at one instant, so that many series never stall it.

    The law of the next bar is one reading (2 ms), exact; horizons beyond it take `num_paths` paths (100 ms) and are
    drawn after the forecast is out. A series that must wait keeps its last shape, at today's volatility.
    """

    num_laws: int = 16
    num_drawn: int = 1
    num_paths: int = 64


class TrajectoryExpert:
    """Reads the last 32 returns in units of `units`, and mirrored: the law is even, without drift.

    The model's forecast is cached for each series as a shape at unit volatility [H, Q].
    """

    name = "mini"

    def __init__(
        self,
        config: ForecastConfig,
        sampler: PathSampler,
        *,
        units: VolatilityUnits | None = None,
        budget: SamplingBudget | None = None,
        seed: int = 0,
    ) -> None:
        self.version = sampler.version
        self._sampler = sampler
        self._units = long_memory_units("ranges") if units is None else units
        self._budget = SamplingBudget() if budget is None else budget
        self._seed = seed
        self._horizons, self._levels = config.horizons, config.levels
        self._min_bars = config.history_bars
        self._columns = SeriesColumns()
        self._columns.declare("components", np.zeros(len(self._units.gains)))
        self._columns.declare("size", _MEAN_SIZE)
        self._columns.declare("num", 0, np.int64)
        self._columns.declare("context", np.full(_PATH_CONTEXT_BARS, np.nan))
        self._columns.declare("sigma", np.nan)
        self._shapes = CachedShapes(len(config.horizons), len(config.levels), (_READ_AT, _DRAWN_AT))

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._shapes.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        self.observe(bars)
        if self._horizons[0] == 1:
            self._ask(bars.index, (1,), slice(0, 1), _READ_AT, self._budget.num_laws)

    def observe(self, bars: BarBatch) -> None:
        """Take in one closed bar of each row, and ask nothing of the model."""
        columns, rows = self._columns, bars.rows
        sigma, size = columns["sigma"][rows], columns["size"][rows]
        known = np.isfinite(sigma) & (bars.age >= self._min_bars)
        z = np.where(known, bars.returns / np.where(known, sigma, 1.0), 0.0)
        z = np.minimum(np.maximum(z, -_MAX_SCALED_RETURN), _MAX_SCALED_RETURN)
        context = columns["context"][rows]
        pushed = np.concatenate([context[:, 1:], z[:, None]], axis=1)
        columns["context"][rows] = np.where(known[:, None], pushed, context)
        # How ranges relate to squared returns differs between markets, so the unit is learnt.
        gain = 1.0 / np.minimum(columns["num"][rows] + _SIZE_PRIOR_BARS, _SIZE_BARS)
        size = size + np.where(known, gain * (np.abs(z) * size / _MEAN_SIZE - size), 0.0)
        size = np.minimum(np.maximum(size, _MIN_SIZE), _MAX_SIZE)
        columns["size"][rows] = size
        columns["num"][rows] = np.where(known, columns["num"][rows] + 1, columns["num"][rows])
        components = self._units.update(columns["components"][rows], self._units.bar_variance(bars), bars.age)
        columns["components"][rows] = components
        columns["sigma"][rows] = self._units.sigma(components) * (size / _MEAN_SIZE)

    def learn(self, bars: BarBatch) -> None:
        """Draw the paths of those that have waited longest."""
        beyond = tuple(h for h in self._horizons if h > 1)
        if beyond:
            place = slice(len(self._horizons) - len(beyond), None)
            self._ask(bars.index[bars.due], beyond, place, _DRAWN_AT, self._budget.num_drawn)

    def _ask(
        self, index: NDArray[np.intp], horizons: tuple[int, ...], place: slice, question: str, most: int
    ) -> None:
        num = self._columns["num"]
        ready = index[num[index] > 0]
        rows = self._shapes.take_turn(ready, num[ready], question, most)
        if len(rows):
            self._shapes.store(rows, place, self.shapes(rows, horizons))

    def shapes(self, rows: NDArray[np.intp], horizons: Sequence[int]) -> Array:
        """The model's forecast of these rows now, at unit volatility [n, K, Q], for rising horizons."""
        contexts = [context[np.isfinite(context)] for context in self._columns["context"][rows]]
        prefixes = [self._sampler.prefix(context) for context in contexts]
        prefixes += [self._sampler.prefix(-context) for context in contexts]
        num_paths = self._budget.num_paths // 2 if horizons[-1] > 1 else 1
        z, laws = self._sampler.paths(prefixes, horizons, num_paths, self._seed)
        half = len(rows)
        z = np.concatenate([z[:half], -z[half:]], axis=1)
        laws = np.concatenate([laws[:half], laws[half:, :, :, ::-1]], axis=1)
        components = self._columns["components"][rows]
        before = self._units.sigma(components)
        unit = components / (before * before)[:, None]
        return path_quantiles(z, laws, self._sampler.centres, unit, self._units, horizons, self._levels)

    def sigma(self, rows: NDArray[np.intp]) -> Array:
        """Volatility of the next bar [n], NaN while it is not known."""
        return np.where(self._columns["num"][rows] > 0, self._columns["sigma"][rows], np.nan)

    def quantiles(self, rows: Rows) -> Array:
        """NaN until a series' next bar was read and its paths were drawn."""
        return self._shapes.quantiles(rows, self._columns["sigma"][rows])

    def state(self) -> dict[str, Any]:
        return {"bars": self._columns.state(), "kept": self._shapes.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["bars"])
        self._shapes.restore(state["kept"])
