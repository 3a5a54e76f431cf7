"""Forecasts by group: 90% coverage, sharpness, error, waiting time and rungs, with errors that count what is joint.

Outcomes of one instant are not independent: gaps are drawn again by whole instants (bootstrap of clusters, Cameron,
Gelbach and Miller 2008). Width and error are in units of the usual move of each series, so that calm and wild series
compare.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.governance.fairness.findings import (
    MIN_ROWS,
    NOT_REPORTED,
    Correction,
    GroupFigure,
    GroupGap,
    judge_gaps,
)

Floats = NDArray[np.float64]

COVERAGE, WIDTH, ERROR = "90% coverage", "90% width", "CRPS"
WAITING, MODEL_READ, WITHHELD = "waiting ms", "read by a model", "withheld"
MEASURES = (COVERAGE, WIDTH, ERROR, WAITING, MODEL_READ, WITHHELD)
TOLERATED = {COVERAGE: 0.03, WIDTH: 0.1, ERROR: 0.02, WAITING: 10.0, MODEL_READ: 0.05, WITHHELD: 0.03}
NUM_DRAWS = 1_000
MIN_INSTANTS = 20  # a group with fewer is listed and not compared
_SEED = 19


@dataclass(frozen=True, slots=True)
class ScoredForecasts:
    """Forecasts [N] with what became of them: `values` by measure, NaN where it is not known; `instants` in order.

    Units: `WIDTH` and `ERROR` in usual moves of the series, `WAITING` in ms, shares as 0 or 1.
    """

    symbols: Sequence[str]
    instants: NDArray[np.int64]
    values: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class ForecastAudit:
    """Figures of all groups, judged gaps, and the widest gap of coverage that chance does not explain."""

    figures: list[GroupFigure]
    gaps: list[GroupGap]

    @property
    def coverage_gap(self) -> float:
        """The largest gap of 90% coverage between two groups that is not shown to be noise; NaN without two groups."""
        found = [gap for gap in self.gaps if gap.measure == COVERAGE]
        if not found:
            return math.nan
        return max((abs(gap.gap) for gap in found if gap.verdict != "within noise"), default=0.0)


def audit_forecasts(
    scored: ScoredForecasts, groups: Mapping[str, Sequence[str]], correction: Correction
) -> ForecastAudit:
    """Measure every group of every attribute; `groups` gives an attribute's group of each forecast, [N].

    Raises: InvalidInput where nothing can be compared.
    """
    if not len(scored.symbols):
        raise InvalidInput("no forecast has an outcome yet: the run is too short")
    figures: list[GroupFigure] = []
    gaps: dict[str, list[GroupGap]] = {}
    for attribute, named in groups.items():
        labels = np.array(named)
        for measure in MEASURES:
            values = scored.values[measure]
            sums = {
                group: _Sums.of(values, labels == group, scored.instants)
                for group in sorted(set(labels.tolist()))
            }
            figures += [_figure(measure, attribute, group, one) for group, one in sums.items()]
            known = {name: one for name, one in sums.items() if one.is_comparable and name != NOT_REPORTED}
            gaps.setdefault(measure, []).extend(
                _gap(measure, attribute, (first, known[first]), (second, known[second]))
                for first, second in combinations(known, 2)
            )
    return ForecastAudit(figures, [one for found in gaps.values() for one in judge_gaps(found, correction)])


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums and numbers of one group's values by instant, [T] over all instants."""

    totals: Floats
    nums: Floats

    @classmethod
    def of(cls, values: Floats, inside: NDArray[np.bool_], instants: NDArray[np.int64]) -> "_Sums":
        known = inside & np.isfinite(values)
        size = int(instants.max()) + 1
        return cls(
            np.asarray(np.bincount(instants[known], values[known], size), np.float64),
            np.bincount(instants[known], minlength=size).astype(np.float64),
        )

    @property
    def num(self) -> int:
        return int(self.nums.sum())

    @property
    def is_comparable(self) -> bool:
        return self.num >= MIN_ROWS and int((self.nums > 0).sum()) >= MIN_INSTANTS

    @property
    def mean(self) -> float:
        return float(self.totals.sum() / self.nums.sum()) if self.num else math.nan

    def drawn(self, draws: Floats) -> Floats:
        """Means [B] under draws, [B, T] times that each instant is drawn."""
        nums = draws @ self.nums
        return np.where(nums > 0, draws @ self.totals / np.maximum(nums, 1.0), np.nan)


@lru_cache(maxsize=1)
def _draws(num: int) -> Floats:
    """How often each of `num` instants is drawn, [B, T]."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    return rng.multinomial(num, np.full(num, 1.0 / num), NUM_DRAWS).astype(np.float64)


def _figure(measure: str, attribute: str, group: str, sums: _Sums) -> GroupFigure:
    if not sums.num:
        return GroupFigure(measure, attribute, group, 0, math.nan, math.nan, math.nan)
    low, high = _interval(lambda draws: sums.drawn(draws), len(sums.nums))
    return GroupFigure(measure, attribute, group, sums.num, sums.mean, low, high)


def _gap(measure: str, attribute: str, first: tuple[str, _Sums], second: tuple[str, _Sums]) -> GroupGap:
    gap = first[1].mean - second[1].mean
    drawn = first[1].drawn(_draws(len(first[1].nums))) - second[1].drawn(_draws(len(first[1].nums)))
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < NUM_DRAWS // 2:
        return GroupGap(measure, attribute, first[0], second[0], gap, math.nan, math.nan, math.nan)
    low, high = (float(end) for end in np.quantile(drawn, (0.025, 0.975)))
    error = float(drawn.std(ddof=1))
    p = math.erfc(abs(gap) / error / math.sqrt(2.0)) if error > 0.0 else float(gap == 0.0)
    return GroupGap(measure, attribute, first[0], second[0], gap, low, high, p, tolerated=TOLERATED[measure])


def _interval(drawn: Callable[[Floats], Floats], num: int) -> tuple[float, float]:
    found = drawn(_draws(num))
    found = found[np.isfinite(found)]
    low, high = np.quantile(found, (0.025, 0.975)) if len(found) else (math.nan, math.nan)
    return float(low), float(high)
