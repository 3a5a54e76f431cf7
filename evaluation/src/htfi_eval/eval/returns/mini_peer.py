"""Models never fitted to real bars as peers of `htfi eval returns`, at a sample of series and dates.

`judging` adds it to the peers; `mini_figures` compares its CRPS with that of GARCH(1,1)-t.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.differences import diebold_mariano
from htfi.forecasting.experts.pretrained import TrajectoryExpert
from htfi.forecasting.panel import BarBatch
from htfi.forecasting.ports import PathSampler
from htfi_eval.eval.returns.scores import WalkScores
from htfi_eval.eval.walk import Places, RealisedOutcomes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MINI = "mini"
NUM_POINTS, NUM_DRAWN_POINTS = (
    4_000,
    800,
)  # of the next bar, which needs one pass; of horizons that need paths
_READY_BARS = 60


def choose_points(
    measured: RealisedOutcomes, begin: int, config: ForecastConfig, seed: int,
    num_points: int = NUM_POINTS, num_drawn: int = NUM_DRAWN_POINTS,
) -> Mask:  # fmt: skip
    """The (instant, series, horizon) points of the model, [T, N, H]: random among all that have an outcome."""
    rng = np.random.Generator(np.random.PCG64(seed))
    known = np.isfinite(measured.outcomes)
    known[:begin] = False
    old = np.cumsum(np.isfinite(measured.returns), axis=0) >= _READY_BARS
    chosen = np.zeros(known.shape, np.bool_)
    for j, horizon in enumerate(config.horizons):
        places = np.flatnonzero(known[:, :, j] & old)
        most = num_points if horizon == 1 else num_drawn
        taken = rng.permutation(places)[:most]
        chosen[:, :, j].reshape(-1)[taken] = True
    return chosen


class MiniPeer:
    """Forecasts only at the chosen points, horizon by horizon; NaN elsewhere."""

    def __init__(
        self, sampler: PathSampler, chosen: Mask, config: ForecastConfig, expert: TrajectoryExpert | None = None,
        name: str = MINI,
    ) -> None:  # fmt: skip
        self.name = name
        self._expert = TrajectoryExpert(config, sampler) if expert is None else expert
        self._chosen = chosen
        self._horizons, self._num_levels = config.horizons, len(config.levels)

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:
        expert = self._expert
        expert.grow(int(batch.index.max()) + 1)
        expert.observe(batch)
        quantiles = np.full((len(places), len(self._horizons), self._num_levels), np.nan)
        chosen = self._chosen[t, places]  # [n, H]
        for j, horizon in enumerate(self._horizons):
            at = np.flatnonzero(chosen[:, j])
            at = at[np.isfinite(expert.sigma(batch.index[at]))]
            if len(at):
                rows = batch.index[at]
                quantiles[at, j] = expert.sigma(rows)[:, None] * expert.shapes(rows, (horizon,))[:, 0]
        return quantiles


@dataclass(frozen=True, slots=True)
class MiniComparison:
    """CRPS of the model over that of a peer's strongest form on the same points, with a 95% interval."""

    bars: int
    num: int
    peer: str
    ratio: float
    low: float
    high: float


def mini_figures(scores: WalkScores, garch: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """`mini_vs_garch_t`, the worst horizon's ratio, and a note; nothing if either has no forecasts."""
    found = [one for one in compare_on_points(scores, garch) if math.isfinite(one.ratio)]
    if not found:
        return {}, []
    text = "; ".join(
        f"{one.bars} bars {one.ratio:.4f} ({one.low:.4f} to {one.high:.4f}, {one.num:,} forecasts, against {one.peer})"
        for one in found
    )
    return {"mini_vs_garch_t": max(one.ratio for one in found)}, [
        f"{scores.prices.name}: CRPS of htfi-mini, zero-shot, over that of GARCH(1,1)-t, 95% interval: {text}"
    ]


def compare_on_points(scores: WalkScores, garch: Sequence[str]) -> list[MiniComparison]:
    """One comparison a horizon, on the model's points, with the form of GARCH that was best over all forecasts."""
    found: list[MiniComparison] = []
    if MINI not in scores.names:
        return found
    for j, bars in enumerate(scores.horizons):
        mine = scores.both(MINI, j)
        forms = [name for name in garch if name in scores.names]
        where = mine & np.logical_and.reduce([scores.both(name, j) for name in forms]) if forms else mine
        if not forms or not where.any():
            continue
        # Chosen over all forecasts of the run: the best of three on a few hundred points would partly be chance.
        best = min(forms, key=lambda name: scores.mean_crps(name, j, scores.both(name, j)))
        theirs = scores.mean_crps(best, j, where)
        pair = [
            np.where(where, scores.crps[scores.names.index(name), :, :, j].astype(np.float64), np.nan)
            for name in (MINI, best)
        ]
        ratio = scores.mean_crps(MINI, j, where) / theirs
        low, high = diebold_mariano(pair[0], pair[1], bars).interval95
        half = 0.5 * (high - low) / theirs
        found.append(MiniComparison(bars, int(where.sum()), best, ratio, ratio - half, ratio + half))
    return found
