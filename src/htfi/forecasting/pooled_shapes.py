"""Shapes of distributions pooled over all series of an interval: what one history is too short for.

`PooledShape` counts outcomes in units of scale and size; `half_scales` gives falls and rises scales of their own.
Groups are `BarBatch.group`. The time of a group is counted in its bars, however they arrive.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns, distinct
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.scores import integration_weights

Array = NDArray[np.float64]

_LN2 = 0.6931471805599453
_SHAPE_HALF_LIFE_BARS = 3000.0  # the size follows the market, the shape hardly changes
_SIZE_BARS = 250.0
_MIN_SIZE_SPANS = 46.0  # outcomes that do not overlap, of a longer horizon
_SIZE_PRIOR_BARS = 100.0
_GROUP_SIZE_PRIOR = 50.0  # independent outcomes
_BIN, _NUM_SIDE = 0.05, 240  # sizes: bins reach to twelve of them
_GAUSSIAN_SIZES = 1.2533141373155003  # standard deviations of a Gaussian in its mean absolute values
_PRIOR_FREEDOM = (
    4.0  # of the Student-t that a shape is drawn to; at each horizon, for volatility stays uncertain
)
_SHAPE_PRIOR = 25.0  # independent outcomes that the prior weighs as much as
_SKEW_PRIOR = 100.0  # independent outcomes at which skew is trusted by half
_MEAN_PRIOR = (
    600.0  # the same of the mean: means lie about zero by 1/√600 of a scale, once a drift is taken off
)
_MAX_INDEPENDENT = 3.0  # series that count as independent at most: the rest follow the market
_HALF_SLOPE = 0.0675  # of the log of a half's scale, by ln(weeks) and by log volatility above the usual
_WEEK_BARS = 5
_MAX_ABOVE = 1.5  # log volatility about the usual that moves the halves


def half_slopes(horizons: Sequence[int]) -> Array:
    """How far the scales of falls and rises follow the state of volatility [H]: not up to five bars, then ever more."""
    return np.array([round(_HALF_SLOPE * math.log(max(bars / _WEEK_BARS, 1.0)), 12) for bars in horizons])


def half_scales(scale: Array, above: Array, slopes: Array) -> Array:
    """Scales of falls and of rises [n, H, 2] from a scale [n, H] whose volatility is `above` its usual level, in logs.

    Volatility returns to its level over a long horizon, but what brings it back down is a rising price, and what keeps
    it up a falling one. So above the usual only rises are narrowed; below it, both are widened.
    """
    if compiled.core is not None:
        halves = np.empty((*scale.shape, 2))
        compiled.core.fill_halves(scale, above, slopes, halves, _MAX_ABOVE)
        return halves
    above = np.minimum(np.maximum(above, -_MAX_ABOVE), _MAX_ABOVE)
    falls = scale * exact.exp(-(slopes * np.minimum(above, 0.0)))
    rises = scale * exact.exp(-(slopes * above))
    return np.stack([falls, rises], axis=-1)


def half_quantiles(scale: Array, above: Array, slopes: Array, shape: Array) -> Array:
    """Quantiles [n, H, Q] of shapes [n, H, Q] at `half_scales`; in order, as no scale is negative."""
    if compiled.core is not None:
        quantiles = np.empty(shape.shape)
        compiled.core.fill_half_quantiles(scale, above, slopes, shape, quantiles, _MAX_ABOVE)
        return quantiles
    halves = half_scales(scale, above, slopes)
    return np.where(shape < 0.0, halves[..., :1], halves[..., 1:]) * shape


class PooledShape:
    """The distribution of outcomes in units of scale and size, counted over all series of a group.

    A series' size is the mean |outcome| / scale of its last 250 bars, or 46 spans of a longer horizon, drawn to the
    group's, and that to the group's at the shortest horizon. The shape is drawn to a Student-t, its skew to none and,
    six times as far, its mean: many series of one market are worth three independent ones at most.
    """

    def __init__(self, config: ForecastConfig) -> None:
        self._levels = np.array(config.levels)
        self._cells = integration_weights(config.levels)
        self._horizons = np.array(config.horizons)
        self._size_bars = np.maximum(_SIZE_BARS, _MIN_SIZE_SPANS * self._horizons)
        longest, num = config.horizons[-1], len(config.horizons)
        self._series = SeriesColumns()
        self._series.declare("group", -1, np.int64)
        self._series.declare("halves", np.full((num, longest, 2), np.nan))
        self._series.declare("sized", np.full((num, longest), np.nan))
        self._series.declare("size", np.ones(num))
        self._series.declare("num", np.zeros(num))
        self._groups = SeriesColumns()
        self._groups.declare("counts", np.zeros((num, 2 * _NUM_SIDE + 1)))
        self._groups.declare("sizes", np.full(num, _SIZE_PRIOR_BARS / _GAUSSIAN_SIZES))
        self._groups.declare("num", np.full(num, _SIZE_PRIOR_BARS))
        self._groups.declare("bars", np.zeros(num))
        self._groups.declare("independent", 1.0)  # series that the group is worth
        self._groups.declare("owed_bars", 0.0)
        self._prior = _prior_counts()
        blank = np.broadcast_to(_count_quantiles(self._prior, self._levels), (num, len(self._levels)))
        self._groups.declare("shape", 0.5 * (blank - blank[:, ::-1]))
        self._scratch = np.empty((2 + num) * (2 + len(self._prior)) + len(self._levels))

    def grow(self, num_series: int) -> None:
        self._series.grow(num_series)

    def of(self, rows: Rows, groups: NDArray[np.int64]) -> tuple[Array, Array]:
        """Sizes [n, H] and shapes [n, H, Q] of these rows."""
        series, columns = self._series, self._groups
        columns.grow(int(groups.max(initial=0)) + 1)
        if compiled.core is not None:
            num, shape = series["num"][rows], columns["shape"]
            sizes, shapes = np.empty(num.shape), np.empty((len(num), *shape.shape[1:]))
            compiled.core.shapes_of(
                groups, num, series["size"][rows], self._horizons, columns["sizes"], columns["num"], columns["bars"],
                columns["independent"], shape, sizes, shapes, _SIZE_PRIOR_BARS, _GROUP_SIZE_PRIOR,
            )  # fmt: skip
            return sizes, shapes
        groups = np.maximum(groups, 0)
        return self._size(rows, groups, self._group_sizes()), columns["shape"][groups]

    def learn(self, bars: BarBatch, halves: Array) -> None:
        """Count the outcomes that came with these bars, then keep the scales [n, H, 2] forecast from them."""
        series, groups = self._series, self._groups
        groups.grow(int(bars.group.max()) + 1)
        if compiled.core is not None:
            compiled.core.learn_shapes(
                bars.index, bars.age, bars.group, bars.outcomes, halves, self._horizons,
                *(series[name] for name in ("group", "halves", "sized", "size", "num")),
                *(groups[name] for name in ("counts", "sizes", "num", "bars", "independent", "owed_bars", "shape")),
                self._prior, self._levels, self._size_bars, self._scratch, _BIN, _SIZE_PRIOR_BARS,
                _SHAPE_HALF_LIFE_BARS, _GROUP_SIZE_PRIOR, _MAX_INDEPENDENT, _SHAPE_PRIOR, _SKEW_PRIOR,
                _MEAN_PRIOR, self._cells,
            )  # fmt: skip
            return
        series["group"][bars.rows] = bars.group
        num_series = {group: int((series["group"] == group).sum()) for group in distinct(bars.group)}
        for group, num in num_series.items():
            groups["independent"][group] = min(float(num), _MAX_INDEPENDENT)
        self._count_bars(bars, halves, num_series, self._group_sizes())
        for group in num_series:
            if groups["owed_bars"][group] >= 1.0:
                groups["owed_bars"][group] = 0.0
                self._fit(group)

    def _count_bars(self, bars: BarBatch, halves: Array, num_series: dict[int, int], expected: Array) -> None:
        series, at, across = self._series, bars.index[:, None], np.arange(len(self._horizons))
        longest = series["sized"].shape[2]
        slot = (bars.age[:, None] - self._horizons) % longest
        is_rise = (bars.outcomes > 0.0).astype(np.int64)
        signed = bars.outcomes / series["halves"][at, across, slot, is_rise]
        size, places = np.abs(signed), signed / series["sized"][at, across, slot]
        known = np.isfinite(size) & np.isfinite(places)
        reach = _BIN * _NUM_SIDE
        places = np.rint(np.minimum(np.maximum(np.where(known, places, 0.0), -reach), reach) / _BIN)
        size = np.minimum(np.where(known, size, 0.0), reach)
        series["sized"][bars.index, :, bars.age % longest] = self._size(bars.rows, bars.group, expected)
        series["halves"][bars.index, :, bars.age % longest] = halves
        num = series["num"][bars.rows]
        gain = 1.0 / np.minimum(num + 1.0, self._size_bars)
        series["size"][bars.rows] += gain * np.where(known, size - series["size"][bars.rows], 0.0)
        series["num"][bars.rows] = np.minimum(num + known, self._size_bars)
        for group, num_of_group in num_series.items():
            of_group = bars.group == group
            self._count(
                group, places[of_group].astype(np.int64), size[of_group], known[of_group], num_of_group
            )

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

    def _fit(self, group: int) -> None:
        groups = self._groups
        independent = groups["bars"][group] / self._horizons * groups["independent"][group]
        for j, num in enumerate(independent.tolist()):
            counts = groups["counts"][group, j]
            seen = counts.sum()  # none of a long horizon yet, of a short one some: then the prior alone
            weight = _SHAPE_PRIOR * (seen if seen > 0.0 else 1.0) / max(num, 1.0)
            both = _count_quantiles(counts + weight * self._prior, self._levels)
            even, odd = 0.5 * (both + both[::-1]), 0.5 * (both - both[::-1])
            shape = odd + num / (num + _SKEW_PRIOR) * even
            shape = np.maximum.accumulate(shape)
            mean = np.cumsum(self._cells * shape)[-1]  # in order, as the compiled one adds
            groups["shape"][group, j] = shape - _MEAN_PRIOR / (num + _MEAN_PRIOR) * mean

    def _size(self, rows: Rows, groups: NDArray[np.int64], expected: Array) -> Array:
        """Sizes [n, H] of series, drawn to those `expected` of their groups [G, H]."""
        num = self._series["num"][rows] / self._horizons
        own = self._series["size"][rows]
        return (num * own + _SIZE_PRIOR_BARS * expected[groups]) / (num + _SIZE_PRIOR_BARS)

    def _group_sizes(self) -> Array:
        """The size of each group [G, H], drawn to that at the shortest horizon while independent outcomes are few."""
        groups = self._groups
        raw = groups["sizes"] / groups["num"]
        num = groups["bars"] / self._horizons * groups["independent"][:, None]
        return (num * raw + _GROUP_SIZE_PRIOR * raw[:, :1]) / (num + _GROUP_SIZE_PRIOR)

    def state(self) -> dict[str, Any]:
        return {"series": self._series.state(), "groups": self._groups.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._series.restore(state["series"])
        self._groups.restore(state["groups"])


def _prior_counts() -> Array:
    """Shares [B] of a Student-t with 4 degrees of freedom whose mean absolute value is 1.

    Its distribution is in closed form: F(x) = ½ + ¾ s (1 − s²/3), s = x/√(x² + 4); E|x| = 1. To 12 digits, so that
    every machine has the same.
    """
    shares = [place / math.sqrt(place * place + _PRIOR_FREEDOM) for place in _edges()]
    below = [0.0, *(0.5 + 0.75 * s * (1.0 - s * s / 3.0) for s in shares), 1.0]
    return np.array([round(after - before, 12) for before, after in pairwise(below)])


def _edges() -> list[float]:
    return [(place + 0.5) * _BIN for place in range(-_NUM_SIDE, _NUM_SIDE)]


def _count_quantiles(counts: Array, levels: Array) -> Array:
    """Quantiles [Q] of counts [B], even within a bin."""
    total: Array = np.cumsum(counts)
    wanted = levels * total[-1]
    found: NDArray[np.int64] = np.array(np.searchsorted(total, wanted), np.int64)
    place: NDArray[np.int64] = np.minimum(found, len(counts) - 1)
    below = total[place] - counts[place]
    share = (wanted - below) / np.maximum(counts[place], 1e-300)
    return _BIN * (place - _NUM_SIDE - 0.5 + share)
