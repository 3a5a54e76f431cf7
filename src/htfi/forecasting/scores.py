"""Scores of predictive distributions, and running mean scores of the fused forecast and of each expert."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting import compiled

Array = NDArray[np.float64]


def integration_weights(levels: Sequence[float]) -> Array:
    """Weights [Q], summing to 1: each level answers for all τ in (0, 1) nearer to it than to any other."""
    inner = [(a + b) / 2 for a, b in pairwise(levels)]
    edges = np.array([0.0, *inner, 1.0])
    return edges[1:] - edges[:-1]


@lru_cache(maxsize=8)
def _doubled_weights(levels: tuple[float, ...]) -> Array:
    return 2.0 * integration_weights(levels)


def pinball(quantiles: Array, outcome: Array, levels: Array) -> Array:
    """ρ_τ(y − q) = max(τ(y−q), (τ−1)(y−q)), [..., Q], of quantiles [..., Q] and outcomes [...]."""
    each = np.broadcast_to(outcome, quantiles.shape[:-1]).copy()  # long rows subtract faster
    error = each[..., None] - quantiles
    losses = 0.5 * np.abs(error)
    error *= levels - 0.5
    losses += error
    return losses


def crps(quantiles: Array, outcome: Array, levels: Array) -> Array:
    """CRPS = 2∫ρ_τ dτ over (0, 1), [...], summed over the levels by `integration_weights`.

    A proper score of the quantiles given. For a Gaussian on the default 13 levels its mean is 0.8% below
    the closed form, the tails beyond 1% and 99% being held at those quantiles.
    """
    cells = _doubled_weights(tuple(levels.tolist()))
    losses = pinball(quantiles, outcome, levels)
    losses *= cells
    return np.add.reduce(losses, axis=-1)


def coverage(low: Array, high: Array, outcome: Array) -> float:
    """Share of outcomes within [low, high], ends included. NaN for none."""
    inside = (low <= outcome) & (outcome <= high)
    return float(inside.mean()) if inside.size else float("nan")


def qlike(realised: Array, forecast: Array) -> Array:
    """x − ln x − 1 with x = realised/forecast variance, both > 0: 0 where they agree, and harder on too little.

    Ranks forecasts by how well they estimate the true variance even where `realised` is a noisy measure of it that is
    right on average. Source: Patton (2011).
    """
    ratio = realised / forecast
    return ratio - np.log(ratio) - 1.0


def implied_variance(quantiles: Array, levels: Array) -> Array:
    """The variance [...] of a Gaussian around 0 whose outcomes are as large on average as quantiles [..., Q] say.

    (π/2)·E|y|², E|y| by `integration_weights`. Far quantiles count little, whose estimates are poor.
    """
    size = (integration_weights(levels.tolist()) * np.abs(quantiles)).sum(axis=-1)
    return 0.5 * np.pi * size * size


def pit(quantiles: Array, outcome: Array, levels: Array) -> Array:
    """Probability integral transform [n] of outcomes [n] under quantiles [n, Q]: linear between levels.

    Below the lowest and above the highest quantile it is that tail's middle, τ/2 and (1+τ)/2.
    """
    rank = (quantiles < outcome[:, None]).sum(axis=1)
    low, high = np.maximum(rank - 1, 0), np.minimum(rank, len(levels) - 1)
    row = np.arange(len(outcome))
    below, above = quantiles[row, low], quantiles[row, high]
    share = np.where(above > below, (outcome - below) / np.where(above > below, above - below, 1.0), 0.5)
    within = levels[low] + share * (levels[high] - levels[low])
    within = np.where(rank == 0, 0.5 * levels[low], within)
    return np.where(rank == len(levels), 0.5 + 0.5 * levels[high], within)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Mean score of one name ('fused' or an expert) at one horizon.

    Names are scored on forecasts that all experts of a series' kind had made: on the same ones where `num` is the same,
    so that ratios of `crps` mean something. `coverage90` is the share of outcomes between the 5% and 95% quantiles.
    """

    name: str
    horizon: int
    num: int
    crps: float
    coverage90: float


def beside_best(rows: Sequence[ScoreRow], horizon: int, fused: str = "fused") -> tuple[float, str]:
    """CRPS of the fused forecast over that of the expert with the lowest, and its name; NaN and "" without one.

    Of the experts, those count that have as many scored forecasts: the others are of other series.
    """
    here = [row for row in rows if row.horizon == horizon]
    ours = next((row for row in here if row.name == fused), None)
    others = [row for row in here if ours is not None and row.name != fused and row.num == ours.num]
    if ours is None or not others:
        return float("nan"), ""
    best = min(others, key=lambda row: row.crps)
    return (ours.crps / best.crps if best.crps > 0.0 else float("nan")), best.name


class Scoreboard:
    """Sums of CRPS and coverage by name and horizon."""

    def __init__(self, names: Sequence[str], horizons: Sequence[int], levels: Sequence[float]) -> None:
        self._names, self._horizons, self._levels = tuple(names), tuple(horizons), np.array(levels)
        self._cells = _doubled_weights(tuple(levels))
        self._low, self._high = levels.index(0.05), levels.index(0.95)
        self._crps = np.zeros((len(names), len(horizons)))
        self._inside = np.zeros((len(names), len(horizons)), np.int64)
        self._num = np.zeros((len(names), len(horizons)), np.int64)

    def add(self, quantiles: Array, outcome: Array, matured: NDArray[np.bool_]) -> None:
        """Score quantiles [n, names, H, Q] by outcomes [n, H] where `matured` [n, H]; NaN: that name has none."""
        if compiled.core is not None:
            compiled.core.add_scores(
                quantiles, outcome, matured.view(np.uint8), self._levels, self._cells, np.empty(len(self._levels)),
                self._crps, self._inside, self._num, self._low, self._high,
            )  # fmt: skip
            return
        y = np.where(matured, outcome, 0.0)[:, None]
        scored = matured[:, None] & np.isfinite(quantiles[..., 0])
        scores = crps(quantiles, y, self._levels)  # [n, names, H]
        inside = (quantiles[..., self._low] <= y) & (y <= quantiles[..., self._high]) & scored
        self._crps += np.where(scored, scores, 0.0).sum(axis=0)
        self._inside += inside.sum(axis=0)
        self._num += scored.sum(axis=0)

    def rows(self) -> list[ScoreRow]:
        """One row for each name and horizon that has a score."""
        return [
            ScoreRow(
                name,
                horizon,
                int(self._num[k, j]),
                float(self._crps[k, j] / self._num[k, j]),
                float(self._inside[k, j] / self._num[k, j]),
            )
            for k, name in enumerate(self._names)
            for j, horizon in enumerate(self._horizons)
            if self._num[k, j]
        ]

    def state(self) -> dict[str, Any]:
        return {"crps": self._crps.copy(), "inside": self._inside.copy(), "num": self._num.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self._crps = np.array(state["crps"], np.float64)
        self._inside = np.array(state["inside"], np.int64)
        self._num = np.array(state["num"], np.int64)
