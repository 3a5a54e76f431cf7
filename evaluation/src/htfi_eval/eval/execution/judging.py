"""What parents cost: shortfall against the arrival, slippage against the market's average, adverse selection.

Everything is in basis points of the arrival's middle, positive where it costs. Intervals are by a block bootstrap:
windows of one hour of one day are drawn again together, for both sides, since their prices move together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import Trade
from htfi.domain.time import NS_PER_S
from htfi.execution.algorithms.planning import Algorithm
from htfi_eval.eval.execution.assumed_venues import EQUAL_FEE
from htfi_eval.eval.execution.data import OFF_EXCHANGE, TICK, MarketDay
from htfi_eval.eval.execution.runs import MARK_OUT_NS, ParentResult

Array = NDArray[np.float64]
Blocks = NDArray[np.int64]

SMART = "smart"
BLOCK_NS = 3600 * NS_PER_S
NUM_RESAMPLES = 2_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Figures of parents [N], one for each window and side; `blocks` says which are drawn together."""

    shortfall: Array  # bps, fees and what is left at the end included
    vwap: Array  # bps of the filled lots against the market's average in the window; NaN where nothing was filled
    adverse: Array  # bps that the market moved against fills that had rested, ten seconds later; NaN where none had
    lots: Array
    filled: Array
    rested: Array  # lots that were filled as makers
    num_children: Array
    blocks: Blocks

    @property
    def fill_rate(self) -> float:
        return float(self.filled.sum() / self.lots.sum())

    @property
    def rested_share(self) -> float:
        return float(self.rested.sum() / max(1.0, self.filled.sum()))


@dataclass(slots=True)
class Judged:
    """Costs of one stock by algorithm and routing: SMART, or the venue that is used alone."""

    symbol: str
    days: list[str] = field(default_factory=list[str])
    costs: dict[tuple[Algorithm, str], Costs] = field(default_factory=dict[tuple[Algorithm, str], Costs])
    equal_fees: dict[str, Costs] = field(default_factory=dict[str, Costs])
    names: dict[str, str] = field(default_factory=dict[str, str])
    best: str = ""


def costs_of(day: MarketDay, results: Sequence[ParentResult], number: int) -> Costs:
    """Costs of the parents of a day; `number` tells days apart."""
    market = {one.window.start_ns: _market_average(day, one) for one in results}
    rows = [_row(day, one, market[one.window.start_ns]) for one in results]
    blocks = np.array(
        [number * 1000 + (one.window.start_ns - day.open_ns) // BLOCK_NS for one in results], np.int64
    )
    columns = np.array(rows, np.float64).T
    return Costs(*columns, blocks=blocks)


def joined(parts: Sequence[Costs]) -> Costs:
    """Costs of several days or sides as one."""
    names = ("shortfall", "vwap", "adverse", "lots", "filled", "rested", "num_children")
    columns = [np.concatenate([getattr(one, name) for one in parts]) for name in names]
    return Costs(*columns, blocks=np.concatenate([one.blocks for one in parts]))


def mean_interval(values: Array, blocks: Blocks, seed: int) -> tuple[float, float, float]:
    """Mean, and its interval by the block bootstrap; values that are not known are left out."""
    known = np.isfinite(values)
    if not known.any():
        return float("nan"), float("nan"), float("nan")
    sums, counts = _by_block(np.where(known, values, 0.0), blocks), _by_block(known.astype(float), blocks)
    drawn = _draws(len(sums), seed)
    means = sums[drawn].sum(axis=1) / np.maximum(1.0, counts[drawn].sum(axis=1))
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(sums.sum() / counts.sum()), float(low), float(high)


def gain_interval(smart: Costs, naive: Costs, seed: int) -> tuple[float, float, float]:
    """Share of the naive shortfall that is saved, parent by parent, and its interval."""
    assert (smart.blocks == naive.blocks).all(), "parents are compared one by one"
    saved = _by_block(naive.shortfall - smart.shortfall, naive.blocks)
    spent = _by_block(naive.shortfall, naive.blocks)
    drawn = _draws(len(saved), seed)
    base = abs(float(spent.sum()))
    # The bottom is held where it was found: a ratio of two noisy sums has no mean where the lower one may be near zero.
    shares = saved[drawn].sum(axis=1) / base
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(saved.sum() / base), float(low), float(high)


def best_single(single: Mapping[str, Costs], min_fill_rate: float) -> str:
    """The venue at which alone parents cost least on these very days, of those that filled nearly all of them.

    A venue that fills little looks cheap: what is left is charged at the end as if the displayed price held for all of
    it. Where no venue fills enough, that which fills most.
    """
    full = [name for name, one in single.items() if one.fill_rate >= min_fill_rate]
    if not full:
        return max(single, key=lambda name: single[name].fill_rate)
    return min(full, key=lambda name: float(single[name].shortfall.mean()))


def _row(day: MarketDay, result: ParentResult, market: float) -> tuple[float, ...]:
    window, sign, arrival = result.window, result.sign, result.arrival2 / 2
    bid, ask = day.best(window.end_ns)
    left = window.lots - result.filled
    end = (ask if sign > 0 else bid) + sign * EQUAL_FEE / TICK  # what is left takes there, at a full fee
    value = sum(lots * ticks for _, lots, ticks, _, _ in result.fills)
    cost = sign * (value + left * end - window.lots * arrival) + result.fees
    rested = [(at, lots) for at, lots, _, added, _ in result.fills if added]
    num_rested = sum(lots for _, lots in rested)
    moved = sum(sign * lots * (day.mid2(at) - day.mid2(at + MARK_OUT_NS)) / 2 for at, lots in rested)
    bps = 1e4 / arrival
    return (
        cost / window.lots * bps,
        sign * (value / result.filled - market) * bps if result.filled and market else float("nan"),
        moved / num_rested * bps if num_rested else float("nan"),
        float(window.lots),
        float(result.filled),
        float(num_rested),
        float(result.num_children),
    )


def _market_average(day: MarketDay, result: ParentResult) -> float:
    """The average price of trades on exchanges in a parent's window, ticks; 0 where there was none."""
    volume = value = 0.0
    for item in day.between(result.window.start_ns, result.window.end_ns):
        if isinstance(item, Trade) and item.venue != OFF_EXCHANGE:
            volume += item.size
            value += item.size * item.price
    return value / volume / TICK if volume else 0.0


def _by_block(values: Array, blocks: Blocks) -> Array:
    _, places = np.unique(blocks, return_inverse=True)
    return np.bincount(places, values).astype(np.float64)


def _draws(num: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, num, (NUM_RESAMPLES, num))
