"""Shares and ratios of scores in many cells at once, with intervals that allow for dependence.

Forecasts of one date depend on each other, and so do those whose outcomes overlap. Therefore sums are taken over
blocks of consecutive instants, all series of a block together, at least 25 instants and three horizons long, and the
spread of the blocks' sums gives the error (a cluster-robust ratio estimate). A share's error is turned into an
effective number of independent forecasts, whose exact binomial interval is given: Korn and Graubard (1998), Survey
Methodology 24(2).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.evaluation.student import incomplete_beta, student_quantile

Array = NDArray[np.float64]
Cells = NDArray[np.integer]

MIN_BLOCK = 25  # instants: volatility that a forecast misses lasts longer than its horizon
MAX_BLOCKS = 200
BLOCK_HORIZONS = 3
MIN_BLOCKS = 3.0  # effective blocks below which a cell has no interval
CONFIDENCE = 0.95
_MAX_STEPS, _EXACT = 60, 1e-10  # of a search for a bound of an interval


@dataclass(frozen=True, slots=True, eq=False)
class CellShares:
    """How often something held in each of C cells, and how sure that is.

    Shapes: all [C]. `num` counts forecasts, `num_effective` the independent ones they are worth; `low` and `high`
    bound the share with 95% confidence, NaN where there are fewer than three effective blocks; `p` is the chance,
    both sides, of a share as far from the nominal one were that true, NaN likewise.
    """

    num: NDArray[np.int64]
    share: Array
    num_effective: Array
    low: Array
    high: Array
    p: Array


@dataclass(frozen=True, slots=True, eq=False)
class CellRatios:
    """Σ numerator / Σ denominator in each cell with a 95% interval by Student's t over blocks. Shapes: all [C]."""

    num: NDArray[np.int64]
    ratio: Array
    low: Array
    high: Array


def block_length(horizon: int, num_instants: int) -> int:
    """Instants in a block for outcomes over `horizon` bars, where there are so many instants in all."""
    return max(MIN_BLOCK, BLOCK_HORIZONS * horizon, -(-num_instants // MAX_BLOCKS))


def shares_by_cell(
    held: Array, cells: Cells, num_cells: int, horizon: int, nominal: float | Array | None = None
) -> CellShares:
    """The share of ones in `held` [T, N] (1, 0, NaN for unknown) in each cell; `cells` [T, N] or [T, 1], −1 for none.

    `nominal` is the share stated, strictly between 0 and 1, or one for each cell; without it `p` is NaN.
    """
    hits, counts, num = _block_sums((held, np.isfinite(held)), cells, num_cells, horizon)
    return shares_of_sums(hits, counts, num, nominal)


def shares_of_sums(
    hits: Array,
    counts: Array,
    num: NDArray[np.int64],
    nominal: float | Array | None = None,
    *,
    with_ends: bool = True,
) -> CellShares:
    """The same from sums by cell and block [C, B]; blocks must be as long as `block_length` says.

    `low` and `high`, most of the work, are NaN unless it is `with_ends`.
    """
    num_cells, total = len(hits), counts.sum(axis=1)
    share = np.divide(hits.sum(axis=1), total, out=np.full(num_cells, np.nan), where=total > 0)
    blocks, error2 = _spread(hits - np.nan_to_num(share)[:, None] * counts, counts)
    free = np.nan_to_num(share * (1.0 - share))
    effective = np.divide(free, error2, out=np.full(num_cells, np.inf), where=error2 > 0.0)
    # Never more than there are forecasts; where all held or none did, no more than there are blocks.
    effective = np.minimum(np.where(free > 0.0, np.maximum(effective, 1.0), blocks), num)
    tail = 0.5 * (1.0 + CONFIDENCE)
    wide = student_quantile(tail, np.maximum(blocks - 1.0, 1.0))
    narrow = student_quantile(tail, np.maximum(num - 1.0, 1.0))
    judged = np.where(blocks >= MIN_BLOCKS, np.minimum(effective * (narrow / wide) ** 2, num), np.nan)
    unknown = np.full(num_cells, np.nan)
    low, high = _exact_interval(share, judged) if with_ends else (unknown, unknown)
    return CellShares(num, share, effective, low, high, _chance(share, judged, nominal))


def ratios_by_cell(
    numerator: Array, denominator: Array, cells: Cells, num_cells: int, horizon: int
) -> CellRatios:
    """Sums of two losses [T, N] over each cell as a ratio, where both are known."""
    known = np.isfinite(numerator) & np.isfinite(denominator)
    above, below, num = _block_sums(
        (np.where(known, numerator, np.nan), denominator), cells, num_cells, horizon
    )
    return ratios_of_sums(above, below, num)


def ratios_of_sums(above: Array, below: Array, num: NDArray[np.int64]) -> CellRatios:
    """The same from sums by cell and block [C, B]."""
    total = below.sum(axis=1)
    ratio = np.divide(above.sum(axis=1), total, out=np.full(len(above), np.nan), where=total > 0.0)
    blocks, error2 = _spread(above - np.nan_to_num(ratio)[:, None] * below, below)
    reach = student_quantile(0.5 * (1.0 + CONFIDENCE), np.maximum(blocks - 1.0, 1.0)) * np.sqrt(error2)
    reach = np.where(blocks >= MIN_BLOCKS, reach, np.nan)
    return CellRatios(num, ratio, ratio - reach, ratio + reach)


def _block_sums(
    values: tuple[Array, NDArray[Any]], cells: Cells, num_cells: int, horizon: int
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Sums of two arrays by cell and block [C, B] where the first is known, and the number of those by cell [C]."""
    first, second = values
    blocks = np.arange(len(first)) // block_length(horizon, len(first))
    num_blocks = int(blocks[-1]) + 1 if len(blocks) else 1
    where = np.broadcast_to(cells, first.shape)
    known = np.isfinite(first) & (where >= 0)
    of = where[known].astype(np.int64)
    place = of * num_blocks + np.broadcast_to(blocks[:, None], first.shape)[known]
    above, below = (_sum_at(place, each[known], num_cells * num_blocks) for each in (first, second))
    num = np.bincount(of, minlength=num_cells).astype(np.int64)
    return above.reshape(num_cells, num_blocks), below.reshape(num_cells, num_blocks), num


def _sum_at(place: NDArray[np.int64], values: NDArray[Any], size: int) -> Array:
    return np.asarray(np.bincount(place, weights=values.astype(np.float64), minlength=size), np.float64)


def _spread(away: Array, weights: Array) -> tuple[Array, Array]:
    """The effective number of blocks [C], (Σw)²/Σw², and the squared error of a ratio with these residuals."""
    total, squares = weights.sum(axis=1), (weights * weights).sum(axis=1)
    blocks = np.divide(total * total, squares, out=np.zeros(len(total)), where=squares > 0.0)
    small = np.divide(blocks, blocks - 1.0, out=np.full(len(total), np.nan), where=blocks > 1.0)
    error2 = small * np.divide(
        (away * away).sum(axis=1), total * total, out=np.zeros(len(total)), where=total > 0.0
    )
    return blocks, np.nan_to_num(error2)


def _exact_interval(share: Array, num: Array) -> tuple[Array, Array]:
    """Clopper and Pearson's interval of shares [C] of real numbers of trials [C]; NaN where the number is."""
    low, high = np.full((2, len(num)), np.nan)
    known = np.isfinite(num)
    trials, tail = num[known], 0.5 * (1.0 - CONFIDENCE)
    hits = share[known] * trials
    a, b = np.stack([hits, hits + 1.0]), np.stack([trials - hits + 1.0, trials - hits])
    ends = _where_beta_is(np.array([[tail], [1.0 - tail]]), a, b)
    low[known] = np.where(hits <= 0.0, 0.0, ends[0])
    high[known] = np.where(trials - hits <= 0.0, 1.0, ends[1])
    return low, high


def _where_beta_is(chance: Array, a: Array, b: Array) -> Array:
    """x with I_x(a, b) = chance, by Newton's method, and by halving where it leaves what is known to hold x; any number
    where a or b is not above 0."""
    good = (a > 0.0) & (b > 0.0)
    a, b = np.where(good, a, 1.0), np.where(good, b, 1.0)
    low, high, mean = np.zeros(a.shape), np.ones(a.shape), a / (a + b)
    x = mean + np.where(chance < 0.5, -2.0, 2.0) * np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    x = np.where((x > 0.0) & (x < 1.0), x, mean)
    log_beta = np.array(
        [math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q) for p, q in zip(a.flat, b.flat, strict=True)]
    )
    log_beta = log_beta.reshape(a.shape)
    for _ in range(_MAX_STEPS):
        miss = incomplete_beta(a, b, x) - chance
        low, high = np.where(miss < 0.0, x, low), np.where(miss < 0.0, high, x)
        inside = np.minimum(np.maximum(x, 1e-300), 1.0 - 1e-16)
        slope = np.exp((a - 1.0) * np.log(inside) + (b - 1.0) * np.log1p(-inside) - log_beta)
        guess = x - miss / np.maximum(slope, 1e-300)
        before, x = x, np.where((guess >= low) & (guess <= high), guess, 0.5 * (low + high))
        if bool((np.abs(x - before) < _EXACT).all()):
            break
    return x


def _chance(share: Array, num: Array, nominal: float | Array | None) -> Array:
    """Two-sided mid-p chance of shares as far from `nominal` of so many trials."""
    if nominal is None:
        return np.full(len(share), np.nan)
    hits, stated = share * num, np.broadcast_to(np.asarray(nominal, np.float64), share.shape)
    at_least = np.where(hits <= 0.0, 1.0, incomplete_beta(hits, num - hits + 1.0, stated))
    above = np.where(num - hits <= 0.0, 0.0, incomplete_beta(hits + 1.0, num - hits, stated))
    upper = 0.5 * (at_least + above)
    return np.where(np.isfinite(num), np.minimum(2.0 * np.minimum(upper, 1.0 - upper), 1.0), np.nan)
