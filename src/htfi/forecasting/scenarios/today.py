"""The forecast that scenarios change: today's quantiles, how series move together, and the draws that all share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.joint.factors import FactorModel
from htfi.forecasting.joint.marginals import FURTHEST, Marginals
from htfi.forecasting.joint.scenarios import (
    Dependence,
    draw_scores,
    fit_freedom,
    learn_dependence,
    to_returns,
)

Array = NDArray[np.float64]

NUM_DRAWS = 4_000
_MATCHED_SERIES = 64  # so many tell how often all is extreme at once
_STEP = 1 / 64


@dataclass(frozen=True, slots=True)
class Today:
    """The unchanged forecast over `horizon` bars of n series that share an interval.

    Shapes: prices [n], newest; quantiles [n, Q] of the log return; scores and returns [S, n], the draws: every
    scenario changes the same ones, so that a difference is never the dice's. `freedom` is of the Student-t copula that
    they are drawn from, None for a Gaussian; `num_instants` is how many past instants the dependence was learnt from.
    """

    series: tuple[str, ...]
    prices: Array
    levels: tuple[float, ...]
    quantiles: Array
    horizon: int
    dependence: Dependence
    scores: Array
    returns: Array
    freedom: float | None
    num_instants: int

    @property
    def median(self) -> Array:
        return self.quantiles[:, self.levels.index(0.5)]

    @property
    def sigma(self) -> Array:
        """[n], the standard deviation of a Gaussian whose 90% band is as wide."""
        band = self.quantiles[:, self.levels.index(0.95)] - self.quantiles[:, self.levels.index(0.05)]
        return band / BAND_SIGMAS

    def to_scores(self, places: NDArray[np.intp], moves: Array) -> Array:
        """The normal scores [A] of log returns [A] of some series under their forecasts, beyond ±8 in a line."""
        quantiles = self.quantiles[places]
        scores = Marginals(self.levels).scores(quantiles, moves)
        edge, slope = _edges(quantiles, self.levels, np.where(moves < self.median[places], -1.0, 1.0))
        return np.where(
            np.abs(scores) < FURTHEST, scores, np.sign(scores) * FURTHEST + (moves - edge) / slope
        )

    def to_returns(self, scores: Array, quantiles: Array | None = None) -> Array:
        """Log returns [S, n] of scores [S, n] under the unchanged quantiles, or others."""
        told = self.quantiles if quantiles is None else quantiles
        returns = to_returns(scores, told, self.levels)
        beyond = scores - np.clip(scores, -FURTHEST, FURTHEST)
        if beyond.any():  # a great shock takes series with it further than a forecast's own scores go
            for side, away in ((-1.0, np.minimum(beyond, 0.0)), (1.0, np.maximum(beyond, 0.0))):
                returns += away * _edges(told, self.levels, np.full(len(told), side))[1]
        return returns


def _some(dependence: Dependence) -> Dependence:
    """The dependence of some of the series, evenly chosen."""
    step = max(1, dependence.factors.num_series // _MATCHED_SERIES)
    factors = dependence.factors
    return Dependence(
        dependence.scores[:, ::step], FactorModel(factors.loadings[::step], factors.specific[::step])
    )


def _edges(quantiles: Array, levels: Sequence[float], side: Array) -> tuple[Array, Array]:
    """Log return [n] at ±8 scores, and what one more score adds there."""
    outer, inner = (
        to_returns((side * at)[None], quantiles, levels)[0] for at in (FURTHEST, FURTHEST - _STEP)
    )
    return outer, np.maximum((outer - inner) * side / _STEP, 1e-12)


def make_today(
    series: Sequence[str],
    prices: Array,
    quantiles: Array,
    levels: Sequence[float],
    horizon: int,
    history: NDArray[np.floating],
    *,
    seed: int,
    num_draws: int = NUM_DRAWS,
) -> Today:
    """From quantiles [n, Q] and the scores [T, n] of past one-bar forecasts, NaN where there was none."""
    rng = np.random.Generator(np.random.PCG64(seed))
    dependence = learn_dependence(history, rng)
    freedom = fit_freedom(_some(dependence), rng)
    scores = draw_scores(dependence, num_draws, rng, freedom)
    return Today(
        series=tuple(series),
        prices=prices,
        levels=tuple(levels),
        quantiles=quantiles,
        horizon=horizon,
        dependence=dependence,
        scores=scores,
        returns=to_returns(scores, quantiles, levels),
        freedom=freedom,
        num_instants=len(history),
    )
