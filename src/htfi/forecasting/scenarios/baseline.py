"""The unchanged forecast of scenarios: today's quantiles, how series move together, and the draws that all share."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.joint.dependence import (
    DependenceModel,
    FactorModel,
    draw_scores,
    fit_degrees_of_freedom,
    learn_dependence,
    to_returns,
)

Array = NDArray[np.float64]

NUM_DRAWS = 4_000
_MAX_MATCHED_SERIES = 64  # so many suffice to estimate joint extremes


@dataclass(frozen=True)  # no slots: what only known moves need is worked out at the first of them
class BaselineForecast:
    """The unchanged forecast over `horizon` bars of n series that share an interval.

    Shapes: prices [n], newest; quantiles [n, Q] of the log return; scores and returns [S, n], the draws: every
    scenario changes the same ones, so that a difference is never by chance. `freedom` is of the Student-t copula that
    they are drawn from, None for a Gaussian. `surprises` [T, n] are the scores of the past instants that the dependence
    was learnt from, NaN where there was none; `replayed` [T, n] the log returns that they would be today, what is
    missing drawn from the factor model.
    """

    series: tuple[str, ...]
    prices: Array
    levels: tuple[float, ...]
    quantiles: Array
    horizon: int
    dependence: DependenceModel
    scores: Array
    returns: Array
    freedom: float | None
    surprises: NDArray[np.floating]
    replayed: Array

    @property
    def num_instants(self) -> int:
        return len(self.surprises)

    @property
    def median(self) -> Array:
        return self.quantiles[:, self.levels.index(0.5)]

    @property
    def sigma(self) -> Array:
        """[n], the standard deviation of a Gaussian whose 90% band is as wide."""
        band = self.quantiles[:, self.levels.index(0.95)] - self.quantiles[:, self.levels.index(0.05)]
        return band / BAND_SIGMAS

    @cached_property
    def standardised_history(self) -> Array:
        """The past surprises as returns under today's forecast, in its sigmas from its median [T, n]; NaN as there."""
        returns = to_returns(np.asarray(self.surprises, np.float64), self.quantiles, self.levels)
        return (returns - self.median) / np.maximum(self.sigma, 1e-12)

    def to_returns(self, scores: Array, quantiles: Array | None = None) -> Array:
        """Log returns [S, n] of scores [S, n] under the unchanged quantiles, or others."""
        return to_returns(scores, self.quantiles if quantiles is None else quantiles, self.levels)


def _subsample(dependence: DependenceModel) -> DependenceModel:
    """The dependence of some of the series, evenly chosen."""
    step = max(1, dependence.factors.num_series // _MAX_MATCHED_SERIES)
    factors = dependence.factors
    return DependenceModel(
        dependence.scores[:, ::step], FactorModel(factors.loadings[::step], factors.specific[::step])
    )


def make_baseline(
    series: Sequence[str],
    prices: Array,
    quantiles: Array,
    levels: Sequence[float],
    horizon: int,
    history: NDArray[np.floating],
    *,
    seed: int,
    num_draws: int = NUM_DRAWS,
) -> BaselineForecast:
    """From quantiles [n, Q] and the scores [T, n] of past one-bar forecasts, NaN where there was none."""
    rng = np.random.Generator(np.random.PCG64(seed))
    known = np.asarray(history, np.float64)
    order, back = _canonical_order(quantiles, known)
    learnt = learn_dependence(known[:, order], rng)
    freedom = fit_degrees_of_freedom(_subsample(learnt), rng)
    scores = draw_scores(learnt, num_draws, rng, freedom)[:, back]
    factors = FactorModel(learnt.factors.loadings[back], learnt.factors.specific[back])
    dependence = DependenceModel(learnt.scores[:, back], factors)
    past = np.where(np.isfinite(known), known, dependence.scores[: len(known)])
    return BaselineForecast(
        series=tuple(series),
        prices=prices,
        levels=tuple(levels),
        quantiles=quantiles,
        horizon=horizon,
        dependence=dependence,
        scores=scores,
        returns=to_returns(scores, quantiles, levels),
        freedom=freedom,
        surprises=history,
        replayed=to_returns(past, quantiles, levels),
    )


def _canonical_order(quantiles: Array, history: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """An order of the series by their figures, and its inverse: names do not change the draws."""
    order = np.lexsort((np.nan_to_num(history).sum(axis=0), *quantiles.T))
    return order, np.argsort(order, kind="stable")
