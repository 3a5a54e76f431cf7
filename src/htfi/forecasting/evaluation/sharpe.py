"""Sharpe ratios with what luck explains taken off: probabilistic and deflated. `htfi eval portfolio` reports them.

Sharpe ratios here are per period, neither annualised nor in excess of a rate unless returns are. Source: Bailey and
López de Prado, The Sharpe Ratio Efficient Frontier (2012), The Deflated Sharpe Ratio (2014).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]

_EULER = 0.5772156649015329
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Moments:
    """Of T returns: Sharpe ratio per period, skewness, and kurtosis as it is (3 for a Gaussian)."""

    num: int
    sharpe: float
    skewness: float
    kurtosis: float


def moments(returns: Array) -> Moments:
    """Population moments. Returns that never vary have a Sharpe ratio of 0.

    Raises: InvalidInput for fewer than two returns or any that is not finite.
    """
    if len(returns) < 2 or not np.isfinite(returns).all():
        raise InvalidInput("a Sharpe ratio needs two returns or more, all finite")
    away = returns - returns.mean()
    deviation = math.sqrt(float((away**2).mean()))
    if deviation <= 1e-12 * max(1.0, abs(float(returns.mean()))):
        return Moments(len(returns), 0.0, 0.0, 3.0)
    scaled = away / deviation
    return Moments(
        len(returns),
        float(returns.mean()) / deviation,
        float((scaled**3).mean()),
        float((scaled**4).mean()),
    )


def probabilistic_sharpe(of: Moments, benchmark: float = 0.0) -> float:
    """The chance that the true ratio is above `benchmark` (per period), given length, skew and fat tails."""
    variance = 1.0 - of.skewness * of.sharpe + 0.25 * (of.kurtosis - 1.0) * of.sharpe**2
    return _NORMAL.cdf((of.sharpe - benchmark) * math.sqrt(of.num - 1.0) / math.sqrt(max(variance, 1e-12)))


def luckiest_sharpe(variance: float, num_trials: int) -> float:
    """The expected highest ratio of `num_trials` independent trials that are all worth nothing.

    √V·[(1−γ)·Φ⁻¹(1−1/N) + γ·Φ⁻¹(1−1/(N·e))], V the variance of the ratios over the trials; 0 for a single trial.
    """
    if num_trials < 2:
        return 0.0
    likely = _NORMAL.inv_cdf(1.0 - 1.0 / num_trials)
    rarer = _NORMAL.inv_cdf(1.0 - 1.0 / (num_trials * math.e))
    return math.sqrt(max(variance, 0.0)) * ((1.0 - _EULER) * likely + _EULER * rarer)


def deflated_sharpe(of: Moments, variance: float, num_trials: int) -> float:
    """The chance that the ratio is above what the luckiest of `num_trials` would show: below 95% it may be luck.

    `num_trials` counts every configuration ever tried, not only those kept; `variance` is of their ratios.
    """
    return probabilistic_sharpe(of, luckiest_sharpe(variance, num_trials))
