"""The kind of every series of a forecaster, the experts that each has, and the pools that share weights.

A pool holds the series of one kind among those of one interval: pool = group · number of kinds + kind.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.kinds import (
    AUTO,
    AUTO_EXPERTS,
    CLASSIFYING_BARS,
    EQUITY,
    EXPERTS_BY_KIND,
    INTRADAY,
    KINDS,
    WHY,
    KindChoice,
    bar_length_ns,
    by_volatility,
    is_yield,
    kind_of,
    trading_days,
)
from htfi.forecasting.panel import BarBatch, Panel

_UNKNOWN = -1
Whole = NDArray[np.int64]


class KindsOfSeries:
    """Kinds by row. A kind is known at a series' first bar; equity or wild follows from its volatility, later."""

    def __init__(self, names: Sequence[str], asked: Sequence[str]) -> None:
        """`names` of the K experts; `asked`, the names in the settings."""
        is_auto = AUTO in asked
        self._active = np.array(
            [
                [not is_auto or name in chosen or name in asked or name not in AUTO_EXPERTS for name in names]
                for chosen in EXPERTS_BY_KIND
            ]
        )  # [S, K]
        self.experts_by_kind = [
            tuple(name for name, is_on in zip(names, chosen, strict=True) if is_on) for chosen in self._active
        ]
        self._columns = SeriesColumns()
        self._columns.declare("kind", _UNKNOWN, np.int64)
        self._columns.declare("length_ns", 0, np.int64)
        self._columns.declare("days", 0.0)  # trading days that a bar holds; 0 for yields, which have no drift
        self._columns.declare("group", 0, np.int64)
        self._num = 0
        self.pool_sizes: dict[int, int] = {}
        self.is_needed: list[bool] = np.logical_and.reduce(self._active, axis=0).tolist()
        self._is_mixed = False  # one kind lacks an expert that another has

    def enter(self, panel: Panel) -> None:
        """Take in the series that the panel has and this has not."""
        self._columns.grow(len(panel))
        for row in range(self._num, len(panel)):
            symbol = panel.names[row].removesuffix(f"/{panel.intervals[row]}")
            self._columns["kind"][row] = kind_of(symbol, panel.intervals[row])
            length_ns = bar_length_ns(panel.intervals[row])
            self._columns["length_ns"][row] = length_ns
            self._columns["days"][row] = 0.0 if is_yield(symbol) else trading_days(length_ns)
            self._columns["group"][row] = panel.group_of(row)
        self._num = len(panel)
        self._count()

    def _count(self) -> None:
        kinds, groups = self._columns["kind"][: self._num], self._columns["group"][: self._num]
        num_pools = len(KINDS) * (int(groups.max(initial=-1)) + 1)
        counts = np.bincount(groups * len(KINDS) + kinds, minlength=num_pools)
        self.pool_sizes = {pool: int(counts[pool]) for pool in range(num_pools)}
        present = sorted(set(kinds.tolist()))
        active = self._active[present]
        self.is_needed = np.logical_or.reduce(active, axis=0).tolist()
        self._is_mixed = bool((active != active[:1]).any())

    def classify(self, bars: BarBatch) -> None:
        """Let the volatility of series that have just become old enough say whether they are wild."""
        first, again = CLASSIFYING_BARS
        is_due = (bars.age == first) | (bars.age == again)
        if not is_due.any():
            return
        rows = bars.index[is_due]
        before = self._columns["kind"][rows]
        after = by_volatility(before, bars.usual[is_due], self._columns["length_ns"][rows])
        if (after != before).any():
            self._columns["kind"][rows] = after
            self._count()

    def pools(self, index: NDArray[np.intp]) -> Whole:
        """The pool of each row [n]."""
        return self._columns["group"][index] * len(KINDS) + self._columns["kind"][index]

    def idle_among_needed(self, index: NDArray[np.intp]) -> NDArray[np.bool_] | None:
        """`idle`, where one of the experts that some series' kind has may be; None where none is."""
        return self.idle(index) if self._is_mixed else None

    def are_known(self, index: NDArray[np.intp], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Where all that was forecast of a row's outcome is known [n, H], of `known` [n, 1 + K, H]: of the mix, and of
        each expert of its kind."""
        if compiled.core is not None:
            matured = np.empty((len(known), known.shape[2]), np.bool_)
            compiled.core.fill_matured(
                known.view(np.uint8), index, self._columns["kind"], self._active.view(np.uint8),
                matured.view(np.uint8),
            )  # fmt: skip
            return matured
        mine = known[:, 1:] | self.idle(index)[:, :, None]
        return known[:, 0] & np.logical_and.reduce(mine, axis=1)

    def idle(self, index: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Where an expert is not among those of a row's kind [n, K]."""
        return ~self._active[self._columns["kind"][index]]

    def are_intraday(self, index: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which rows [n] have bars of a part of a day."""
        return self._columns["kind"][index] == INTRADAY

    def drift_days(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """The trading days [n] that a bar of each row holds; 0 for series of which no drift is expected: pairs of
        currencies, yields, wild ones, parts of a day, and bars without a length."""
        return np.where(self._columns["kind"][index] == EQUITY, self._columns["days"][index], 0.0)

    def choices(self, names: Sequence[str]) -> list[KindChoice]:
        """What was chosen for each kind that some series has; `names` are the series by row."""
        kinds = self._columns["kind"][: self._num]
        found: list[KindChoice] = []
        for place, kind in enumerate(KINDS):
            rows = np.flatnonzero(kinds == place).tolist()
            if rows:
                found.append(
                    KindChoice(kind, WHY[place], len(rows), names[rows[0]], self.experts_by_kind[place])
                )
        return found

    def state(self) -> dict[str, Any]:
        return {"num": self._num, "columns": self._columns.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["columns"])
        self._num = int(state["num"])
        self._count()
