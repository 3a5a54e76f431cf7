"""From models of scaled returns to quantiles of log returns; experts on language and foundation models use it.

`VolatilityUnits` scale returns and continue along a drawn path; quantiles come from paths and the laws at their ends,
or from a model's own quantiles bar by bar. `CachedShapes` keep a slow model's shapes at unit volatility and choose
whose turn it is: a budget bounds the requests of an instant, and a series that waits keeps its last shape.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows
from htfi.forecasting.shapes import student_quantiles

Array = NDArray[np.float64]

_PLAIN_MEAN_BARS = 1.0  # until 1/gain bars are in, a component is a plain mean


@dataclass(frozen=True, eq=False)
class VolatilityUnits:
    """σ² = Σ shares · v, where each component follows v ← v + gain · (x − v), x a bar's variance.

    Shapes: gains and shares [J], the shares summing to 1. `reads` names the estimate of a closed bar's variance:
    'squares' of returns, as models of our family were taught, or 'ranges' (Parkinson's, in units of squared returns
    by `BarBatch.variance`). Along a drawn path only returns are known, so their squares move every component.
    """

    gains: Array
    shares: Array
    reads: str = "squares"

    def bar_variance(self, bars: BarBatch) -> Array:
        """The variance estimates of these bars: [n]."""
        return bars.variance if self.reads == "ranges" else bars.returns * bars.returns

    def update(self, components: Array, variance: Array, age: NDArray[np.int64]) -> Array:
        """Components [n, J] after bars of such variance [n] and age [n]."""
        gain = np.maximum(_PLAIN_MEAN_BARS / (age[:, None] + 1.0), self.gains)
        return components + gain * (variance[:, None] - components)

    def sigma(self, components: Array) -> Array:
        """Volatility of the next bar [...], from components [..., J]."""
        return np.maximum(np.sqrt((components * self.shares).sum(axis=-1)), SIGMA_FLOOR)

    def advance(self, components: Array, returns: Array) -> Array:
        """Components [..., J] after drawn returns [...]."""
        square = (returns * returns)[..., None]
        return components + self.gains * (square - components)


def ewma_units(decay: float = 0.94) -> VolatilityUnits:
    """Those of training: RiskMetrics 1996."""
    return VolatilityUnits(np.array([1.0 - decay]), np.array([1.0]))


def long_memory_units(reads: str) -> VolatilityUnits:
    """Means over 2.5 … 320 bars with the logarithmically falling shares of Zumbach (RiskMetrics 2006)."""
    bars = [2.5 * 2.0**k for k in range(8)]
    shares = [1.0 - math.log(of) / math.log(600.0) for of in bars]
    return VolatilityUnits(
        np.array([round(1.0 - math.exp(-1.0 / of), 12) for of in bars]),
        np.array([round(share / sum(shares), 12) for share in shares]),
        reads,
    )


def path_quantiles(
    z: Array,
    laws: Array,
    centres: Array,
    components: Array,
    units: VolatilityUnits,
    horizons: Sequence[int],
    levels: Sequence[float],
) -> Array:
    """Quantiles [n, K, Q] of the sum of the next h log returns, for K rising horizons.

    Shapes: z [n, N, ≥ H − 1], drawn returns in units of the volatility before each; laws [n, N, K, C], chances of the
    bins of each path's bar h given the bars before it; centres [C]; components [n, J] of the volatility now.
    Every path ends in the law of its last bar and not in one number (Rao and Blackwell): N paths give N·C atoms, so
    tens of them suffice, and at one bar nothing is drawn at all.
    """
    num, num_paths = laws.shape[:2]
    num_atoms = num_paths * len(centres)
    state = np.broadcast_to(components[:, None], (num, num_paths, components.shape[1]))
    total = np.zeros((num, num_paths))
    found = np.empty((num, len(horizons), len(levels)))
    for step in range(horizons[-1]):
        sigma = units.sigma(state)
        if step + 1 in horizons:
            place = horizons.index(step + 1)
            atoms = total[..., None] + sigma[..., None] * centres  # [n, N, C]
            found[:, place] = weighted_quantiles(
                atoms.reshape(num, num_atoms), laws[:, :, place].reshape(num, num_atoms) / num_paths, levels
            )
        if step + 1 < horizons[-1]:
            returns = z[:, :, step] * sigma
            total = total + returns
            state = units.advance(state, returns)
    return found


def weighted_quantiles(values: Array, weights: Array, levels: Sequence[float]) -> Array:
    """Quantiles [n, Q] of atoms [n, M] with weights [n, M] that sum to 1: linear between the middles of their steps."""
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    share = np.take_along_axis(weights, order, axis=1)
    middle = np.cumsum(share, axis=1) - 0.5 * share
    found = np.empty((len(values), len(levels)))
    for row in range(len(values)):
        found[row] = np.interp(levels, middle[row], ranked[row])
    return np.maximum.accumulate(found, axis=1)  # rounding alone could cross them


_TAIL_FREEDOM = 5.0  # of the tails beyond what a model states


def sum_quantiles(by_bar: Array, median: int, horizons: Sequence[int]) -> Array:
    """Quantiles [n, K, P] of the sum of the next h returns from those of each bar [n, H, P]; `median` is the place of
    the level .5.

    Returns hardly remember each other, so distances from the median add up in squares: exact for Gaussian bars.
    """
    middle = by_bar[:, :, median]  # [n, H]
    away = by_bar - middle[:, :, None]
    reach = np.sqrt(np.cumsum(away * away, axis=1))
    signs: Array = np.sign(np.arange(by_bar.shape[2], dtype=np.float64) - median)
    last = np.array(horizons) - 1
    return np.cumsum(middle, axis=1)[:, last, None] + signs * reach[:, last]


def interpolate_levels(quantiles: Array, stated: Sequence[float], levels: Sequence[float]) -> Array:
    """Quantiles [..., Q] at `levels` from those [..., P] at the `stated` ones, which are rising and hold .5.

    Linear in the quantiles of a Student-t between them; beyond them its tails, in proportion to the outermost. What
    crosses is put in order. Raises: InvalidInput where the stated levels do not serve.
    """
    if len(stated) < 3 or list(stated) != sorted(set(stated)) or not 0.0 < stated[0] < 0.5 < stated[-1] < 1.0:
        raise InvalidInput(f"quantile levels {list(stated)}: three or more, rising, about .5, are needed")
    ranked = np.sort(quantiles, axis=-1)
    at, to = student_quantiles(stated, _TAIL_FREEDOM), student_quantiles(levels, _TAIL_FREEDOM)
    high = np.minimum(np.maximum(np.searchsorted(at, to), 1), len(at) - 1)
    share = np.minimum(np.maximum((to - at[high - 1]) / (at[high] - at[high - 1]), 0.0), 1.0)
    inner = (1.0 - share) * ranked[..., high - 1] + share * ranked[..., high]
    place = int(np.searchsorted(at, 0.0))
    middle = ranked[..., place] if at[place] == 0.0 else 0.5 * (ranked[..., place - 1] + ranked[..., place])
    below = to < at[0]
    ends = np.where(below, ranked[..., :1], ranked[..., -1:])
    edge = np.full(len(to), at[-1])
    edge[below] = at[0]
    beyond = middle[..., None] + (ends - middle[..., None]) * (to / edge)
    outside = below | (to > at[-1])
    return np.maximum.accumulate(np.where(outside, beyond, inner), axis=-1)


class CachedShapes:
    """A shape [H, Q] a series, NaN until it is known whole, and for each kind of question when it was last put."""

    def __init__(self, num_horizons: int, num_levels: int, questions: tuple[str, ...]) -> None:
        self._columns = SeriesColumns()
        self._columns.declare("shape", np.full((num_horizons, num_levels), np.nan))
        for question in questions:
            self._columns.declare(question, -1, np.int64)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)

    def take_turn(
        self, index: NDArray[np.intp], age: NDArray[np.int64], question: str, most: int
    ) -> NDArray[np.intp]:
        """Of rows [n] at such ages, at most so many: those never asked, then those asked longest ago; it is noted."""
        asked = self._columns[question]
        order = np.argsort(np.where(asked[index] < 0, -1, asked[index] - age + 2**40), kind="stable")[:most]
        rows = index[order]
        asked[rows] = age[order]
        return np.sort(rows)

    def store(self, rows: NDArray[np.intp], horizons: slice, shapes: Array) -> None:
        """Shapes [n, K, Q] of these horizons; one that is not finite leaves what was known."""
        known = np.isfinite(shapes).all(axis=(1, 2))
        self._columns["shape"][rows[known], horizons] = shapes[known]

    def quantiles(self, rows: Rows, sigma: Array) -> Array:
        """Quantiles [n, H, Q] at volatilities [n]; NaN for a series whose shape is not known whole."""
        shape = self._columns["shape"][rows]
        known = np.isfinite(shape).all(axis=(1, 2))
        return np.where(known, sigma, np.nan)[:, None, None] * shape

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)
