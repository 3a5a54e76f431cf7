"""Scores of variance forecasts: one walk's variances, held to the ranges that came. `volatility` reads it.

A forecaster's variance is that of a Gaussian whose outcomes are as large on average as its quantiles say. It is then
multiplied by the mean of its own matured realised-to-forecast ratios on that series, so that only what varies is
judged: a constant bias costs nobody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.evaluation.differences import LossDifference, diebold_mariano
from htfi.forecasting.scores import implied_variance, qlike
from htfi_eval.eval.walk import FUSED, RealisedOutcomes, Tell, Walk

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_PRIOR_BARS = 50.0  # ratios of 1 that a series starts with


@dataclass(slots=True, eq=False)
class VolatilityScores:
    """Shapes: [T, N, H]. Losses are QLIKE, ratios raw realised/forecast, variances scaled; common from `begin` on."""

    names: tuple[str, ...]
    horizons: tuple[int, ...]
    begin: int
    losses: dict[str, Array]
    ratios: dict[str, Array]
    variances: dict[str, Array]
    realised: Array
    common: Mask

    def mean(self, name: str, j: int, where: Mask | None = None) -> float:
        chosen = self.common[:, :, j] if where is None else self.common[:, :, j] & where
        values = self.losses[name][:, :, j][chosen]
        return float(values.mean()) if values.size else float("nan")

    def ratio(self, name: str, j: int, where: Mask | None = None) -> float:
        """Mean QLIKE of the fused forecast over that of `name`."""
        return self.mean(FUSED, j, where) / self.mean(name, j, where)

    def difference(self, name: str, j: int) -> LossDifference:
        fused, other = (
            np.where(self.common[:, :, j], self.losses[one][:, :, j], np.nan)[self.begin :]
            for one in (FUSED, name)
        )
        return diebold_mariano(fused, other, self.horizons[j])

    def bias(self, name: str, j: int) -> float:
        """Mean raw realised over forecast variance: 1 is unbiased."""
        return float(self.ratios[name][:, :, j][self.common[:, :, j]].mean())


def variances(walk: Walk, tell: Tell | None = None) -> dict[str, Array]:
    """The variance of every forecaster after each instant, {name: [T, N, H]}."""
    shape = (len(walk.prices.ends_ns), len(walk.prices.symbols), len(walk.config.horizons))
    said = {name: np.full(shape, np.nan) for name in walk.names}
    levels = np.array(walk.config.levels)
    for instant in walk.instants(0, tell):
        moments = implied_variance(instant.quantiles, levels)
        for place, name in enumerate(walk.names):
            said[name][instant.t, instant.places] = moments[place]
    return said


def close_to_close(measured: RealisedOutcomes) -> Array:
    """The realised variance of the next h bars in units of squared returns, [T, N, H].

    Ranges and returns differ by a constant (gaps, ticks): each series' ranges are scaled by Σr²/ΣV of what was known
    when the forecast was made.
    """
    known = np.isfinite(measured.returns)
    squares = np.cumsum(np.where(known, measured.returns**2, 0.0), axis=0)
    ranges = np.cumsum(np.where(known, measured.variance, 0.0), axis=0)
    scale = np.where(ranges > 0.0, squares / np.where(ranges > 0.0, ranges, 1.0), np.nan)
    realised = measured.realised * scale[:, :, None]
    return np.where(realised > 0.0, realised, np.nan)


def score(
    forecasts: Mapping[str, Array], measured: RealisedOutcomes, horizons: Sequence[int], begin: int
) -> VolatilityScores:
    """QLIKE of every forecaster's variance, on the forecasts that all of them made from `begin` on."""
    realised = close_to_close(measured)
    losses: dict[str, Array] = {}
    ratios: dict[str, Array] = {}
    scaled: dict[str, Array] = {}
    common = np.isfinite(realised)
    common[:begin] = False
    for name, variance in forecasts.items():
        sound = np.where(variance > 0.0, variance, np.nan)
        ratios[name] = realised / sound
        scaled[name] = sound * past_mean(ratios[name], measured, horizons)
        losses[name] = qlike(realised, scaled[name])
        common &= np.isfinite(losses[name])
    return VolatilityScores(
        tuple(forecasts), tuple(horizons), begin, losses, ratios, scaled, realised, common
    )


def past_mean(ratios: Array, measured: RealisedOutcomes, horizons: Sequence[int]) -> Array:
    """The mean of the ratios [T, N, H] that had matured at each instant, per series, begun with some ones."""
    factor = np.ones_like(ratios)
    for n in range(ratios.shape[1]):
        when = np.flatnonzero(np.isfinite(measured.returns[:, n]))
        for j, h in enumerate(horizons):
            seen = ratios[when, n, j]
            known = np.isfinite(seen)
            total = np.concatenate([np.zeros(h), np.cumsum(np.where(known, seen, 0.0))])[: len(when)]
            num = np.concatenate([np.zeros(h), np.cumsum(known)])[: len(when)]
            factor[when, n, j] = (_PRIOR_BARS + total) / (_PRIOR_BARS + num)
    return factor
