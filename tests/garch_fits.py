"""GARCH by maximum likelihood alone, without a prior: what the compiled likelihood is compared with arch by."""

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting.experts.garch import to_garch_parameters
from htfi.forecasting.garch_core import Fit

Array = NDArray[np.float64]

# (persistence, news as a share of it): a likelihood may have several hills
_STARTS = ((0.98, 0.05), (0.98, 0.12), (0.9, 0.12), (0.995, 0.03), (0.7, 0.25))
_START_TAIL = 1.0 / 6.0
_FIT_MAX_PASSES = 80
_FIT_TOLERANCE = 1e-6  # of log-likelihood
_MIN_RETURNS = 10
_MIN_SCALE = 1e-150  # below it a square is nothing


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


def fit_garch(returns: Array, leverage: bool) -> GarchFit:
    """Maximum likelihood for each row of log returns [N, T]; NaN are left out. γ is 0 without leverage.

    The variance before the first return is arch's: a fading mean of the first 75 squares.
    """
    found = np.full((len(returns), 7), np.nan)
    free = array("d", bytes(8 * 5))
    for i, row in enumerate(returns):
        kept = row[np.isfinite(row)]
        scale = root_mean_square(kept)
        if len(kept) < _MIN_RETURNS or not _MIN_SCALE < scale < np.inf:
            continue
        fit = Fit((kept / scale).data, leverage, free, free)
        for persistence, news in _STARTS:
            fit.start(array("d", [1.0 - persistence, persistence, news, 0.5, _START_TAIL]))
        fit.climb(_FIT_MAX_PASSES, _FIT_TOLERANCE)
        omega, alpha, gamma, beta, nu = to_garch_parameters(np.array(fit.x))
        loglik = fit.loglik - len(kept) * float(exact.log(np.array(scale)))
        found[i] = (omega * scale * scale, alpha, gamma, beta, nu, loglik, fit.variance * scale * scale)
    return GarchFit(*np.ascontiguousarray(found.T))


def root_mean_square(values: Array) -> float:
    return float(np.sqrt((values * values).sum() / max(len(values), 1)))
