"""Figures of a reader: signs, three classes, silence, calibration, and intervals by day. Pure functions.

Rows may carry weights, so that large sets count no more than small ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Signs = NDArray[np.int64]
Bools = NDArray[np.bool_]

NUM_BINS = 10
NUM_RESAMPLES = 1_000


class SignFigures(NamedTuple):
    """A reader against labels, each −1, 0 or 1. NaN where there is no such row.

    `sign_right`: of views that point up or down at rows labelled up or down; `right_of_all_views`: of all views, where
    one at a neutral row is wrong; `fires_on_neutral`: the share of neutral rows with a view; `speaks`: of the others.
    """

    num: int
    sign_right: float
    right_of_all_views: float
    three_class: float
    fires_on_neutral: float
    speaks: float


def sign_figures(labels: Signs, said: Signs, weights: Array | None = None) -> SignFigures:
    """All figures of one method."""
    weight = np.ones(len(labels)) if weights is None else weights
    views, coloured = said != 0, labels != 0
    return SignFigures(
        len(labels),
        _share(said == labels, views & coloured, weight),
        _share(said == labels, views, weight),
        _share(said == labels, np.ones(len(labels), np.bool_), weight),
        _share(views, ~coloured, weight),
        _share(views, coloured, weight),
    )


def confusion_shares(labels: Signs, said: Signs, weights: Array) -> Array:
    """[label, said], each down, none, up: shares of a label's rows; 0 for a label without rows."""
    counts = np.zeros((3, 3))
    np.add.at(counts, (labels + 1, said + 1), weights)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)


class CalibrationBin(NamedTuple):
    """Views of similar confidence: how many, what they state, and the share that is right."""

    num: int
    stated: float
    right: float


def calibration_bins(
    stated: Array, right: Bools, weights: Array | None = None, num_bins: int = NUM_BINS
) -> list[CalibrationBin]:
    """Bins of equal width over 0–1 that hold a view."""
    weight = np.ones(len(stated)) if weights is None else weights
    place = np.clip((stated * num_bins).astype(np.int64), 0, num_bins - 1)
    found: list[CalibrationBin] = []
    for number in range(num_bins):
        inside = place == number
        if inside.any():
            total = weight[inside]
            found.append(
                CalibrationBin(
                    int(inside.sum()),
                    float(np.average(stated[inside], weights=total)),
                    float(np.average(right[inside], weights=total)),
                )
            )
    return found


def expected_calibration_error(
    stated: Array, right: Bools, weights: Array | None = None, num_bins: int = NUM_BINS
) -> float:
    """Mean distance of stated and observed share over the bins, by their weight (Naeini et al. 2015)."""
    if not len(stated):
        return float("nan")
    weight = np.ones(len(stated)) if weights is None else weights
    place = np.clip((stated * num_bins).astype(np.int64), 0, num_bins - 1)
    gaps = np.bincount(place, weight * (stated - right), num_bins)
    return float(np.abs(gaps).sum() / weight.sum())


class Interval(NamedTuple):
    """A mean with its 95% interval; NaN where there is nothing."""

    value: float
    low: float
    high: float
    num: int

    @property
    def text(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.num else "–"


NOTHING = Interval(float("nan"), float("nan"), float("nan"), 0)


def mean_by_day(values: Array, days: Signs, seed: int) -> Interval:
    """The mean of values [n]; the interval resamples days, so that news of one day counts as one."""
    return ratio_by_day(values, np.ones(len(values)), days, seed)


def ratio_by_day(above: Array, below: Array, days: Signs, seed: int) -> Interval:
    """Σ above / Σ below, with the bootstrap interval of resampled days."""
    if not len(above):
        return NOTHING
    _, member = np.unique(days, return_inverse=True)
    num_days = int(member.max()) + 1
    tops, bottoms = np.bincount(member, above, num_days), np.bincount(member, below, num_days)
    value = float(tops.sum() / bottoms.sum()) if bottoms.sum() else float("nan")
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = rng.multinomial(num_days, np.full(num_days, 1.0 / num_days), NUM_RESAMPLES)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (drawn @ tops) / (drawn @ bottoms)
    ratios = ratios[np.isfinite(ratios)]
    low, high = np.quantile(ratios, (0.025, 0.975)).tolist() if len(ratios) else (float("nan"),) * 2
    return Interval(value, float(low), float(high), len(above))


def _share(hit: Bools, inside: Bools, weights: Array) -> float:
    total = float(weights[inside].sum())
    return float(weights[inside & hit].sum()) / total if total else float("nan")


def as_signs(values: Sequence[int]) -> Signs:
    return np.array(values, dtype=np.int64)
