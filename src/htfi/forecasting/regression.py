"""Many small least-squares fits at once, updated bar by bar; and fits and shapes pooled over all series of an interval.

Groups are `BarBatch.group`. The time of a group is counted in its bars, however they arrive.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns, distinct, push_window, row_means
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.shapes import ResidualShapes, scale_shape

Array = NDArray[np.float64]

_NOISE_PRIOR_VAR = 0.5
_NOISE_PRIOR_BARS = 20.0
MAX_LOG_DEVIATION = (
    6.0  # regressors, targets and forecasts, in logs, further than this from their level: a feed waking up
)


class DiscountedRegression:
    """Ridge regressions y = x·β drawn to a prior β, the past discounted by a half-life.

    Normal equations A β = c with A ← λA + xxᵀ + (1−λ)P and c ← λc + xy + (1−λ)Pβ₀, so that the prior
    keeps its weight P = prior_bars·I for ever: an unseen direction never becomes singular.
    """

    def __init__(self, num_targets: int, prior: Array, prior_bars: float, half_life_bars: float) -> None:
        k = len(prior)
        self._keep = round(0.5 ** (1.0 / half_life_bars), 12)
        self._prior_gram, self._prior_moment = prior_bars * np.eye(k), prior_bars * prior
        self.columns = SeriesColumns()
        self.columns.declare("gram", np.broadcast_to(self._prior_gram, (num_targets, k, k)))
        self.columns.declare("moment", np.broadcast_to(self._prior_moment, (num_targets, k)))
        self.columns.declare("beta", np.broadcast_to(prior, (num_targets, k)))
        self.columns.declare("noise", np.full(num_targets, _NOISE_PRIOR_VAR))
        self.columns.declare("num", np.zeros(num_targets))

    def learn(self, rows: NDArray[np.intp], x: Array, y: Array, known: NDArray[np.bool_]) -> None:
        """Take in x [n, H, K] with outcomes y [n, H] where `known` [n, H]."""
        columns = self.columns
        if compiled.core is not None:
            names = ("gram", "moment", "beta", "noise", "num")
            compiled.core.learn_regression(
                rows, x, y, known.view(np.uint8), *(columns[name] for name in names),
                self._prior_gram, self._prior_moment, np.empty(x.shape[2]), self._keep, _NOISE_PRIOR_BARS,
            )  # fmt: skip
            return
        weight = known.astype(np.float64)
        keep = 1.0 - weight * (1.0 - self._keep)
        renewed = weight * (1.0 - self._keep)
        y = np.where(known, y, 0.0)
        x = x * weight[:, :, None]
        miss = y - (x * columns["beta"][rows]).sum(axis=2)
        noise, num = columns["noise"][rows], columns["num"][rows]
        gain = weight * np.maximum(1.0 / (num + _NOISE_PRIOR_BARS), 1.0 - self._keep)
        columns["noise"][rows] = noise + gain * (miss * miss - noise)
        columns["num"][rows] = num + weight
        gram = columns["gram"][rows] * keep[:, :, None, None]
        gram += x[:, :, :, None] * x[:, :, None, :] + renewed[:, :, None, None] * self._prior_gram
        moment = columns["moment"][rows] * keep[:, :, None]
        moment += x * y[:, :, None] + renewed[:, :, None] * self._prior_moment
        columns["gram"][rows], columns["moment"][rows] = gram, moment

    def fit(self, rows: NDArray[np.intp]) -> None:
        """Bring β of these rows up to date with what was learnt."""
        self.columns["beta"][rows] = solve_normal_equations(
            self.columns["gram"][rows], self.columns["moment"][rows]
        )

    def predict(self, rows: Rows, x: Array) -> Array:
        """E[y] in logs plus half the noise variance, [n, H], for x [n, K]: log-normal mean."""
        fitted = (x[:, None, :] * self.columns["beta"][rows]).sum(axis=2)
        return fitted + 0.5 * self.columns["noise"][rows]


def solve_normal_equations(gram: Array, moment: Array) -> Array:
    """β [..., K] of gram [..., K, K] β = moment [..., K] for positive definite grams.

    Gauss-Jordan elimination in exactly rounded operations, not LAPACK, whose bits depend on the processor.
    """
    k = gram.shape[-1]
    if compiled.core is not None:
        system = np.concatenate([gram, moment[..., None]], axis=-1).reshape(-1, k, k + 1)
        found = np.empty((len(system), k))
        compiled.core.solve(system, found)
        return found.reshape(moment.shape)
    a = np.concatenate([gram, moment[..., None]], axis=-1)
    a = np.ascontiguousarray(np.moveaxis(a, (-2, -1), (0, 1)))  # [K, K+1, ...]
    for i in range(k):
        pivot = a[i] / a[i, i]
        a -= a[:, i, None] * pivot
        a[i] = pivot
    return np.moveaxis(a[:, k], 0, -1)


def clamp_logs(logs: Array) -> Array:
    """Logs about their level within ±6: beyond it a feed wakes from a flat stretch."""
    return np.minimum(np.maximum(logs, -MAX_LOG_DEVIATION), MAX_LOG_DEVIATION)


_LN2 = 0.6931471805599453
_FIT_HALF_LIFE_BARS = 1500.0
_PRIOR_BARS = 100.0
_POOLED_NOISE_VAR, _POOLED_NOISE_BARS = 0.5, 20.0
_RENEWAL_BARS = 5.0

_SHAPE_HALF_LIFE_BARS = 3000.0  # the size follows the market, the shape hardly changes
_SIZE_BARS = 250.0
_MIN_SIZE_SPANS = 46.0  # outcomes that do not overlap, of a longer horizon
_SIZE_PRIOR_BARS = 100.0
_BIN, _NUM_SIDE = 0.05, 240  # sizes: bins reach to twelve of them
_GAUSSIAN_SIZES = 1.2533141373155003  # standard deviations of a Gaussian in its mean absolute values
_SHAPE_PRIOR_BARS = 50.0
_SKEW_PRIOR = 300.0  # independent outcomes at which skew and median are trusted by half
_MAX_INDEPENDENT = 10.0  # series that count as independent at most: the rest follow the market


class PooledRegression:
    """Ridge regressions y = x·β, one for each group and horizon, drawn to a prior; the past fades by a half-life."""

    def __init__(self, horizons: Sequence[int], prior: Array) -> None:
        num, k = len(horizons), len(prior)
        self._prior_moment = _PRIOR_BARS * prior
        self._prior_gram = _PRIOR_BARS * np.eye(k)
        self.columns = SeriesColumns()
        self.columns.declare("gram", np.broadcast_to(self._prior_gram, (num, k, k)))
        self.columns.declare("moment", np.broadcast_to(self._prior_moment, (num, k)))
        self.columns.declare("beta", np.broadcast_to(prior, (num, k)))
        self.columns.declare("squares", np.full(num, _POOLED_NOISE_VAR * _POOLED_NOISE_BARS))
        self.columns.declare("num", np.full(num, _POOLED_NOISE_BARS))
        self.columns.declare("owed_bars", 0.0)

    def learn(
        self,
        group: int,
        groups: NDArray[np.int64],
        x: Array,
        y: Array,
        known: NDArray[np.bool_],
        num_series: int,
    ) -> None:
        """Take in x [n, H, K] with outcomes y [n, H] where `known` [n, H], of a group of so many series.

        Of n rows those count that are of this group, by `groups` [n].
        """
        self.columns.grow(group + 1)
        columns = self.columns
        if compiled.core is not None:
            names, size = ("gram", "moment", "beta", "squares", "num"), x.shape[2]
            bars = compiled.core.learn_pooled(
                group, groups, x, y, known.view(np.uint8), *(columns[name] for name in names), self._prior_gram,
                self._prior_moment, np.empty((size + 2, size)), num_series, _FIT_HALF_LIFE_BARS,
            )  # fmt: skip
        else:
            place = np.flatnonzero(groups == group)
            bars = self._add_products(group, x[place], y[place], known[place], num_series)
        columns["owed_bars"][group] += bars[0]
        if columns["owed_bars"][group] >= _RENEWAL_BARS:
            columns["owed_bars"][group] = 0.0
            columns["beta"][group] = solve_normal_equations(columns["gram"][group], columns["moment"][group])

    def _add_products(
        self, group: int, x: Array, y: Array, known: NDArray[np.bool_], num_series: int
    ) -> Sequence[float]:
        columns = self.columns
        weight = known.astype(np.float64)
        bars = weight.sum(axis=0) / num_series  # [H]
        keep = exact.exp(-_LN2 / _FIT_HALF_LIFE_BARS * bars)
        x = x * weight[:, :, None]
        y = np.where(known, y, 0.0)
        miss = y - (x * columns["beta"][group]).sum(axis=2)
        columns["squares"][group] = keep * columns["squares"][group] + (miss * miss).sum(axis=0)
        columns["num"][group] = keep * columns["num"][group] + weight.sum(axis=0)
        gram = (x[:, :, :, None] * x[:, :, None, :]).sum(axis=0)
        gram += (1.0 - keep)[:, None, None] * self._prior_gram
        columns["gram"][group] = keep[:, None, None] * columns["gram"][group] + gram
        moment = (x * y[:, :, None]).sum(axis=0) + (1.0 - keep)[:, None] * self._prior_moment
        columns["moment"][group] = keep[:, None] * columns["moment"][group] + moment
        return bars.tolist()

    def predict(self, groups: NDArray[np.int64], x: Array) -> Array:
        """E[y] in logs plus half the noise variance, [n, H], for x [n, K] of these groups [n]: log-normal mean."""
        self.columns.grow(int(groups.max()) + 1)
        noise = self.columns["squares"] / self.columns["num"]
        return (x[:, None, :] * self.columns["beta"][groups]).sum(axis=2) + 0.5 * noise[groups]


class PooledShape:
    """The distribution of outcomes in units of scale and size, counted over all series of a group.

    A series' size is the mean |outcome| / scale of its last 250 bars, or 46 spans of a longer horizon, drawn to the
    group's. The median is the group's as well, as far as its outcomes can be distinguished from luck: what is common to
    all series is seldom read off one.
    """

    def __init__(self, config: ForecastConfig) -> None:
        self._levels = np.array(config.levels)
        self._horizons = np.array(config.horizons)
        self._size_bars = np.maximum(_SIZE_BARS, _MIN_SIZE_SPANS * self._horizons)
        longest, num = config.horizons[-1], len(config.horizons)
        self._series = SeriesColumns()
        self._series.declare("raw", np.full((num, longest), np.nan))
        self._series.declare("sized", np.full((num, longest), np.nan))
        self._series.declare("size", np.ones(num))
        self._series.declare("num", np.zeros(num))
        self._groups = SeriesColumns()
        self._groups.declare("counts", np.zeros((num, 2 * _NUM_SIDE + 1)))
        self._groups.declare("sizes", np.full(num, _SIZE_PRIOR_BARS / _GAUSSIAN_SIZES))
        self._groups.declare("num", np.full(num, _SIZE_PRIOR_BARS))
        self._groups.declare("bars", np.zeros(num))
        self._groups.declare("owed_bars", 0.0)
        self._prior = _gaussian_counts()
        blank = np.broadcast_to(_count_quantiles(self._prior, self._levels), (num, len(self._levels)))
        self._groups.declare("shape", 0.5 * (blank - blank[:, ::-1]))

    def grow(self, num_series: int) -> None:
        self._series.grow(num_series)

    def of(self, rows: Rows, groups: NDArray[np.int64]) -> tuple[Array, Array]:
        """Sizes [n, H] and shapes [n, H, Q] of these rows."""
        groups = np.maximum(groups, 0)
        self._groups.grow(int(groups.max(initial=0)) + 1)
        return self._size(rows, groups), self._groups["shape"][groups]

    def learn(self, bars: BarBatch, scale: Array, group_of: NDArray[np.int64]) -> None:
        """Count the outcomes that came with these bars, then keep the scale [n, H] forecast from them.

        `group_of` [rows] numbers the group of every series, −1 for none.
        """
        self._groups.grow(int(bars.group.max()) + 1)
        num_series = {group: max(int((group_of == group).sum()), 1) for group in distinct(bars.group)}
        if compiled.core is not None:
            self._count_compiled(compiled.core, bars, scale, num_series)
        else:
            self._count_bars(bars, scale, num_series)
        for group, num in num_series.items():
            if self._groups["owed_bars"][group] >= 1.0:
                self._groups["owed_bars"][group] = 0.0
                self._fit(group, num)

    def _count_compiled(self, core: Any, bars: BarBatch, scale: Array, num_series: dict[int, int]) -> None:
        series, groups = self._series, self._groups
        seen = np.empty((2 + groups["counts"].shape[2], len(self._horizons)))
        for group, num in num_series.items():
            core.count_outcomes(
                bars.index, bars.age, bars.group, bars.outcomes, scale, self._horizons, series["raw"],
                series["sized"], series["size"], series["num"], groups["counts"], groups["sizes"], groups["num"],
                groups["bars"], groups["owed_bars"], group, num, seen, _BIN, self._size_bars, _SIZE_PRIOR_BARS,
                _SHAPE_HALF_LIFE_BARS,
            )  # fmt: skip

    def _count_bars(self, bars: BarBatch, scale: Array, num_series: dict[int, int]) -> None:
        series, at, across = self._series, bars.index[:, None], np.arange(len(self._horizons))
        sized = scale * self._size(bars.rows, bars.group)
        slot = (bars.age[:, None] - self._horizons) % series["raw"].shape[2]
        size = np.abs(bars.outcomes / series["raw"][at, across, slot])
        places = bars.outcomes / series["sized"][at, across, slot]
        known = np.isfinite(size) & np.isfinite(places)
        reach = _BIN * _NUM_SIDE
        places = np.rint(np.minimum(np.maximum(np.where(known, places, 0.0), -reach), reach) / _BIN)
        size = np.minimum(np.where(known, size, 0.0), reach)
        num = series["num"][bars.rows]
        gain = 1.0 / np.minimum(num + 1.0, self._size_bars)
        away = np.where(known, size - series["size"][bars.rows], 0.0)
        series["size"][bars.rows] += gain * away
        series["num"][bars.rows] = np.minimum(num + known, self._size_bars)
        for group, num_of_group in num_series.items():
            of_group = bars.group == group
            self._count(
                group, places[of_group].astype(np.int64), size[of_group], known[of_group], num_of_group
            )
        slots = bars.age % series["raw"].shape[2]
        series["raw"][bars.index, :, slots] = scale
        series["sized"][bars.index, :, slots] = sized

    def _count(
        self, group: int, places: NDArray[np.int64], size: Array, known: NDArray[np.bool_], num_series: int
    ) -> None:
        groups = self._groups
        bars = known.sum(axis=0) / num_series
        keep = exact.exp(-_LN2 / _SHAPE_HALF_LIFE_BARS * bars)
        for j in range(known.shape[1]):
            seen = np.bincount(places[known[:, j], j] + _NUM_SIDE, minlength=2 * _NUM_SIDE + 1)
            groups["counts"][group, j] = keep[j] * groups["counts"][group, j] + seen
        groups["sizes"][group] = keep * groups["sizes"][group] + size.sum(axis=0)
        groups["num"][group] = keep * groups["num"][group] + known.sum(axis=0)
        groups["bars"][group] = keep * groups["bars"][group] + bars
        groups["owed_bars"][group] += bars[0]

    def _fit(self, group: int, num_series: int) -> None:
        groups = self._groups
        independent = groups["bars"][group] / self._horizons * min(float(num_series), _MAX_INDEPENDENT)
        for j, num in enumerate(independent.tolist()):
            counts = groups["counts"][group, j]
            if compiled.core is not None:
                compiled.core.fit_shape(
                    counts, self._prior, self._levels, num, _SHAPE_PRIOR_BARS, _SKEW_PRIOR, _BIN,
                    np.empty(2 * len(counts)), np.empty(len(self._levels)), groups["shape"][group, j],
                )  # fmt: skip
                continue
            weight = _SHAPE_PRIOR_BARS * counts.sum() / max(num, 1.0)
            both = _count_quantiles(counts + weight * self._prior, self._levels)
            even, odd = 0.5 * (both + both[::-1]), 0.5 * (both - both[::-1])
            shape = odd + num / (num + _SKEW_PRIOR) * even
            groups["shape"][group, j] = np.maximum.accumulate(shape)

    def _size(self, rows: Rows, groups: NDArray[np.int64]) -> Array:
        pooled = (self._groups["sizes"] / self._groups["num"])[groups]
        num = self._series["num"][rows] / self._horizons
        own = self._series["size"][rows]
        return (num * own + _SIZE_PRIOR_BARS * pooled) / (num + _SIZE_PRIOR_BARS)

    def state(self) -> dict[str, Any]:
        return {"series": self._series.state(), "groups": self._groups.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._series.restore(state["series"])
        self._groups.restore(state["groups"])


def _gaussian_counts() -> Array:
    """Shares [B] of a Gaussian whose mean absolute value is 1, to 12 digits so that every machine has the same."""
    law = NormalDist(0.0, _GAUSSIAN_SIZES)
    edges: list[float] = [law.cdf((place + 0.5) * _BIN) for place in range(-_NUM_SIDE, _NUM_SIDE)]
    ends = [0.0, *edges, 1.0]
    return np.array([round(after - before, 12) for before, after in pairwise(ends)])


def _count_quantiles(counts: Array, levels: Array) -> Array:
    """Quantiles [Q] of counts [B], even within a bin."""
    total: Array = np.cumsum(counts)
    wanted = levels * total[-1]
    found: NDArray[np.int64] = np.array(np.searchsorted(total, wanted), np.int64)
    place: NDArray[np.int64] = np.minimum(found, len(counts) - 1)
    below = total[place] - counts[place]
    share = (wanted - below) / np.maximum(counts[place], 1e-300)
    return _BIN * (place - _NUM_SIDE - 0.5 + share)


def collect_targets(
    bars: BarBatch,
    variance: Array,
    past: Array,
    columns: SeriesColumns,
    horizons: NDArray[np.int64],
    min_bars: int,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """What a HAR in logs regresses at these bars: x [n, H, K] of h bars ago, y [n, H], where they are known [n, H].

    y is the log of the mean `variance` [n] since, about the series' level then. `past` [N, L] takes in the variance,
    columns "levels" and "regressors" the bars' "level" and "newest" regressors.
    """
    age, longest = bars.age, past.shape[1]
    if compiled.core is not None:
        shape = (len(age), len(horizons))
        x, y = np.empty((*shape, columns["newest"].shape[1])), np.empty(shape)
        known = np.empty(shape, np.bool_)
        compiled.core.collect_targets(
            bars.index, age, variance, horizons, past, columns["levels"], columns["regressors"],
            columns["level"], columns["newest"], x, y, known.view(np.uint8), min_bars, MAX_LOG_DEVIATION,
        )  # fmt: skip
        return x, y, known
    window = push_window(past, bars.rows, variance)
    means = np.stack([row_means(window[:, -h:]) for h in horizons], axis=1)  # [n, H]
    at, slots = bars.index[:, None], (age[:, None] - horizons) % longest
    known = age[:, None] - horizons >= min_bars - 1
    y = clamp_logs(exact.log(np.maximum(means, 1e-300)) - columns["levels"][at, slots])
    x = columns["regressors"][at, slots]
    columns["levels"][bars.index, age % longest] = columns["level"][bars.rows]
    columns["regressors"][bars.index, age % longest] = columns["newest"][bars.rows]
    return x, y, known


class RegressionExpert:
    """What the experts share that regress the coming variance for each horizon: their fit, residuals and columns.

    A subclass declares its columns; "scale" [N, H] is the standard deviation that it forecasts.
    """

    def __init__(
        self, config: ForecastConfig, prior: Array, prior_bars: float, half_life_bars: float
    ) -> None:
        self._horizons = np.array(config.horizons)
        self._longest = config.horizons[-1]
        self._root_h = np.sqrt(self._horizons)
        self._fit = DiscountedRegression(len(self._horizons), prior, prior_bars, half_life_bars)
        self._residuals = ResidualShapes(config, math.inf)
        self._columns = SeriesColumns()

    def grow(self, num_series: int) -> None:
        for columns in (self._columns, self._fit.columns):
            columns.grow(num_series)
        self._residuals.grow(num_series)

    def quantiles(self, rows: Rows) -> Array:
        return scale_shape(self._columns["scale"][rows], self._residuals.shape(rows))

    def state(self) -> dict[str, Any]:
        return {
            "bars": self._columns.state(),
            "fit": self._fit.columns.state(),
            "residuals": self._residuals.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["bars"])
        self._fit.columns.restore(state["fit"])
        self._residuals.restore(state["residuals"])
