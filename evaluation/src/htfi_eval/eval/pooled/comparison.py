"""The pooled learner beside the experts that stand: each alone, and the fused forecast with it and without it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.differences import LossDifference, diebold_mariano
from htfi.forecasting.experts.pooled.expert import PooledExpert
from htfi.forecasting.experts.pooled.models import PooledModels
from htfi.forecasting.experts.pretrained import FoundationExpert
from htfi.forecasting.ports import ReturnModel
from htfi.wiring.experts import open_experts
from htfi_eval.commands import ProgressLine
from htfi_eval.eval.peers import EWMA, classical
from htfi_eval.eval.pooled.foundation_peer import FOUNDATION, FoundationPeer
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.returns.mini_peer import choose_points
from htfi_eval.eval.returns.scores import WalkScores, score
from htfi_eval.eval.walk import FUSED, PeerForecaster, Walk, measure_outcomes

POOLED = PooledExpert.name
WITHOUT = "fused without pooled"
NUM_FOUNDATION_POINTS = 1_000  # for each horizon: a pass costs milliseconds


@dataclass(frozen=True, slots=True)
class PooledComparison:
    """One data set: the scores with the pooled learner among the experts, and those without it."""

    scores: WalkScores
    without: WalkScores

    def difference(self, name: str, other: str, j: int) -> tuple[float, LossDifference, int]:
        """The ratio of mean CRPS of two forecasters at the j-th horizon, their difference by date, and of how many."""
        first, second = self._losses(name, j), self._losses(other, j)
        both = np.isfinite(first) & np.isfinite(second)
        if not both.any():
            return float("nan"), diebold_mariano(first, second, self.scores.horizons[j]), 0
        ratio = float(first[both].mean() / second[both].mean())
        gaps = [np.where(both, losses, np.nan) for losses in (first, second)]
        return ratio, diebold_mariano(gaps[0], gaps[1], self.scores.horizons[j]), int(both.sum())

    def _losses(self, name: str, j: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        scores = self.without if name == WITHOUT else self.scores
        place = scores.names.index(FUSED if name == WITHOUT else name)
        return np.where(self.scores.both(FUSED, j), scores.crps[place, :, :, j].astype(np.float64), np.nan)


def compare(
    prices: Prices, config: ForecastConfig, models: PooledModels, foundation: ReturnModel | None, seed: int,
    num_points: int = NUM_FOUNDATION_POINTS,
) -> PooledComparison:  # fmt: skip
    """Walk the bars twice, with the learner and without it; score from its first fit on.

    Raises: InvalidInput where no forecast has an outcome.
    """
    begin = int(np.searchsorted(prices.ends_ns, models.starts_ns[0]))
    measured = measure_outcomes(prices, config)
    if begin >= len(prices.ends_ns) or not np.isfinite(measured.outcomes[begin:]).any():
        raise InvalidInput(
            f"{prices.name}: no forecast after the first fit has an outcome: give longer series"
        )
    plain = replace(config, experts=tuple(name for name in config.experts if name != POOLED))
    with_it = replace(plain, experts=(*plain.experts, POOLED))
    peers = _benchmark(prices, config, begin)
    if foundation is not None:
        chosen = choose_points(measured, begin, config, seed, num_points, num_points)
        peers.append(FoundationPeer(FoundationExpert(config, foundation), chosen, config))
    experts = [*open_experts(plain, plain.foundation), PooledExpert(config, models)]
    found: list[WalkScores] = []
    for name, walk in (
        (f"{prices.name} with pooled", Walk(prices, with_it, peers, experts)),
        (f"{prices.name} without", Walk(prices, plain, _benchmark(prices, config, begin))),
    ):
        core = [one for one in walk.names if one != FOUNDATION]
        found.append(score(walk, measured, begin, begin, core, progress=ProgressLine(name)))
    if not found[0].common.any():
        raise InvalidInput(f"{prices.name}: no forecast by all experts has an outcome: give longer series")
    return PooledComparison(*found)


def _benchmark(prices: Prices, config: ForecastConfig, begin: int) -> list[PeerForecaster]:
    """The peer that every walk is scored beside."""
    return [one for one in classical(len(prices.symbols), config, begin) if one.name == EWMA]


def rows_of(compared: PooledComparison) -> list[dict[str, Any]]:
    """A row for each forecaster and horizon: its CRPS, and how the pooled learner and the mix with it compare."""
    scores = compared.scores
    rows: list[dict[str, Any]] = []
    for j, horizon in enumerate(scores.horizons):
        for name in (*scores.names, WITHOUT):
            with_it, mix, num = compared.difference(FUSED, name, j)
            alone, own, _ = compared.difference(POOLED, name, j)
            if not num:
                continue
            row: dict[str, Any] = {
                "data": scores.prices.name, "bars": horizon, "forecaster": name, "n": num,
                "CRPS, bp": _crps(compared, name, j),
            }  # fmt: skip
            if name != POOLED:
                row |= {"pooled/row": alone, "DM": own.statistic}
            if name != FUSED:
                row |= {"fused/row": with_it, "DM of fused": mix.statistic}
            if name != WITHOUT:
                row["coverage 90"] = scores.coverage(name, j)[0]
            rows.append(row)
    return rows


def _crps(compared: PooledComparison, name: str, j: int) -> float:
    scores = compared.without if name == WITHOUT else compared.scores
    chosen = compared.scores.both(FUSED if name == WITHOUT else name, j)
    return 1e4 * scores.mean_crps(FUSED if name == WITHOUT else name, j, chosen)


def metrics_of(compared: Sequence[PooledComparison]) -> dict[str, float | None]:
    """The worst horizon of every set: fused with the learner over fused without, and the learner over the fused."""
    figures: dict[str, float | None] = {}
    for one in compared:
        places, name = range(len(one.scores.horizons)), one.scores.prices.name
        figures[f"{name}.fused_with_vs_without"] = max(one.difference(FUSED, WITHOUT, j)[0] for j in places)
        figures[f"{name}.pooled_vs_fused_without"] = max(
            one.difference(POOLED, WITHOUT, j)[0] for j in places
        )
    return figures
