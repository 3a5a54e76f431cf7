"""What a narrator gained over prices alone, with the interval that clusters of moments allow. `narrative` tells it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.evaluation.differences import test_differences
from htfi_eval.eval.narrative.moments import NewsMoments
from htfi_eval.eval.narrative.tilts import NarratorForecasts

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

NUM_RESAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class CrpsGain:
    """1 − CRPS with news over CRPS without, its 95% interval by resampling clusters, over `num` moments."""

    value: float
    low: float
    high: float
    num: int

    @property
    def percent_text(self) -> str:
        """In percent, as a table shows it."""
        if not self.num:
            return "–"
        return f"{100 * self.value:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def gain(
    told: NarratorForecasts, plain: NarratorForecasts, moments: NewsMoments, inside: Bools, j: int, seed: int
) -> CrpsGain:
    """Of one narrator at horizon j over the moments that are `inside` [n]."""
    if not inside.any():
        return CrpsGain(float("nan"), float("nan"), float("nan"), 0)
    _, member = np.unique(moments.cluster[inside], return_inverse=True)
    num_clusters = int(member.max()) + 1
    ours = np.bincount(member, told.losses[inside, j], num_clusters)
    theirs = np.bincount(member, plain.losses[inside, j], num_clusters)
    dice = np.random.Generator(np.random.PCG64(seed))
    drawn = dice.multinomial(num_clusters, np.full(num_clusters, 1.0 / num_clusters), NUM_RESAMPLES)
    spread = 1.0 - (drawn @ ours) / np.maximum(drawn @ theirs, 1e-300)
    low, high = np.quantile(spread, (0.025, 0.975)).tolist()
    return CrpsGain(float(1.0 - ours.sum() / theirs.sum()), low, high, int(inside.sum()))


def no_gain_p_value(
    told: NarratorForecasts,
    plain: NarratorForecasts,
    moments: NewsMoments,
    inside: Bools,
    j: int,
    horizon: int,
) -> float:
    """One-sided p of Diebold and Mariano that the narrator's forecasts are no better, on means by instant."""
    gaps = told.losses[inside, j] - plain.losses[inside, j]
    _, member = np.unique(moments.instant[inside], return_inverse=True)
    means = np.bincount(member, gaps) / np.bincount(member)
    return test_differences(means, horizon).p


@dataclass(frozen=True, slots=True)
class DirectionCalls:
    """How often a called direction was that of what came: of moments with a call and a move."""

    num: int
    accuracy: float
    f1: float  # of both classes, weighted by their number, as the literature on StockNet tells it
    mcc: float


def score_calls(direction: Array, outcome: Array) -> DirectionCalls:
    """Of directions [n] (0: none called) against outcomes [n]."""
    used = (direction != 0.0) & (outcome != 0.0)
    up, rose = direction[used] > 0.0, outcome[used] > 0.0
    num = int(used.sum())
    if not num:
        return DirectionCalls(0, float("nan"), float("nan"), float("nan"))
    cells = [float(np.count_nonzero(a & b)) for a in (up, ~up) for b in (rose, ~rose)]
    hit_up, false_up, false_down, hit_down = cells
    f1 = 0.0
    for hit, false, missed, share in (
        (hit_up, false_up, false_down, rose.mean()),
        (hit_down, false_down, false_up, 1.0 - rose.mean()),
    ):
        f1 += share * 2.0 * hit / max(2.0 * hit + false + missed, 1.0)
    root = np.sqrt(
        (hit_up + false_up) * (hit_up + false_down) * (hit_down + false_up) * (hit_down + false_down)
    )
    mcc = (hit_up * hit_down - false_up * false_down) / root if root else 0.0
    return DirectionCalls(num, (hit_up + hit_down) / num, float(f1), float(mcc))
