"""The fused forecast against its best expert on streams of one, five and fifteen series, each run alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.time import format_ns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import crps
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.returns.scores import WalkScores
from htfi_eval.eval.walk import FUSED, Walk, measure_outcomes

Array = NDArray[np.float64]

SIZES = (1, 5, 15)
NUM_STREAMS = {1: 4, 5: 2, 15: 1}
MAX_INSTANTS = 4_000  # of a stream: what comes later is left out
WARM_INSTANTS = 1_000  # at most, before scoring


@dataclass(frozen=True, slots=True)
class BestExpertRatio:
    """CRPS of the fused forecast over that of the expert that was best in hindsight, at one horizon."""

    data: str
    horizon: int
    expert: str
    ratio: float
    num: int

    @property
    def row(self) -> dict[str, Any]:
        return {
            "data": self.data, "bars": self.horizon, "best expert": self.expert, "fused/best": round(self.ratio, 5),
            "n": self.num,
        }  # fmt: skip


def best_expert_ratios(scores: WalkScores) -> list[BestExpertRatio]:
    """Of a whole set, at each horizon."""
    found: list[BestExpertRatio] = []
    for j, horizon in enumerate(scores.horizons):
        chosen = scores.common[:, :, j]
        if not chosen.any():
            continue
        fused = scores.mean_crps(FUSED, j, chosen)
        losses = {name: scores.mean_crps(name, j, chosen) for name in scores.experts}
        losses = {name: loss for name, loss in losses.items() if np.isfinite(loss)}  # one for every series
        best = min(losses, key=losses.__getitem__)
        found.append(
            BestExpertRatio(scores.prices.name, horizon, best, fused / losses[best], int(chosen.sum()))
        )
    return found


def short_stream_ratios(
    prices: Prices, config: ForecastConfig, early: int, progress: ProgressCallback | None = None
) -> list[BestExpertRatio]:
    """Streams of so many series of the set, each walked alone, scored a year or 1,000 bars in.

    The best expert is that of all streams of a size. Losses count in units of each series' own mean, so that a
    volatile one does not decide alone.
    """
    found: list[BestExpertRatio] = []
    for size in SIZES:
        streams = _streams(prices, size)
        if not streams or size == len(prices.symbols):
            continue
        total: Array | None = None
        names: tuple[str, ...] = ()
        num = np.zeros(len(config.horizons), np.int64)
        for symbols in streams:
            names, losses, counts = _walk_alone(prices.cut(symbols), config, early, progress)
            total = losses if total is None else total + losses
            num += counts
        assert total is not None
        for j, horizon in enumerate(config.horizons):
            if not num[j]:
                continue
            best = int(np.nanargmin(total[1:, j])) + 1
            label = f"{prices.name}, {len(streams)} × {size} series"
            ratio = float(total[0, j] / total[best, j])
            found.append(BestExpertRatio(label, horizon, names[best], ratio, int(num[j])))
    return found


def worst_ratio(found: Sequence[BestExpertRatio]) -> BestExpertRatio | None:
    return max(found, key=lambda one: one.ratio, default=None)


def _streams(prices: Prices, size: int) -> list[tuple[str, ...]]:
    """Series without one in common, spread over the alphabet: the fullest of the set."""
    bars = np.isfinite(prices.close).sum(axis=0)
    full = [n for n in range(len(prices.symbols)) if bars[n] >= 0.8 * bars.max()]
    num = min(NUM_STREAMS[size], len(full) // size)
    taken = [full[round(float(at))] for at in np.linspace(0, len(full) - 1, num * size)] if num else []
    return [tuple(prices.symbols[n] for n in taken[k::num]) for k in range(num)]


def _walk_alone(
    prices: Prices, config: ForecastConfig, early: int, progress: ProgressCallback | None
) -> tuple[tuple[str, ...], Array, NDArray[np.int64]]:
    """Names, fused first; sums of losses in units of each series' mean loss [1 + K, H], NaN for an expert that some
    series' kind has not; how many forecasts [H]."""
    last = min(len(prices.ends_ns), MAX_INSTANTS)
    prices = prices.cut(last=format_ns(int(prices.ends_ns[last - 1])))
    walk = Walk(prices, config)
    outcomes = measure_outcomes(prices, config).outcomes
    levels, shape = np.array(config.levels), outcomes.shape[1:]
    sums, num = np.zeros((len(walk.names), *shape)), np.zeros(shape, np.int64)
    for instant in walk.instants(min(early, WARM_INSTANTS), progress):
        outcome = outcomes[instant.t, instant.places]
        given = np.isfinite(instant.quantiles[..., 0])
        known = np.isfinite(outcome) & (given | ~instant.is_chosen[:, :, None]).all(axis=0) & given[0]
        losses = crps(instant.quantiles, np.where(known, outcome, 0.0), levels)  # [1 + K, n, H]
        sums[:, instant.places] += np.where(known, losses, 0.0)
        num[instant.places] += known
    unit = np.divide(sums[0], num, out=np.ones(shape), where=num > 0)
    return walk.names, (sums / np.maximum(unit, 1e-300)).sum(axis=1), num.sum(axis=0)
