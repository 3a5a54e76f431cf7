"""Every series' place in the arrays, and one instant's bars as columns; Forecaster feeds, experts read.

Owns the rules that decide what may enter a volatility: session gaps, wild prints and flat prices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import series_id
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, parse_duration

Array = NDArray[np.float64]
T = TypeVar("T", bound=np.generic)
Rows = slice | NDArray[np.intp]  # a slice where rows are neighbours: reading is then a view, not a copy

SIGMA_FLOOR = 1e-8  # log return; a tenth of a tick of anything traded, so that no scale is ever zero
WILD_RATIO = 10.0  # returns beyond this many usual deviations are cut before they reach a volatility
USUAL_DECAY = 0.98


@dataclass(frozen=True, slots=True)
class BarBatch:
    """One closed bar of each of n series, in natural-log units.

    Shapes: all [n], ordered by row. `moves` is the tradable return since the bar before (within the bar,
    where a session gap lies between); `returns` is the same with wild prints cut; `ranges` is
    ln(high/low), cut alike; `usual` is the deviation that was usual before this bar.
    """

    rows: Rows
    moves: Array
    returns: Array
    ranges: Array
    usual: Array


class Panel:
    """Names and rows of all series, with what is needed to turn their next bar into a return."""

    def __init__(self, session_gap_bars: float) -> None:
        self._session_gap_bars = session_gap_bars
        self.names: list[str] = []
        self._row_of: dict[str, int] = {}
        self._gap_ns: list[int] = []  # longest pause without a session gap, -1 where bars have no time length
        self._last_log_close: list[float] = []
        self._last_end_ns: list[int] = []
        self.num_bars = np.zeros(0, np.int64)
        self.path = np.zeros(0)  # sum of moves, [N]
        self._usual_var = np.zeros(0)

    def __len__(self) -> int:
        return len(self.names)

    def rows_of(self, names: Sequence[str]) -> NDArray[np.intp]:
        """The row of each series, −1 where it was never seen."""
        return np.array([self._row_of.get(name, -1) for name in names], np.intp)

    def enter(self, bars: Sequence[Bar]) -> BarBatch:
        """Take in bars that close at one instant. Raises: InvalidInput where a series comes twice."""
        found = [self._row(bar) for bar in bars]
        order = sorted(range(len(bars)), key=found.__getitem__)
        rows = np.array([found[i] for i in order], np.intp)
        if (rows[1:] == rows[:-1]).any():
            raise InvalidInput("two bars of one series close at one instant: feed them at two instants")
        prices = np.array([(b.open, b.high, b.low, b.close) for b in (bars[i] for i in order)]).reshape(-1, 4)
        logs = np.log(prices)
        before = np.empty(len(rows))
        for place, i in enumerate(order):
            row, bar = found[i], bars[i]
            gap_ns, last_ns = self._gap_ns[row], self._last_end_ns[row]
            fresh = last_ns < 0 or (gap_ns >= 0 and bar.start_ns - last_ns > gap_ns)
            before[place] = logs[place, 0] if fresh else self._last_log_close[row]
            self._last_log_close[row] = float(logs[place, 3])
            self._last_end_ns[row] = bar.end_ns
        return self._measure(as_rows(rows), logs[:, 3] - before, logs[:, 1] - logs[:, 2])

    def _measure(self, rows: Rows, moves: Array, ranges: Array) -> BarBatch:
        num_before = self.num_bars[rows]
        size = np.maximum(np.abs(moves), 0.6 * ranges)
        usual = np.where(num_before > 0, np.sqrt(self._usual_var[rows]), size)
        usual = np.maximum(usual, SIGMA_FLOOR)
        limit = WILD_RATIO * usual
        returns = np.clip(moves, -limit, limit)
        gain = np.maximum(1.0 / (num_before + 1.0), 1.0 - USUAL_DECAY)
        var = self._usual_var[rows]
        self._usual_var[rows] = var + gain * (returns * returns - var)
        self.num_bars[rows] = num_before + 1
        self.path[rows] += moves
        return BarBatch(rows, moves, returns, np.minimum(ranges, 1.7 * limit), usual)

    def _row(self, bar: Bar) -> int:
        name = series_id(bar.symbol, bar.interval)
        row = self._row_of.get(name)
        if row is None:
            row = self._row_of[name] = len(self.names)
            self.names.append(name)
            self._gap_ns.append(_gap_ns(bar.interval, self._session_gap_bars))
            self._last_log_close.append(0.0)
            self._last_end_ns.append(-1)
            self.num_bars = grown(self.num_bars, row + 1)
            self.path = grown(self.path, row + 1)
            self._usual_var = grown(self._usual_var, row + 1)
        return row

    def state(self) -> dict[str, Any]:
        n = len(self)
        return {
            "names": list(self.names),
            "gap_ns": list(self._gap_ns),
            "last_log_close": list(self._last_log_close),
            "last_end_ns": list(self._last_end_ns),
            "num_bars": self.num_bars[:n].copy(),
            "path": self.path[:n].copy(),
            "usual_var": self._usual_var[:n].copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.names = list(state["names"])
        self._row_of = {name: row for row, name in enumerate(self.names)}
        self._gap_ns = list(state["gap_ns"])
        self._last_log_close = list(state["last_log_close"])
        self._last_end_ns = list(state["last_end_ns"])
        self.num_bars = np.array(state["num_bars"], np.int64)
        self.path = np.array(state["path"], np.float64)
        self._usual_var = np.array(state["usual_var"], np.float64)


def as_rows(rows: NDArray[np.intp]) -> Rows:
    """The same rows as a slice, where they are neighbours in rising order."""
    n = len(rows)
    if n and rows[-1] - rows[0] == n - 1 and bool((rows[1:] > rows[:-1]).all()):
        return slice(int(rows[0]), int(rows[0]) + n)
    return rows


def grown(array: NDArray[T], num_rows: int, fill: float = 0.0) -> NDArray[T]:
    """The array with room for `num_rows` rows, doubling so that growth is cheap on the whole."""
    if num_rows <= len(array):
        return array
    capacity = max(num_rows, 2 * len(array), 8)
    larger = np.full((capacity, *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger


def _gap_ns(interval: str, session_gap_bars: float) -> int:
    try:
        length_ns = parse_duration(interval)
    except InvalidInput:
        return -1
    return int(length_ns * session_gap_bars) if length_ns < NS_PER_DAY else -1
