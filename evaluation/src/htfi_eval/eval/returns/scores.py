"""Scores of one walk: CRPS and coverage of all forecasters by date, series and horizon."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.evaluation.differences import LossDifference, diebold_mariano
from htfi.forecasting.scores import integration_weights, pinball, pit
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.peers import EWMA
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import FUSED, RealisedOutcomes, Walk, WalkInstant

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Mask = NDArray[np.bool_]

_UNKNOWN = -1


@dataclass(slots=True, eq=False)
class WalkScores:
    """Scores of N series, H horizons, F forecasters; T instants from `first` on, U of them from `begin` on.

    Forecasters are compared from `begin` on; the fused forecast's coverage counts from `first` on, for earlier crises.
    Shapes: crps and inside50 and inside90 [F, U, N, H], crps NaN where a forecaster or the outcome is missing;
    common [U, N, H], where all core forecasters have one; pit [U, N, H]; hits [H, Q], how often
    the outcome was at most the quantile; losses [F, H, Q] and moves [F, H], sums of pinball losses and of |y|; held
    [T, N, H], whether the fused 90% held, −1 for unknown;
    below [2, T, N, H], whether the outcome was below the fused 5% and 1% quantile, −1 for unknown; losses of the
    fused forecast and of EWMA, fused_loss and ewma_loss [2, T, N, H], CRPS and `tail_loss`; width [T, N, H] of the 90%
    band; regimes [T, N], −1 for no bar; weights [T, K, H] and stretch [T, H], means over
    series; shown [T, H, Q], the fused forecast of series `shown_series`, and shown_outcomes [T, H].
    """

    prices: Prices
    names: tuple[str, ...]
    experts: tuple[str, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    first: int
    begin: int
    crps: Single
    inside50: Mask
    inside90: Mask
    common: Mask
    pit: Single
    hits: Array
    losses: Array
    moves: Array
    held: NDArray[np.int8]
    below: NDArray[np.int8]
    fused_loss: Single
    ewma_loss: Single
    width: Single
    regimes: NDArray[np.int8]
    weights: Array
    stretch: Array
    shown_series: int
    shown: Array
    shown_outcomes: Array

    def both(self, name: str, j: int, where: Mask | None = None) -> Mask:
        """Where `name` and all core forecasters have a forecast, [U, N]: rare ones are compared on their own points."""
        known = self.common[:, :, j] & np.isfinite(self.crps[self.names.index(name), :, :, j])
        return known if where is None else known & where

    def mean_crps(self, name: str, j: int, chosen: Mask) -> float:
        """Mean CRPS of `name` at the j-th horizon over chosen forecasts [U, N]; NaN for none."""
        values = self.crps[self.names.index(name), :, :, j][chosen]
        return float(values.mean(dtype=np.float64)) if values.size else float("nan")

    def ratio(self, name: str, j: int, where: Mask | None = None) -> float:
        """Mean CRPS of the fused forecast over that of `name`, on the same forecasts."""
        both = self.both(name, j, where)
        return self.mean_crps(FUSED, j, both) / self.mean_crps(name, j, both)

    def difference(self, name: str, j: int) -> LossDifference:
        """The fused forecast's CRPS less that of `name`, by date."""
        both = self.both(name, j)
        fused, other = (
            np.where(both, self.crps[self.names.index(one), :, :, j].astype(np.float64), np.nan)
            for one in (FUSED, name)
        )
        return diebold_mariano(fused, other, self.horizons[j])

    def coverage(self, name: str, j: int, share: int = 90) -> tuple[float, int]:
        """Share of outcomes within the central interval of `share` percent, 50 or 90, and of how many."""
        inside = (self.inside90 if share == 90 else self.inside50)[self.names.index(name), :, :, j][
            self.both(name, j)
        ]
        return (float(inside.mean()) if inside.size else float("nan")), int(inside.size)

    def held_share(self, j: int, where: Mask) -> tuple[float, int]:
        """Coverage of the fused 90% interval over forecasts `where` [T, N], and how many have an outcome."""
        known = self.held[:, :, j][where & (self.held[:, :, j] != _UNKNOWN)]
        return (float(known.mean()) if known.size else float("nan")), int(known.size)

    def wql(self, name: str, j: int) -> float:
        """Weighted quantile loss: mean over the levels of 2Σρ_τ(y, q)/Σ|y|."""
        k = self.names.index(name)
        return (
            float(2.0 * self.losses[k, j].mean() / self.moves[k, j])
            if self.moves[k, j] > 0.0
            else float("nan")
        )

    def since_begin(self) -> Mask:
        """Instants [T, 1] at which all are compared."""
        return (np.arange(len(self.held)) >= self.begin - self.first)[:, None]


def score(
    walk: Walk, measured: RealisedOutcomes, first: int, begin: int, core: Sequence[str], shown_series: int = 0,
    progress: ProgressCallback | None = None,
) -> WalkScores:  # fmt: skip
    """Walk all of the data; score the fused forecast from instant `first` on, all from `begin` on."""
    config, prices = walk.config, walk.prices
    num, width, h, q = len(prices.ends_ns), len(prices.symbols), len(config.horizons), len(config.levels)
    later, earlier = (num - begin, width, h), (num - first, width, h)
    everyone = (len(walk.names), *later)
    scores = WalkScores(
        prices, walk.names, walk.experts, config.horizons, config.levels, first, begin,
        crps=np.full(everyone, np.nan, np.float32), inside50=np.zeros(everyone, np.bool_),
        inside90=np.zeros(everyone, np.bool_), common=np.zeros(later, np.bool_),
        pit=np.full(later, np.nan, np.float32), hits=np.zeros((h, q)), losses=np.zeros((len(walk.names), h, q)),
        moves=np.zeros((len(walk.names), h)), held=np.full(earlier, _UNKNOWN, np.int8),
        below=np.full((2, *earlier), _UNKNOWN, np.int8), fused_loss=np.full((2, *earlier), np.nan, np.float32),
        ewma_loss=np.full((2, *earlier), np.nan, np.float32), width=np.full(earlier, np.nan, np.float32),
        regimes=np.full(earlier[:2], _UNKNOWN, np.int8), weights=np.full((num - first, len(walk.experts), h), np.nan),
        stretch=np.full((num - first, h), np.nan), shown_series=shown_series,
        shown=np.full((num - first, h, q), np.nan), shown_outcomes=measured.outcomes[first:, shown_series].copy(),
    )  # fmt: skip
    judges = np.array([walk.names.index(name) for name in core])
    for instant in walk.instants(first, progress):
        outcome = measured.outcomes[instant.t, instant.places]
        _add_fused(scores, instant, outcome)
        if instant.t >= begin:
            _add_all(scores, instant, outcome, judges)
    return scores


def _add_fused(scores: WalkScores, instant: WalkInstant, outcome: Array) -> None:
    row, places, fused = instant.t - scores.first, instant.places, instant.quantiles[0]
    low, high = (fused[..., scores.levels.index(level)] for level in (0.05, 0.95))
    known = np.isfinite(low) & np.isfinite(outcome)
    scores.held[row, places] = np.where(known, (low <= outcome) & (outcome <= high), _UNKNOWN)
    scores.regimes[row, places] = instant.regimes
    _add_tails(scores, instant, outcome, known)
    ready = np.isfinite(low[:, 0])
    if ready.any():
        scores.weights[row] = instant.weights[ready].mean(axis=0)
        scores.stretch[row] = instant.stretch[ready].mean(axis=0)
    place = int(np.searchsorted(places, scores.shown_series))
    if place < len(places) and places[place] == scores.shown_series:
        scores.shown[row] = fused[place]


def _add_tails(scores: WalkScores, instant: WalkInstant, outcome: Array, known: Mask) -> None:
    row, places, levels = instant.t - scores.first, instant.places, np.array(scores.levels)
    fused, y = instant.quantiles[0], np.where(known, outcome, 0.0)
    for place, level in enumerate((0.05, 0.01)):
        if level < scores.levels[0]:
            continue
        below = y < _at(fused, levels, level)
        scores.below[place, row, places] = np.where(known, below, _UNKNOWN)
    scores.width[row, places] = np.where(known, _at(fused, levels, 0.95) - _at(fused, levels, 0.05), np.nan)
    both = instant.quantiles[[0, scores.names.index(EWMA)]]  # [2, n, H, Q]
    given = known & np.isfinite(both[..., 0])
    losses = pinball(both, np.broadcast_to(y, both.shape[:-1]), levels)
    weights = 2.0 * integration_weights(scores.levels)
    for place, each in enumerate((weights, weights * (1.0 - levels) ** 2)):
        found = np.where(given, (losses * each).sum(axis=-1), np.nan)
        scores.fused_loss[place, row, places], scores.ewma_loss[place, row, places] = found


def _add_all(scores: WalkScores, instant: WalkInstant, outcome: Array, judges: NDArray[np.intp]) -> None:
    row, places, quantiles = instant.t - scores.begin, instant.places, instant.quantiles
    levels = np.array(scores.levels)
    given = np.isfinite(quantiles[..., 0]) & np.isfinite(outcome)  # [F, n, H]
    y = np.where(np.isfinite(outcome), outcome, 0.0)
    asked = given | ~instant.is_chosen[:, :, None]
    common = np.logical_and.reduce(asked[judges], axis=0) & given[0]
    losses = pinball(quantiles, np.broadcast_to(y, quantiles.shape[:-1]), levels)  # [F, n, H, Q]
    cells = 2.0 * integration_weights(scores.levels)
    scores.crps[:, row, places] = np.where(given, (losses * cells).sum(axis=-1), np.nan)
    both = given & common
    scores.losses += np.where(both[..., None], losses, 0.0).sum(axis=1)
    scores.moves += np.where(both, np.abs(y), 0.0).sum(axis=1)
    for inside, ends in ((scores.inside90, (0.05, 0.95)), (scores.inside50, (0.25, 0.75))):
        low, high = (_at(quantiles, levels, level) for level in ends)
        inside[:, row, places] = (low <= y) & (y <= high)
    scores.common[row, places] = common
    for j in range(len(scores.horizons)):
        chosen = common[:, j]
        scores.pit[row, places[chosen], j] = pit(quantiles[0, chosen, j], y[chosen, j], levels)
        scores.hits[j] += (y[chosen, j, None] <= quantiles[0, chosen, j]).sum(axis=0)


def _at(quantiles: Array, levels: Array, level: float) -> Array:
    """The quantile at a level, linear in the level where it lies between two that are given."""
    above = int(np.searchsorted(levels, level))
    if levels[above] == level:
        return quantiles[..., above]
    share = (level - levels[above - 1]) / (levels[above] - levels[above - 1])
    return quantiles[..., above - 1] + share * (quantiles[..., above] - quantiles[..., above - 1])
