"""Series of a run whose level is itself a volatility, such as the VIX, as regressors of other series' variance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.columns import SeriesColumns

Array = NDArray[np.float64]

_INDEX_MARKS = "^.$"
_LEVEL_GAIN = 0.005
_MIN_BARS = 22  # before that its usual level is not known
_RECENT_NS = 7 * NS_PER_DAY  # an older value says nothing of today


class Covariates:
    """How far each of C covariates lies above its slow level, in logs of variance, as known now.

    A covariate is read when its own bar comes, so it counts from the instant at which that bar was available.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._rows = np.full(len(names), -1, np.intp)
        self._columns = SeriesColumns()
        self._columns.declare("level", 0.0)
        self._columns.declare("away", 0.0)
        self._columns.declare("num", 0, np.int64)
        self._columns.declare("end_ns", 0, np.int64)
        self._columns.grow(len(names))

    def missing(self) -> list[str]:
        """Those of which no bar came so far."""
        return [
            name for name, num in zip(self._names, self._columns["num"].tolist(), strict=False) if not num
        ]

    def register(self, name: str, row: int) -> None:
        """A series has this row. `^VIX`, `.VIX` and `$VIX` are the VIX as sources mark it; the first to come counts."""
        for c, wanted in enumerate(self._names):
            if self._rows[c] < 0 and name.lstrip(_INDEX_MARKS) == wanted.lstrip(_INDEX_MARKS):
                self._rows[c] = row

    def read(self, index: NDArray[np.intp], ends_ns: NDArray[np.int64], log_closes: Array) -> Array:
        """Regressors [n, C] of the bars of rows `index` [n], rising, which end at `ends_ns` [n]: 0 where a covariate
        is unknown, or the series itself. `log_closes` [N] has the newest of all series."""
        found = np.zeros((len(index), len(self._names)))
        newest = int(ends_ns.max())
        for c, row in enumerate(self._rows.tolist()):
            if row < 0:
                continue
            place = int(np.searchsorted(index, row))
            is_here = place < len(index) and int(index[place]) == row
            if is_here:
                self._take(c, 2.0 * float(log_closes[row]), int(ends_ns[place]))
            if self._columns["num"][c] >= _MIN_BARS and newest - self._columns["end_ns"][c] <= _RECENT_NS:
                found[:, c] = self._columns["away"][c]
                if is_here:
                    found[place, c] = 0.0
        return found

    def _take(self, c: int, log_variance: float, end_ns: int) -> None:
        columns = self._columns
        num, level = int(columns["num"][c]), float(columns["level"][c])
        level += max(1.0 / (num + 1.0), _LEVEL_GAIN) * (log_variance - level)
        columns["level"][c], columns["away"][c] = level, log_variance - level
        columns["num"][c], columns["end_ns"][c] = num + 1, end_ns

    def state(self) -> dict[str, Any]:
        return {"names": list(self._names), "columns": self._columns.state()}

    def restore(self, state: dict[str, Any], row_of_name: dict[str, int]) -> None:
        """Raises: IntegrityError where the state was saved under other covariates."""
        if tuple(state["names"]) != self._names:
            raise IntegrityError(
                f"saved forecasts have the covariates {list(state['names'])}, not {list(self._names)}: start again"
            )
        self._columns.restore(state["columns"])
        self._rows[:] = -1
        for name, row in row_of_name.items():
            self.register(name, row)
