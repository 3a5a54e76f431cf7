"""GARCH(1,1) and GJR-GARCH with Student-t errors, fitted to many series; the experts and evaluations call it."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain import exact
from htfi.forecasting.garch_core import Fit

Array = NDArray[np.float64]

# (persistence, news as a share of it): a likelihood may have several hills
_STARTS = ((0.98, 0.05), (0.98, 0.12), (0.9, 0.12), (0.995, 0.03), (0.7, 0.25))
_START_TAIL = 1.0 / 6.0
_MOST_PASSES = 80
_TOLERANCE = 1e-6  # of log-likelihood
_MIN_RETURNS = 10
_SMALLEST_SCALE = 1e-150  # below it a square is nothing


@dataclass(frozen=True, slots=True)
class GarchFit:
    """σ²_t = ω + (α + γ·1{r<0}) r²_{t−1} + β σ²_{t−1}, errors Student-t of unit variance with ν; all [N].

    Units: ω and `variance`, that of the return after the last, are of squared returns. `loglik` has all its constants.
    α ≥ 0, α + γ ≥ 0, β ≥ 0, α + γ/2 + β ≤ 0.9999, 2.1 ≤ ν ≤ 60. Rows that tell nothing (fewer than ten returns, or a
    price that never moved) are NaN.
    """

    omega: Array
    alpha: Array
    gamma: Array
    beta: Array
    nu: Array
    loglik: Array
    variance: Array


@dataclass(frozen=True, slots=True)
class Prior:
    """A Gaussian prior on what is climbed: ω over 1 − persistence, persistence, news, falls, 1/ν (`garch_core.Fit`)."""

    center: tuple[float, float, float, float, float]
    deviation: tuple[float, float, float, float, float]

    def precision(self) -> "array[float]":
        return array("d", [1.0 / (each * each) for each in self.deviation])


def fit_garch(returns: Array, leverage: bool) -> GarchFit:
    """Maximum likelihood for each row of log returns [N, T]; NaN are left out. γ is 0 without leverage.

    The variance before the first return is arch's: a fading mean of the first 75 squares.
    """
    found = np.full((len(returns), 7), np.nan)
    free = array("d", bytes(8 * 5))
    for i, row in enumerate(returns):
        kept = row[np.isfinite(row)]
        scale = root_mean_square(kept)
        if len(kept) < _MIN_RETURNS or not _SMALLEST_SCALE < scale < np.inf:
            continue
        fit = Fit((kept / scale).data, leverage, free, free)
        for persistence, news in _STARTS:
            fit.start(array("d", [1.0 - persistence, persistence, news, 0.5, _START_TAIL]))
        fit.climb(_MOST_PASSES, _TOLERANCE)
        omega, alpha, gamma, beta, nu = parameters(np.array(fit.x))
        loglik = fit.loglik - len(kept) * float(exact.log(np.array(scale)))
        found[i] = (omega * scale * scale, alpha, gamma, beta, nu, loglik, fit.variance * scale * scale)
    return GarchFit(*np.ascontiguousarray(found.T))


def refit(
    returns: Array, leverage: bool, prior: Prior, last: Sequence[float], most_passes: int, tolerance: float
) -> tuple[Sequence[float], float]:
    """What maximises likelihood and prior, x [5], and the variance of the next return; warm from `last`.

    `returns` [T] have a mean square of 1.
    """
    fit = Fit(returns.data, leverage, array("d", prior.center), prior.precision())
    center = prior.center
    fit.start(array("d", (center[0] * (1.0 - center[1]), *center[1:])))
    fit.start(array("d", last))
    fit.climb(most_passes, tolerance)
    return fit.x, fit.variance


def parameters(x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """(ω, α, γ, β, ν) of what is climbed, x [..., 5]."""
    omega, persistence, share, falls, tail = np.moveaxis(x, -1, 0)
    news = persistence * share
    alpha = 2.0 * news * (1.0 - falls)
    return omega, alpha, 2.0 * news * falls - alpha, persistence - news, 1.0 / tail


def root_mean_square(values: Array) -> float:
    return float(np.sqrt((values * values).sum() / max(len(values), 1)))
