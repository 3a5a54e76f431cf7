"""The probability of backtest overfitting, by combinatorially symmetric cross-validation. `htfi eval portfolio` asks.

Source: Bailey, Borwein, López de Prado and Zhu, The Probability of Backtest Overfitting (2015).
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]

_MOST_SPLITS = 20_000


@dataclass(frozen=True, slots=True)
class Overfitting:
    """Over all splits of time into two equal halves, made of blocks.

    `probability` is the share of splits in which what was best in one half ranks in the lower half of the other.
    Shapes: logits [splits] of that rank, below 0 where it did; chosen and later [splits], the Sharpe ratio of the
    chosen in the half it was chosen on and in the other.
    """

    probability: float
    logits: Array
    chosen: Array
    later: Array


def overfitting(returns: Array, num_blocks: int = 10) -> Overfitting:
    """Of trials' returns [T, N] per period; rows that remain after equal blocks are left out at the start.

    Ties share their mean rank, so that trials without a difference give 1/2.
    Raises: InvalidInput for fewer than two trials, an odd number of blocks, too many, or too few rows.
    """
    if returns.ndim != 2 or returns.shape[1] < 2 or not np.isfinite(returns).all():
        raise InvalidInput("overfitting is judged among two trials or more, with finite returns")
    if num_blocks < 2 or num_blocks % 2 or comb(num_blocks, num_blocks // 2) > _MOST_SPLITS:
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
    chosen, later = np.take_along_axis(seen, best, 1), np.take_along_axis(unseen, best, 1)
    below, equal = (unseen < later).sum(axis=1), (unseen == later).sum(axis=1)
    rank = below + 0.5 * (equal + 1)  # 1 … N
    share = rank / (returns.shape[1] + 1.0)
    logits = np.log(share / (1.0 - share))
    probability = float((logits < -1e-12).mean() + 0.5 * (np.abs(logits) <= 1e-12).mean())
    return Overfitting(probability, logits, chosen[:, 0], later[:, 0])


def _ratios(sums: Array, squares: Array, num: int) -> Array:
    mean = sums / num
    variance = squares / num - mean**2
    varies = variance > 1e-12 * np.maximum(squares / num, 1e-300)
    return np.where(varies, mean / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
