"""GARCH(1,1) and GJR-GARCH with Student-t errors, fitted to many series; the experts and evaluations call it."""

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain import exact
from htfi.forecasting.garch_core import Fit

Array = NDArray[np.float64]

# (persistence, news / persistence) that a likelihood of several hills is tried at
_STARTS = ((0.98, 0.05), (0.98, 0.12), (0.9, 0.12), (0.995, 0.03), (0.7, 0.25))
_START_TAIL = 1.0 / 6.0
_MOST_PASSES = 80
_TOLERANCE = 1e-6  # of log-likelihood
_FREE = array("d", bytes(8 * 5))  # no prior


@dataclass(frozen=True, slots=True)
class GarchFit:
    """σ²_t = ω + (α + γ·1{r<0}) r²_{t−1} + β σ²_{t−1}, errors Student-t of unit variance; all [N].

    Units: ω and `variance`, that of the return after the last, are of squared returns. Rows that tell nothing (fewer
    than ten returns, or a price that never moved) are NaN. `loglik` includes every constant. α ≥ 0, α + γ ≥ 0, β ≥ 0,
    α + γ/2 + β ≤ 0.9999, 2.1 ≤ ν ≤ 60.
    """

    omega: Array
    alpha: Array
    gamma: Array
    beta: Array
    nu: Array
    loglik: Array
    variance: Array


def fit_garch(returns: Array, leverage: bool) -> GarchFit:
    """Maximum likelihood for each row of log returns [N, T]; NaN are left out. γ is 0 without leverage."""
    found = np.full((len(returns), 7), np.nan)
    for i, row in enumerate(returns):
        kept = row[np.isfinite(row)]
        scale = float(np.sqrt((kept * kept).sum() / max(len(kept), 1)))
        if len(kept) < 10 or not scale > 0.0:
            continue
        fit = Fit(memoryview(np.ascontiguousarray(kept / scale)), leverage, _FREE, _FREE)
        for persistence, news in _STARTS:
            fit.start(array("d", [1.0, persistence, news, 0.5, _START_TAIL]))
        fit.climb(_MOST_PASSES, _TOLERANCE)
        omega, alpha, gamma, beta, nu = parameters(np.array(fit.x))
        loglik = fit.loglik - len(kept) * float(exact.log(np.array(scale)))
        found[i] = (omega * scale * scale, alpha, gamma, beta, nu, loglik, fit.variance * scale * scale)
    return GarchFit(*np.ascontiguousarray(found.T))


def parameters(x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """(ω, α, γ, β, ν) of what `Fit` climbs, x [..., 5]."""
    level, persistence, share, falls, tail = np.moveaxis(x, -1, 0)
    news = persistence * share
    alpha = 2.0 * news * (1.0 - falls)
    return level * (1.0 - persistence), alpha, 2.0 * news * falls - alpha, persistence - news, 1.0 / tail
