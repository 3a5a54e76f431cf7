"""The surprises of all series at the last instants, side by side.

A surprise is the normal score of an outcome under the fused quantiles forecast for it, one bar ahead (the
shortest horizon, where that is another). `MarginalMap` maps between log returns and normal scores, tails included;
scenarios return through it.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.time import parse_duration
from htfi.forecasting import compiled

Scores = NDArray[np.float32]

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
        self._tails = [np.array(astuple(tail)) for tail in (self._lower, self._upper)]

    def scores(self, quantiles: Array, outcome: Array) -> Array:
        """Normal scores [n], within ±8, of outcomes [n] under quantiles [n, Q]; NaN where either is.

        Where neighbouring quantiles are equal, an outcome on them has the middle of their scores.
        """
        if compiled.core is not None:
            found = np.empty(len(outcome))
            compiled.core.fill_normal_scores(quantiles, outcome, self._scores, *self._tails, found, MAX_SCORE)
            return found
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


WINDOW = 500  # instants
_NEVER = np.iinfo(np.int64).min
_NO_SLOT = -1


@dataclass(frozen=True, slots=True)
class NormalScores:
    """Normal scores [T, n] of n series at T instants, oldest first; NaN where one had no forecast or no bar.

    At every instant one series at least has a score. `ends_ns` [T] is when the last of its bars ended.
    """

    ends_ns: NDArray[np.int64]
    scores: Scores


class JointHistory:
    """A ring of normal scores [W, N] in single precision: 20 MB for 10,000 series.

    Series of one interval share instants; scores of different intervals are never combined. An instant
    is the stretch of one interval in which a bar ends, counted from 1970 UTC: so markets that close at different
    hours of one day meet, and bars of one instant may come in several calls. Bars without a time length meet
    where they end at the same nanosecond.
    """

    def __init__(self, levels: Sequence[float], window: int = WINDOW) -> None:
        self._marginals = MarginalMap(levels)
        self._window = window
        self._scores: Scores = np.full((window, 0), np.nan, np.float32)
        self._intervals: list[str] = []
        self._group = np.zeros(0, np.int64)  # [N], which of the intervals
        self._stamps = np.full((0, window), _NEVER, np.int64)  # [G, W], the instant that a slot holds
        self._ends_ns = np.zeros((0, window), np.int64)  # [G, W]
        self._newest = np.zeros(0, np.int64)  # [G], slot
        self._lengths_ns = np.zeros(0, np.int64)  # [G]

    def grow(self, intervals: Sequence[str]) -> None:
        """Make space for all series, in the order of their rows; `intervals` [N] names the interval of each."""
        known, num = len(self._group), len(intervals)
        groups = np.array([self._group_of(interval) for interval in intervals[known:]], np.int64)
        self._group = np.concatenate([self._group, groups])
        if num > self._scores.shape[1]:
            larger = np.full((self._window, max(num, known + known // 2)), np.nan, np.float32)
            larger[:, :known] = self._scores[:, :known]
            self._scores = larger

    def learn(
        self, index: NDArray[np.intp], ends_ns: NDArray[np.int64], quantiles: Array, outcome: Array
    ) -> None:
        """Take in outcomes [n] of rows `index` [n], whose bars ended at `ends_ns` [n].

        `quantiles` [n, Q] were forecast for them; NaN in either leaves a gap. An instant that lies further back
        than the ring reaches is passed over.
        """
        scores = self._marginals.scores(quantiles, outcome)
        if len(self._intervals) == 1:
            length_ns, newest_ns = int(self._lengths_ns[0]), int(ends_ns.max())
            stamp = (newest_ns - 1) // length_ns
            if (int(ends_ns.min()) - 1) // length_ns == stamp:
                self._write(0, stamp, newest_ns, index, scores)
                return
        groups = self._group[index]
        stamps = (ends_ns - 1) // self._lengths_ns[groups]
        if (groups == groups[0]).all() and (stamps == stamps[0]).all():
            self._write(int(groups[0]), int(stamps[0]), int(ends_ns.max()), index, scores)
            return
        for group, stamp in sorted(set(zip(groups.tolist(), stamps.tolist(), strict=True))):
            here = (groups == group) & (stamps == stamp)
            self._write(group, stamp, int(ends_ns[here].max()), index[here], scores[here])

    def surprises(self, rows: NDArray[np.intp]) -> NormalScores:
        """Of series that share an interval.

        Raises: InvalidInput where they are of different intervals.
        """
        groups: list[int] = sorted(set(self._group[rows].tolist()))
        if len(groups) != 1:
            names = ", ".join(self._intervals[group] for group in groups)
            raise InvalidInput(
                f"series of several intervals ({names}) have no instants in common: choose one"
            )
        stamps = self._stamps[groups[0]]
        order = np.argsort(stamps, kind="stable")
        order = order[stamps[order] != _NEVER]
        scores = self._scores[order][:, rows]
        seen = np.isfinite(scores).any(axis=1)
        return NormalScores(self._ends_ns[groups[0]][order][seen], scores[seen])

    def state(self) -> dict[str, Any]:
        return {
            "scores": self._scores[:, : len(self._group)].copy(),
            "intervals": list(self._intervals),
            "group": self._group.copy(),
            "stamps": self._stamps.copy(),
            "ends_ns": self._ends_ns.copy(),
            "newest": self._newest.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where the state was saved with another window."""
        if set(state) != set(self.state()):
            raise IntegrityError("the saved state holds no joint history: start again")
        scores = np.array(state["scores"], np.float32)
        if scores.ndim != 2 or len(scores) != self._window:
            raise IntegrityError(f"saved joint history is not of {self._window} instants: start again")
        self._scores = scores
        self._intervals = [str(interval) for interval in state["intervals"]]
        self._group = np.array(state["group"], np.int64)
        self._stamps = np.array(state["stamps"], np.int64).reshape(-1, self._window)
        self._ends_ns = np.array(state["ends_ns"], np.int64).reshape(-1, self._window)
        self._newest = np.array(state["newest"], np.int64)
        self._lengths_ns = np.array([_length_ns(interval) for interval in self._intervals], np.int64)

    def _group_of(self, interval: str) -> int:
        if interval not in self._intervals:
            self._intervals.append(interval)
            self._stamps = np.concatenate([self._stamps, np.full((1, self._window), _NEVER, np.int64)])
            self._ends_ns = np.concatenate([self._ends_ns, np.zeros((1, self._window), np.int64)])
            self._newest = np.append(self._newest, 0)
            self._lengths_ns = np.append(self._lengths_ns, _length_ns(interval))
        return self._intervals.index(interval)

    def _write(self, group: int, stamp: int, end_ns: int, index: NDArray[np.intp], scores: Array) -> None:
        slot = self._slot(group, stamp)
        if slot != _NO_SLOT:
            self._scores[slot, index] = scores
            self._ends_ns[group, slot] = max(end_ns, int(self._ends_ns[group, slot]))

    def _slot(self, group: int, stamp: int) -> int:
        """The slot of the instant's scores, prepared at its first; −1 for one older than the ring."""
        stamps, newest = self._stamps[group], int(self._newest[group])
        if stamps[newest] == stamp:
            return newest
        if stamp < stamps[newest]:
            found = np.flatnonzero(stamps == stamp)
            return int(found[0]) if len(found) else _NO_SLOT
        slot = (newest + 1) % self._window
        self._scores[slot, : len(self._group)][self._group == group] = np.nan
        stamps[slot], self._newest[group] = stamp, slot
        self._ends_ns[group, slot] = _NEVER
        return slot


def _length_ns(interval: str) -> int:
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 1
