"""Backtest overfitting: probabilistic and deflated Sharpe ratios, and the probability of backtest overfitting.

`htfi eval portfolio` reports them. Sharpe ratios are per period, neither annualised nor in excess of a rate unless
returns are. Sources: Bailey and López de Prado, The Sharpe Ratio Efficient Frontier (2012), The Deflated Sharpe Ratio
(2014); Bailey, Borwein, López de Prado and Zhu, The Probability of Backtest Overfitting (2015), by combinatorially
symmetric cross-validation.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from math import comb
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]

_EULER = 0.5772156649015329
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class ReturnMoments:
    """Of T returns: Sharpe ratio per period, skewness, and kurtosis as it is (3 for a Gaussian)."""

    num: int
    sharpe: float
    skewness: float
    kurtosis: float


def return_moments(returns: Array) -> ReturnMoments:
    """Population moments. Returns that never vary have a Sharpe ratio of 0.

    Raises: InvalidInput for fewer than two returns or any that is not finite.
    """
    if len(returns) < 2 or not np.isfinite(returns).all():
        raise InvalidInput("a Sharpe ratio needs two returns or more, all finite")
    away = returns - returns.mean()
    deviation = math.sqrt(float((away**2).mean()))
    if deviation <= 1e-12 * max(1.0, abs(float(returns.mean()))):
        return ReturnMoments(len(returns), 0.0, 0.0, 3.0)
    scaled = away / deviation
    return ReturnMoments(
        len(returns),
        float(returns.mean()) / deviation,
        float((scaled**3).mean()),
        float((scaled**4).mean()),
    )


def sharpe_deviation(of: ReturnMoments) -> float:
    """Of the ratio's estimate, times √(T − 1): 1 for Gaussian returns without drift; skew and fat tails add to it."""
    variance = 1.0 - of.skewness * of.sharpe + 0.25 * (of.kurtosis - 1.0) * of.sharpe**2
    return math.sqrt(max(variance, 1e-12))


def probabilistic_sharpe(of: ReturnMoments, benchmark: float = 0.0) -> float:
    """The chance that the true ratio is above `benchmark` (per period), given length, skew and fat tails."""
    return _NORMAL.cdf((of.sharpe - benchmark) * math.sqrt(of.num - 1.0) / sharpe_deviation(of))


def expected_max_sharpe(variance: float, num_trials: int) -> float:
    """The expected highest ratio of `num_trials` independent trials that are all worth nothing.

    √V·[(1−γ)·Φ⁻¹(1−1/N) + γ·Φ⁻¹(1−1/(N·e))], V the variance of the ratios over the trials; 0 for a single trial.
    """
    if num_trials < 2:
        return 0.0
    likely = _NORMAL.inv_cdf(1.0 - 1.0 / num_trials)
    rarer = _NORMAL.inv_cdf(1.0 - 1.0 / (num_trials * math.e))
    return math.sqrt(max(variance, 0.0)) * ((1.0 - _EULER) * likely + _EULER * rarer)


def deflated_sharpe(of: ReturnMoments, variance: float, num_trials: int) -> float:
    """The chance that the ratio is above what the luckiest of `num_trials` would show: below 95% it may be luck.

    `num_trials` counts every configuration ever tried, not only those kept; `variance` is of their ratios.
    """
    return probabilistic_sharpe(of, expected_max_sharpe(variance, num_trials))


_MAX_SPLITS = 20_000


@dataclass(frozen=True, slots=True)
class BacktestOverfitting:
    """Over all splits of time into two equal halves, made of blocks.

    `probability` is the share of splits in which what was best in one half ranks in the lower half of the other.
    Shape: logits [splits] of that rank, below 0 where it did.
    """

    probability: float
    logits: Array


def backtest_overfitting(returns: Array, num_blocks: int = 10) -> BacktestOverfitting:
    """Of trials' returns [T, N] per period; rows that remain after equal blocks are left out at the start.

    Ties share their mean rank, so that trials without a difference give 1/2.
    Raises: InvalidInput for fewer than two trials, an odd number of blocks, too many, or too few rows.
    """
    if returns.ndim != 2 or returns.shape[1] < 2 or not np.isfinite(returns).all():
        raise InvalidInput("overfitting is judged among two trials or more, with finite returns")
    if num_blocks < 2 or num_blocks % 2 or comb(num_blocks, num_blocks // 2) > _MAX_SPLITS:
        raise InvalidInput(f"blocks must be an even number from 2 to 16, not {num_blocks}")
    size = len(returns) // num_blocks
    if size < 2:
        raise InvalidInput(f"{len(returns)} returns are too few for {num_blocks} blocks of two or more")
    blocks = returns[len(returns) - size * num_blocks :].reshape(num_blocks, size, -1)
    sums, squares = blocks.sum(axis=1), (blocks**2).sum(axis=1)  # [blocks, N]
    chosen_blocks = np.array(list(combinations(range(num_blocks), num_blocks // 2)), np.intp)
    inside = np.zeros((len(chosen_blocks), num_blocks))
    np.put_along_axis(inside, chosen_blocks, 1.0, axis=1)
    half = size * num_blocks // 2
    seen = _ratios(inside @ sums, inside @ squares, half)  # [splits, N]
    unseen = _ratios((1.0 - inside) @ sums, (1.0 - inside) @ squares, half)
    best = seen.argmax(axis=1)[:, None]
    later = np.take_along_axis(unseen, best, 1)
    below, equal = (unseen < later).sum(axis=1), (unseen == later).sum(axis=1)
    rank = below + 0.5 * (equal + 1)  # 1 … N
    share = rank / (returns.shape[1] + 1.0)
    logits = np.log(share / (1.0 - share))
    probability = float((logits < -1e-12).mean() + 0.5 * (np.abs(logits) <= 1e-12).mean())
    return BacktestOverfitting(probability, logits)


def _ratios(sums: Array, squares: Array, num: int) -> Array:
    mean = sums / num
    variance = squares / num - mean**2
    varies = variance > 1e-12 * np.maximum(squares / num, 1e-300)
    return np.where(varies, mean / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
