"""Scores of one walk: every forecaster's CRPS and coverage by date, series and horizon. `returns` fills and reads it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.apps.eval.prices import Prices
from htfi.apps.eval.walk import FUSED, Instant, Measured, Tell, Walk
from htfi.forecasting.evaluation.differences import Difference, compare
from htfi.forecasting.scores import crps, integration_weights, pinball, pit

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Scores:
    """What was scored, from instant `first` on: T instants, N series, H horizons, F forecasters.

    Shapes: crps [F, T, N, H], NaN where a forecaster or the outcome is missing; inside50 and inside90 [F, T, N, H];
    common [T, N, H], where all of `core` spoke, which every figure but those of rare peers is taken over; pit
    [T, N, H] and hits [H, Q] (how often the outcome fell below a level) of the fused forecast; losses [F, H, Q] and
    moves [F, H], sums of pinball losses and of |y|; regimes [T, N], −1 for no bar; weights [T, K, H] and stretch
    [T, H], means over series.
    """

    prices: Prices
    names: tuple[str, ...]
    experts: tuple[str, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    first: int
    crps: Single
    inside50: Mask
    inside90: Mask
    common: Mask
    pit: Single
    hits: Array
    losses: Array
    moves: Array
    regimes: NDArray[np.int8]
    weights: Array
    stretch: Array
    low90: Single
    high90: Single

    def mean_crps(self, name: str, j: int, where: Mask | None = None) -> float:
        """Mean CRPS of `name` at the j-th horizon over the common forecasts, or over those of them in `where` [T, N]."""
        chosen = self.common[:, :, j] if where is None else self.common[:, :, j] & where
        values = self.crps[self.names.index(name), :, :, j][chosen]
        known = np.isfinite(values)
        return float(values[known].mean(dtype=np.float64)) if known.any() else float("nan")

    def both(self, name: str, j: int) -> Mask:
        """Where `name` and all of the core spoke, [T, N]: rare peers are compared on their own few."""
        return self.common[:, :, j] & np.isfinite(self.crps[self.names.index(name), :, :, j])

    def ratio(self, name: str, j: int) -> float:
        """Mean CRPS of the fused forecast over that of `name`, on the same forecasts."""
        both = self.both(name, j)
        return self.mean_crps(FUSED, j, both) / self.mean_crps(name, j, both)

    def difference(self, name: str, j: int) -> Difference:
        """The fused forecast's CRPS less that of `name`, by date."""
        both = self.both(name, j)
        pair = [
            np.where(both, self.crps[self.names.index(one), :, :, j].astype(np.float64), np.nan)
            for one in (FUSED, name)
        ]
        return compare(pair[0], pair[1], self.horizons[j])

    def coverage(self, name: str, j: int, share: int = 90, where: Mask | None = None) -> tuple[float, int]:
        """Share of outcomes within the central interval, and of how many."""
        chosen = self.both(name, j) if where is None else self.both(name, j) & where
        inside = (self.inside90 if share == 90 else self.inside50)[self.names.index(name), :, :, j][chosen]
        return (float(inside.mean()) if inside.size else float("nan")), int(inside.size)

    def wql(self, name: str, j: int) -> float:
        """Weighted quantile loss over the levels, as `forecasting.scores.weighted_quantile_loss`."""
        k = self.names.index(name)
        return (
            float(2.0 * self.losses[k, j].mean() / self.moves[k, j])
            if self.moves[k, j] > 0.0
            else float("nan")
        )


def score(
    walk: Walk, measured: Measured, first: int, core: Sequence[str], tell: Tell | None = None
) -> Scores:
    """Walk all of the data and score what was said from instant `first` on."""
    config, prices = walk.config, walk.prices
    num, width = len(prices.ends_ns) - first, len(prices.symbols)
    shape = (len(walk.names), num, width, len(config.horizons))
    h, q = shape[3], len(config.levels)
    blank = np.zeros(shape, np.bool_)
    scores = Scores(
        prices, walk.names, tuple(sorted(walk.experts)), config.horizons, config.levels, first,
        crps=np.full(shape, np.nan, np.float32), inside50=blank, inside90=blank.copy(),
        common=np.zeros(shape[1:], np.bool_), pit=np.full(shape[1:], np.nan, np.float32),
        hits=np.zeros((h, q)), losses=np.zeros((shape[0], h, q)), moves=np.zeros((shape[0], h)),
        regimes=np.full(shape[1:3], -1, np.int8), weights=np.full((num, len(walk.experts), h), np.nan),
        stretch=np.full((num, h), np.nan),
        low90=np.full(shape[1:], np.nan, np.float32), high90=np.full(shape[1:], np.nan, np.float32),
    )  # fmt: skip
    judges = np.array([walk.names.index(name) for name in core])
    band = [config.levels.index(level) for level in _BAND]
    for instant in walk.instants(first, tell):
        _add(scores, instant, measured.outcomes[instant.t, instant.places], judges, band)
    return scores


_BAND = (0.05, 0.95, 0.2, 0.8)  # the second pair is the 60% band, from which the 50% band is interpolated


def _add(
    scores: Scores, instant: Instant, outcome: Array, judges: NDArray[np.intp], band: Sequence[int]
) -> None:
    row, places, said = instant.t - scores.first, instant.places, instant.quantiles
    levels = np.array(scores.levels)
    spoke = np.isfinite(said[..., 0]) & np.isfinite(outcome)  # [F, n, H]
    y = np.where(np.isfinite(outcome), outcome, 0.0)
    common = np.logical_and.reduce(spoke[judges], axis=0)
    losses = pinball(said, np.broadcast_to(y, said.shape[:-1]), levels)  # [F, n, H, Q]
    cells = 2.0 * integration_weights(scores.levels)
    scores.crps[:, row, places] = np.where(spoke, (losses * cells).sum(axis=-1), np.nan)
    both = spoke & common
    scores.losses += np.where(both[..., None], losses, 0.0).sum(axis=1)
    scores.moves += np.where(both, np.abs(y), 0.0).sum(axis=1)
    low, high = said[..., band[0]], said[..., band[1]]
    scores.inside90[:, row, places] = (low <= y) & (y <= high)
    low50, high50 = _at(said, levels, 0.25), _at(said, levels, 0.75)
    scores.inside50[:, row, places] = (low50 <= y) & (y <= high50)
    scores.common[row, places] = common
    scores.low90[row, places], scores.high90[row, places] = low[0], high[0]
    scores.regimes[row, places] = instant.regimes
    fused = said[0]
    for j in range(len(scores.horizons)):
        chosen = common[:, j]
        scores.pit[row, places[chosen], j] = pit(fused[chosen, j], y[chosen, j], levels)
        scores.hits[j] += (y[chosen, j, None] <= fused[chosen, j]).sum(axis=0)
    ready = np.isfinite(fused[:, 0, 0])
    if ready.any():
        scores.weights[row] = instant.weights[ready].mean(axis=0)
        scores.stretch[row] = instant.stretch[ready].mean(axis=0)


def _at(quantiles: Array, levels: Array, level: float) -> Array:
    """The quantile at a level between two that are given, linear in the level."""
    above = int(np.searchsorted(levels, level))
    share = (level - levels[above - 1]) / (levels[above] - levels[above - 1])
    return quantiles[..., above - 1] + share * (quantiles[..., above] - quantiles[..., above - 1])
