"""Coverage, CRPS and the left tail in the cells that people look at, and which cells are off.

`htfi eval returns` and a run's report make `CellSums`, one from arrays, the other decision by decision; `tabulate`
turns them into rows. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.evaluation.cells import (
    Cells,
    CellShares,
    block_length,
    ratios_of_sums,
    shares_of_sums,
)
from htfi.forecasting.evaluation.differences import holm
from htfi.forecasting.scores import integration_weights, pinball

Array = NDArray[np.float64]

OFF_CHANCE = 0.05
_STATED = {"coverage 90": 0.9, "below q05": 0.05, "below q01": 0.01}
_NEAR = {"coverage 90": (0.88, 0.92), "below q05": (0.04, 0.06), "below q01": (0.005, 0.015)}
RULE = (
    "A cell is off where its share is outside 88–92% (4–6% below the 5% quantile, .5–1.5% below the 1% quantile) and "
    "that has a chance under 5% after Holm's correction for all cells and shares of the table. Intervals and chances "
    "come from sums over blocks of instants, at least 25 and three horizons long, all series of a block together "
    "(Korn and Graubard 1998). Kupiec: the share of misses against the stated one, on the effective number of "
    "forecasts; Christoffersen: the share of misses among forecasts whose last one without overlap missed."
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
THIRDS = ("narrow third", "middle third", "wide third")


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """One way to divide forecasts: labels of its cells, and the cell of each forecast [T, N] or [T, 1], −1 for none."""

    name: str
    labels: tuple[str, ...]
    cells: Cells


@dataclass(frozen=True, slots=True, eq=False)
class ForecastOutcomes:
    """What became of the forecasts [T, N] of one horizon; NaN where there is no outcome.

    `held90`, `below05`, `below01` are 1 or 0; `crps` and `tail` losses of the forecast, `other_crps` and `other_tail`
    those of another forecaster, NaN where it had none. `tail` is the CRPS weighted by (1 − τ)² (`tail_loss`).
    """

    held90: Array
    below05: Array
    below01: Array
    crps: Array
    tail: Array
    other_crps: Array
    other_tail: Array


@dataclass(slots=True, eq=False)
class CellSums:
    """Sums over forecasts by cell and block, all [C, B]; blocks are as long as `cells.block_length` says.

    `again05` and `after05` count misses below the 5% quantile among forecasts whose predecessor without overlap missed
    too, and those forecasts; so at 1%. `paired_*` are sums where the other forecaster had a loss.
    """

    num: Array
    held90: Array
    below05: Array
    below01: Array
    after05: Array
    again05: Array
    after01: Array
    again01: Array
    paired_crps: Array
    other_crps: Array
    paired_tail: Array
    other_tail: Array


@dataclass(frozen=True, slots=True)
class CellRow:
    """One cell of a table: shares with 95% intervals, chances of tests, ratios of losses to the other forecaster's.

    `off` names the shares that are off; `ends` are the ends of the intervals of the three shares. NaN: unknown.
    """

    dimension: str
    cell: str
    num: int
    num_effective: float
    coverage90: float
    coverage90_ends: tuple[float, float]
    below05: float
    below05_ends: tuple[float, float]
    below01: float
    below01_ends: tuple[float, float]
    kupiec05: float
    kupiec01: float
    again05: float
    christoffersen05: float
    again01: float
    christoffersen01: float
    crps_ratio: float
    crps_ends: tuple[float, float]
    tail_ratio: float
    off: tuple[str, ...]


def tail_loss(quantiles: Array, outcome: Array, levels: Array) -> Array:
    """2∫(1 − τ)²ρ_τ dτ [...] of quantiles [..., Q]: the CRPS with its weight on the left tail.

    Source: Gneiting and Ranjan (2011), eq. 17 and table 4.
    """
    weights = 2.0 * integration_weights(levels.tolist()) * (1.0 - levels) ** 2
    return (pinball(quantiles, outcome, levels) * weights).sum(axis=-1)


def sum_cells(outcomes: ForecastOutcomes, dimensions: Sequence[Dimension], horizon: int) -> CellSums:
    """Sums over all cells of the dimensions, in their order."""
    num_instants = len(outcomes.held90)
    blocks = np.arange(num_instants) // block_length(horizon, num_instants)
    num_blocks = int(blocks[-1]) + 1 if num_instants else 1
    known = np.isfinite(outcomes.held90)
    paired = np.isfinite(outcomes.other_crps) & known
    before05, before01 = (_before(values, horizon) for values in (outcomes.below05, outcomes.below01))
    values = (
        known.astype(np.float64),
        outcomes.held90,
        outcomes.below05,
        outcomes.below01,
        before05,
        before05 * outcomes.below05,
        before01,
        before01 * outcomes.below01,
        *(
            np.where(paired, each, 0.0)
            for each in (outcomes.crps, outcomes.other_crps, outcomes.tail, outcomes.other_tail)
        ),
    )
    chosen = [np.where(known, each, 0.0)[known] for each in values]
    block = np.broadcast_to(blocks[:, None], known.shape)[known]
    sums: list[list[Array]] = [[] for _ in values]
    for dimension in dimensions:
        cell = np.broadcast_to(dimension.cells, known.shape)[known].astype(np.int64)
        inside = cell >= 0
        place, size = (cell * num_blocks + block)[inside], len(dimension.labels) * num_blocks
        for total, each in zip(sums, chosen, strict=True):
            found = np.asarray(np.bincount(place, weights=each[inside], minlength=size), np.float64)
            total.append(found.reshape(-1, num_blocks))
    return CellSums(*(np.concatenate(total) for total in sums))


def _before(missed: Array, horizon: int) -> Array:
    """1 where the forecast of the same series `horizon` of its bars earlier missed, 0 elsewhere, [T, N]."""
    before = np.zeros_like(missed)
    for n in range(missed.shape[1]):
        when = np.flatnonzero(np.isfinite(missed[:, n]))
        before[when[horizon:], n] = missed[when[:-horizon], n]
    return before


def tabulate(cells: Sequence[tuple[str, str]], sums: CellSums) -> list[CellRow]:
    """A row for each cell, named (dimension, label), that has a forecast."""
    num = sums.num.sum(axis=1).astype(np.int64)
    shares = _shares_of_each((sums.held90, sums.below05, sums.below01), sums.num, num)
    again = [
        shares_of_sums(hits, counts, counts.sum(axis=1).astype(np.int64), _inside(of.share), with_ends=False)
        for hits, counts, of in (
            (sums.again05, sums.after05, shares[1]),
            (sums.again01, sums.after01, shares[2]),
        )
    ]
    crps = ratios_of_sums(sums.paired_crps, sums.other_crps, num)
    tail = ratios_of_sums(sums.paired_tail, sums.other_tail, num)
    chances = np.array(holm(np.concatenate([share.p for share in shares]).tolist())).reshape(3, -1)
    rows: list[CellRow] = []
    for c, (dimension, label) in enumerate(cells):
        if not num[c]:
            continue
        ends = [(float(share.low[c]), float(share.high[c])) for share in shares]
        off = tuple(
            name
            for k, (name, (low, high)) in enumerate(_NEAR.items())
            if chances[k, c] < OFF_CHANCE and not low <= shares[k].share[c] <= high
        )
        rows.append(
            CellRow(
                dimension, label, int(num[c]), float(shares[0].num_effective[c]),
                float(shares[0].share[c]), ends[0], float(shares[1].share[c]), ends[1],
                float(shares[2].share[c]), ends[2], float(shares[1].p[c]), float(shares[2].p[c]),
                float(again[0].share[c]), float(again[0].p[c]), float(again[1].share[c]), float(again[1].p[c]),
                float(crps.ratio[c]), (float(crps.low[c]), float(crps.high[c])), float(tail.ratio[c]), off,
            )
        )  # fmt: skip
    return rows


def _shares_of_each(hits: Sequence[Array], counts: Array, num: NDArray[np.int64]) -> list[CellShares]:
    """What `shares_of_sums` says of several things that are counted alike, in the order of `_STATED`: in one search."""
    stated = np.repeat(list(_STATED.values()), len(num))
    several = len(hits)
    found = shares_of_sums(np.concatenate(hits), np.tile(counts, (several, 1)), np.tile(num, several), stated)
    columns = [
        np.split(column, several)
        for column in (found.num, found.share, found.num_effective, found.low, found.high, found.p)
    ]
    return [CellShares(*each) for each in zip(*columns, strict=True)]


def names_of(dimensions: Sequence[Dimension]) -> list[tuple[str, str]]:
    """(dimension, label) of each cell, in the order of `sum_cells`."""
    return [(dimension.name, label) for dimension in dimensions for label in dimension.labels]


def calendar_dimensions(made_ns: NDArray[np.int64], *, intraday: bool) -> list[Dimension]:
    """Year, weekday and, of bars shorter than a day, hour (UTC) at which forecasts [T, 1] or [T, N] begin."""
    at = made_ns if made_ns.ndim == 2 else made_ns[:, None]
    days = at.astype("datetime64[ns]").astype("datetime64[D]").astype(np.int64)
    years = at.astype("datetime64[ns]").astype("datetime64[Y]").astype(np.int64) + 1970
    first, last = (int(years.min()), int(years.max())) if years.size else (0, -1)
    found = [
        Dimension("year", tuple(str(year) for year in range(first, last + 1)), years - first),
        Dimension("weekday", WEEKDAYS, (days + 3) % 7),  # 1 January 1970 was a Thursday
    ]
    if intraday:
        hours = at.astype("datetime64[ns]").astype("datetime64[h]").astype(np.int64) % 24
        found.append(Dimension("hour", tuple(f"{hour:02d}h" for hour in range(24)), hours))
    return found


def tercile_dimension(width: Array) -> Dimension:
    """Thirds of each series' own forecasts by the width [T, N] of their band, NaN for none."""
    known = np.isfinite(width)
    order = np.argsort(np.where(known, width, np.inf), axis=0, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(width))[:, None], axis=0)
    third = (3 * rank) // np.maximum(known.sum(axis=0), 1)
    return Dimension("volatility", THIRDS, np.where(known, np.minimum(third, 2), -1))


def _inside(share: Array) -> Array:
    """A share as the chance of a test, strictly between 0 and 1."""
    return np.clip(np.nan_to_num(share, nan=0.5), 1e-9, 1.0 - 1e-9)
