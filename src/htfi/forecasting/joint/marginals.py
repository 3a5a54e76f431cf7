"""One series' quantiles as a monotone map between log returns and normal scores, tails included.

`JointHistory` scores outcomes with it; scenarios return through it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MAX_SCORE = 8.0  # normal scores: returns beyond it are not distinguished
_CURVE_FACTOR = 6.0  # times the curve of an exponential tail


@dataclass(frozen=True, slots=True)
class _TailShape:
    """Beyond the outermost quantile, x = q ± β·(h·d + c·d²) at d normal scores from it, β read off the two outermost.

    With h the normal hazard at that level and c half its slope this would be the exponential tail through both, to 1%
    as far as once in 300,000; a quadratic is inverted by a square root, which every machine rounds alike. c is six
    times that: the mean excess over the 1% and 99% quantiles is then 1.48 β, as 40 US equities had it in 2008–2011
    over 1 and 5 days; an exponential has 1, and value at risk passed its tests while shortfall was too small.
    """

    score: float  # normal score of the outermost level
    slope: float
    curve: float
    span: float  # β per distance of the two outermost quantiles


class MarginalMap:
    """The map for given levels. Between levels returns are linear in the normal score; exact at the levels."""

    def __init__(self, levels: Sequence[float]) -> None:
        """`levels` rise strictly between 0 and 1; two or more."""
        self._scores = np.array([round(NormalDist().inv_cdf(level), 12) for level in levels])
        self._lower = _tail(1.0 - levels[1], 1.0 - levels[0])
        self._upper = _tail(levels[-2], levels[-1])

    def scores(self, quantiles: Array, outcome: Array) -> Array:
        """Normal scores [n], within ±8, of outcomes [n] under quantiles [n, Q]; NaN where either is.

        Where neighbouring quantiles are equal, an outcome on them has the middle of their scores.
        """
        below = (quantiles < outcome[:, None]).sum(axis=1)
        upto = (quantiles <= outcome[:, None]).sum(axis=1)
        last, row = quantiles.shape[1] - 1, np.arange(len(outcome))
        on = upto > below
        left = below - ~on
        right = upto - on
        left, right = np.maximum(np.minimum(left, last), 0), np.minimum(right, last)
        low, high = quantiles[row, left], quantiles[row, right]
        width = np.where(high > low, high - low, 1.0)
        share = np.where(high > low, (outcome - low) / width, 0.5)
        score = self._scores[left] + share * (self._scores[right] - self._scores[left])
        under, over = upto == 0, below == last + 1
        if under.any():
            away = _inverse(self._lower, quantiles[:, 0] - outcome, quantiles[:, 1] - quantiles[:, 0])
            score = np.where(under, -away, score)
        if over.any():
            away = _inverse(self._upper, outcome - quantiles[:, -1], quantiles[:, -1] - quantiles[:, -2])
            score = np.where(over, away, score)
        return np.where(np.isfinite(outcome) & np.isfinite(quantiles[:, 0]), score, np.nan)

    def returns(self, quantiles: Array, scores: Array) -> Array:
        """Log returns [..., n] at normal scores [..., n] under quantiles [n, Q]. Never decreasing in the score."""
        scores = np.clip(scores, -MAX_SCORE, MAX_SCORE)
        upper = np.clip(np.searchsorted(self._scores, scores), 1, len(self._scores) - 1)
        row = np.arange(len(quantiles))
        low, high = quantiles[row, upper - 1], quantiles[row, upper]
        start, width = self._scores[upper - 1], np.diff(self._scores)[upper - 1]
        share = np.clip((scores - start) / width, 0.0, 1.0)
        found = low + share * (high - low)
        found += _beyond(self._upper, scores - self._upper.score, quantiles[:, -1] - quantiles[:, -2])
        found -= _beyond(self._lower, -scores - self._lower.score, quantiles[:, 1] - quantiles[:, 0])
        return found


def _tail(inner: float, outer: float) -> _TailShape:
    score = NormalDist().inv_cdf(outer)
    hazard = NormalDist().pdf(score) / (1.0 - outer)
    span = 1.0 / math.log((1.0 - inner) / (1.0 - outer))
    slope, curve = round(hazard, 12), round(0.5 * _CURVE_FACTOR * hazard * (hazard - score), 12)
    return _TailShape(round(score, 12), slope, curve, round(span, 12))


def _beyond(tail: _TailShape, away: Array, width: Array) -> Array:
    away = np.maximum(away, 0.0)
    return tail.span * width * away * (tail.slope + tail.curve * away)


def _inverse(tail: _TailShape, distance: Array, width: Array) -> Array:
    """The normal score at `distance` ≥ 0 beyond the outermost quantile."""
    beta = np.maximum(tail.span * width, 1e-300)
    ratio = np.minimum(np.maximum(distance, 0.0) / beta, 1e6)
    away = (np.sqrt(tail.slope * tail.slope + 4.0 * tail.curve * ratio) - tail.slope) / (2.0 * tail.curve)
    return np.minimum(tail.score + away, MAX_SCORE)


def normal_scores(values: Array, rng: np.random.Generator | None = None) -> Array:
    """Each column's ranks as normal scores [T, n]: Φ⁻¹((rank − ½)/number), NaN kept.

    Ties fall in the order of the rows, or at random with `rng`: else a price that is often unchanged would seem to
    follow time.
    """
    known = np.isfinite(values)
    num = known.sum(axis=0)
    shuffled = np.arange(len(values)) if rng is None else rng.permutation(len(values))
    order = np.argsort(np.where(known, values, np.inf)[shuffled], axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, shuffled[order], np.arange(len(values))[:, None], axis=0)
    found = np.full(values.shape, np.nan)
    for count in np.unique(num).tolist():
        table = np.array([NormalDist().inv_cdf((i + 0.5) / count) for i in range(count)] or [0.0])
        # the ranks of the Gaussian have a variance a little below 1
        table /= max(float(np.sqrt((table**2).mean())), 1e-12) if count > 1 else 1.0
        of_count = num == count
        column = table[np.minimum(ranks[:, of_count], len(table) - 1)]
        found[:, of_count] = np.where(known[:, of_count], column, np.nan)
    return found
