"""Gains of narrators over prices alone, with intervals by cluster, and whether divergence ranks are calibrated.

Ranks are those of `htfi run`: an opinion is ranked among the opinions of earlier moments. Calibrated, a share of 1 − r
reaches rank r. If they are informative, prices alone have larger errors at higher ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.news_view import NewsView
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.differences import loss_difference
from htfi.forecasting.opinions import PRIOR_OPINIONS, DivergenceRanks
from htfi.forecasting.tilts import derive_tilts
from htfi.library.charts.specs import BarChart, Chart, HistogramChart
from htfi.pipeline.weighing import opinion_of
from htfi_eval.eval.narrative.moments import PRICE_ONLY, NarratorForecasts, NewsMoments

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
    narrator: NarratorForecasts,
    plain: NarratorForecasts,
    moments: NewsMoments,
    inside: Bools,
    j: int,
    seed: int,
) -> CrpsGain:
    """Of one narrator at horizon j over the moments that are `inside` [n]."""
    if not inside.any():
        return CrpsGain(float("nan"), float("nan"), float("nan"), 0)
    _, member = np.unique(moments.cluster[inside], return_inverse=True)
    num_clusters = int(member.max()) + 1
    ours = np.bincount(member, narrator.losses[inside, j], num_clusters)
    theirs = np.bincount(member, plain.losses[inside, j], num_clusters)
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = rng.multinomial(num_clusters, np.full(num_clusters, 1.0 / num_clusters), NUM_RESAMPLES)
    spread = 1.0 - (drawn @ ours) / np.maximum(drawn @ theirs, 1e-300)
    low, high = np.quantile(spread, (0.025, 0.975)).tolist()
    return CrpsGain(float(1.0 - ours.sum() / theirs.sum()), low, high, int(inside.sum()))


def no_gain_p_value(
    narrator: NarratorForecasts,
    plain: NarratorForecasts,
    moments: NewsMoments,
    inside: Bools,
    j: int,
    horizon: int,
) -> float:
    """One-sided p of Diebold and Mariano that the narrator's forecasts are no better, on means by instant."""
    gaps = narrator.losses[inside, j] - plain.losses[inside, j]
    _, member = np.unique(moments.instant[inside], return_inverse=True)
    means = np.bincount(member, gaps) / np.bincount(member)
    return loss_difference(means, horizon).p


@dataclass(frozen=True, slots=True)
class DirectionCalls:
    """How often a predicted direction was right, over moments with a prediction and a move."""

    num: int
    accuracy: float
    f1: float  # of both classes, weighted by their number, as in the literature on StockNet
    mcc: float


def score_calls(direction: Array, outcome: Array) -> DirectionCalls:
    """Of directions [n] (0: none predicted) against outcomes [n]."""
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


EDGES = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
THRESHOLDS = (0.5, 0.8, 0.9, 0.95)
_CENTRAL = 1  # the horizon of the errors, as elsewhere in the table
_NUM_BINS = 10
_NUM_RESAMPLES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class RankedDivergences:
    """Opinions that count, n of them: raw divergence and rank [n], and their places among all moments."""

    raw: Array
    rank: Array
    counts: Bools


def rank_all(views: Sequence[NewsView], moments: NewsMoments, config: ForecastConfig) -> RankedDivergences:
    """The divergences of views and their ranks, moment by moment."""
    opinions = [
        opinion_of(view, question.as_of_ns, question.bar_ns, None, None)
        for view, question in zip(views, moments.questions, strict=True)
    ]
    found = derive_tilts(opinions, moments.quantiles, config.horizons, config.levels)
    divergences, rank = DivergenceRanks(), np.zeros(len(opinions))
    instants: list[int] = np.unique(moments.instant).tolist()
    for instant in instants:
        now: list[int] = np.flatnonzero((moments.instant == instant) & found.has_effect).tolist()
        names = [opinions[place].narrator for place in now]
        raw = [float(found.divergence[place]) for place in now]
        rank[now] = divergences.ranks(names, raw)
        divergences.learn(names, raw)
    return RankedDivergences(found.divergence, rank, found.has_effect)


def rows(
    ranked: RankedDivergences, plain: NarratorForecasts, moments: NewsMoments, seed: int
) -> list[dict[str, Any]]:
    """By rank: the number of opinions, the expected number, and the error of prices alone."""
    table: list[dict[str, Any]] = []
    for low, high in pairwise(EDGES):
        inside = _inside(ranked, low, high)
        value, least, most = _error(plain, moments, inside, seed)
        table.append({
            "where": f"divergence, rank {low:g} to {high:g}",
            "narrator": PRICE_ONLY,
            "n": int(inside.sum()),
            "share, %": f"{100.0 * inside.sum() / max(ranked.counts.sum(), 1):.1f} (calibrated "
            f"{100.0 * (high - low):.0f})",
            "error of prices alone": f"{value:.3f} [{least:.3f}, {most:.3f}] σ",
        })  # fmt: skip
    return table


def metrics(ranked: RankedDivergences, plain: NarratorForecasts) -> dict[str, float]:
    """The largest gap between observed and expected share at a rank, and the error of prices alone in the upper tenth
    over that in the lower half.
    """
    ranks, losses = ranked.rank[ranked.counts], plain.losses[ranked.counts, _CENTRAL]
    gaps = [abs(float(np.mean(ranks >= rank)) - (1.0 - rank)) for rank in THRESHOLDS]
    low, high = losses[ranks < 0.5], losses[ranks >= 0.9]
    found = {"divergence_rank_gap": max(gaps)}
    if len(low) and len(high):
        found["divergence_error_ratio"] = float(high.mean() / low.mean())
    return found


def charts(
    ranked: RankedDivergences, plain: NarratorForecasts, moments: NewsMoments, seed: int
) -> list[Chart]:
    """Ranks as a histogram, and errors by rank."""
    ranks = ranked.rank[ranked.counts]
    counts = np.histogram(ranks, bins=_NUM_BINS, range=(0.0, 1.0))[0]
    pairs = list(pairwise(EDGES))
    errors = [_error(plain, moments, _inside(ranked, low, high), seed) for low, high in pairs]
    return [
        HistogramChart(
            "Ranks of divergences",
            "An even histogram is calibrated; opinions that do not diverge are in the first bin.",
            (counts / max(len(ranks), 1)).tolist(),
            x_label="rank of the divergence",
        ),
        BarChart(
            "Error of prices alone by rank of the divergence",
            "CRPS of the fused forecast without news, in units of its sigma, with 95% intervals by world.",
            [f"{low:g} to {high:g}" for low, high in pairs],
            [one[0] for one in errors],
            [one[1] for one in errors],
            [one[2] for one in errors],
            unit="σ",
        ),
    ]


def note(ranked: RankedDivergences) -> str:
    """Notes about the rows."""
    num = int(ranked.counts.sum())
    return (
        f"divergence: {num:,} opinions, each ranked among the earlier ones of its reader (at first the shipped "
        "reference, "
        f"worth {PRIOR_OPINIONS:g}); {100 * np.mean(ranked.raw[ranked.counts] == 0.0):.0f}% do not diverge and "
        "rank lowest; if calibrated, one in ten reaches 0.9"
    )


def _inside(ranked: RankedDivergences, low: float, high: float) -> Bools:
    return ranked.counts & (ranked.rank >= low) & (ranked.rank < high)


def _error(
    plain: NarratorForecasts, moments: NewsMoments, inside: Bools, seed: int
) -> tuple[float, float, float]:
    """Mean loss of prices alone with its 95% interval by resampling clusters."""
    if not inside.any():
        return float("nan"), float("nan"), float("nan")
    _, member = np.unique(moments.cluster[inside], return_inverse=True)
    num = int(member.max()) + 1
    total = np.bincount(member, plain.losses[inside, _CENTRAL], num)
    sizes = np.bincount(member, minlength=num)
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = rng.multinomial(num, np.full(num, 1.0 / num), _NUM_RESAMPLES)
    means = (drawn @ total) / np.maximum(drawn @ sizes, 1)
    low, high = np.quantile(means, (0.025, 0.975)).tolist()
    return float(total.sum() / sizes.sum()), low, high
