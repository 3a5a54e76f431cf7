"""The rows of all series in the arrays, and one instant's bars as columns.

Owns the rules on what may enter a volatility: session gaps, splits, outliers, flat and impossible prices.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.decision import series_id
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import DEFAULT_COVARIATES
from htfi.forecasting.covariates import Covariates
from htfi.forecasting.renames import RenameFound, find_predecessor
from htfi.forecasting.splits import (
    CANDIDATE_BY_FAR,
    MAX_LISTED,
    MAX_SPIKE,
    VOLUME_GAIN,
    SplitFound,
    find_splits,
    follow_volume,
    split_of,
)
from htfi.forecasting.trading_days import TradingDays

Array = NDArray[np.float64]
FactorsOfClosed = Callable[
    [NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]], tuple[Array, Array] | None
]
Rows = slice | NDArray[np.intp]  # a slice where rows are neighbours: reading is then a view, not a copy

SIGMA_FLOOR = 1e-8  # log return: far below a tick of anything traded, so that no scale is ever zero
_OUTLIER_RATIO = 10.0  # usual deviations beyond which a return is cut before it reaches a volatility
_OUTLIER_MIN_BARS = 20  # before that, and while the price has not moved, no return counts as an outlier
_TICK = 1e-6  # log return: below a tick of what trades
_USUAL_GAIN = 0.02
_UNCHANGED_GAIN = 0.002  # an unchanged price says little of its coming moves
_PARKINSON = 1.0 / (4.0 * math.log(2.0))  # E[range²] = 4 ln 2 · σ² (Parkinson 1980)
RENEWAL_BARS = 10
_NO_LENGTH = -1
_FIELDS = Bar.__struct_fields__


@dataclass(frozen=True, slots=True)
class BarBatch:
    """One closed bar of each of n series, ordered by row, in natural-log units.

    Shapes: all [n] but `outcomes` [n, H] and `covariates` [n, C]. `age` counts the bars before this one, from
    the first in which the price moved: a price that never has gives nothing to forecast by. `returns` is
    the move since the bar before (within the bar after a session gap), cut at ten usual deviations.
    `variance` is Parkinson's from the true range, which spans the close before, and the squared return
    where high equals low; never below a hundredth of the usual. `within_log_variance` is the same of the bar's own
    range, without the close before. `covariates` are those of `Covariates.read`. `outcomes` is the uncut move over the
    last h bars, NaN while there are fewer. `due` marks the rows whose fits and shapes are renewed with
    this bar: every tenth, in a rota by name, so that work is even. `group` numbers the bars' intervals in the
    order they were first seen: series of one group can be held beside each other. `volume` is as it was given.
    """

    rows: Rows
    index: NDArray[np.intp]
    age: NDArray[np.int64]
    returns: Array
    variance: Array
    log_variance: Array
    within_log_variance: Array
    usual: Array
    outcomes: Array
    due: NDArray[np.bool_]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    group: NDArray[np.int64]
    volume: Array
    covariates: Array


class Panel:
    """Names and rows of all series, with what is needed to turn their next bar into a return."""

    def __init__(
        self,
        horizons: Sequence[int],
        session_gap_bars: float,
        covariates: Sequence[str] = DEFAULT_COVARIATES,
    ) -> None:
        self._horizons = np.array(horizons)
        self._covariates = Covariates(covariates)
        self._session_gap_bars = session_gap_bars
        self._row_of: dict[tuple[str, str], int] = {}
        self._row_of_name: dict[str, int] = {}
        self.names: list[str] = []  # the id of each series, by row
        self.intervals: list[str] = []  # by row
        self._starts: list[RenameFound] = []
        self.splits: list[SplitFound] = []  # that prices were not adjusted for, since the start
        self._days = TradingDays()
        self._group_of: dict[str, int] = {}
        self._group_sizes: dict[int, int] = {}
        self._columns = SeriesColumns()
        self._columns.declare("group", 0, np.int64)
        self._columns.declare("num_bars", 0, np.int64)
        self._columns.declare("gap_ns", _NO_LENGTH, np.int64)  # longest pause within a session
        self._columns.declare("rota", 0, np.int64)
        self._columns.declare("end_ns", 0, np.int64)
        self._columns.declare("log_close", np.nan)
        self._columns.declare("usual_var", 0.0)
        self._columns.declare("usual_volume", 0.0)
        self._columns.declare("path", 0.0)
        self._columns.declare("paths", np.zeros(horizons[-1]))

    def __len__(self) -> int:
        return len(self._row_of)

    def rows_of(self, names: Sequence[str]) -> NDArray[np.intp]:
        """The row [n] of each series id, −1 where it was never seen."""
        return np.array([self._row_of_name.get(name, -1) for name in names], np.intp)

    def rows_of_bars(self, bars: Sequence[Bar]) -> list[int]:
        """The row of each bar's series, −1 where it was never seen."""
        return [self._row_of.get((bar.symbol, bar.interval), -1) for bar in bars]

    @property
    def missing_covariates(self) -> list[str]:
        """Those of which no bar came so far."""
        return self._covariates.missing()

    def ends_ns(self, index: NDArray[np.intp]) -> NDArray[np.int64]:
        """When the newest bar of each row [n] ended."""
        return self._columns["end_ns"][index]

    def paths_of(self, index: NDArray[np.intp]) -> Array:
        """The sum of all moves of each row [n] so far: its log price, less where it began."""
        return self._columns["path"][index]

    def group_of(self, row: int) -> int:
        """The group of a row's interval (`BarBatch.group`)."""
        return self._group_of[self.intervals[row]]

    @property
    def series(self) -> list[tuple[str, str]]:
        """Symbol and interval, by row."""
        return list(self._row_of)

    @property
    def group_sizes(self) -> dict[int, int]:
        """How many series each group has."""
        return self._group_sizes

    def age(self, row: int) -> int:
        """How many bars came before the newest, counted as `BarBatch.age` is."""
        return int(self._columns["num_bars"][row]) - 1

    def enter(self, bars: Sequence[Bar], factors: FactorsOfClosed | None = None) -> BarBatch | None:
        """Take in bars that close at one instant. A bar without a positive, finite close changes nothing.

        Returns and ranges that enter volatilities are divided by those of `factors`, if any; outcomes are not.
        Raises: InvalidInput where a series comes twice.
        """
        found = self.rows_of_bars(bars)
        kept = [place for place, bar in enumerate(bars) if 0.0 < bar.close < math.inf]
        if not kept:
            return None
        fresh: list[int] = []
        if min(found) < 0:
            for place in kept:
                if found[place] < 0:
                    found[place] = self._register(bars[place].symbol, bars[place].interval)
                    fresh.append(place)
        kept.sort(key=found.__getitem__)
        index = np.array([found[place] for place in kept], np.intp)
        if len(set(index.tolist())) < len(index):
            raise InvalidInput("two bars of one series close at one instant: give each its own instant")
        usable, rows = [bars[place] for place in kept], as_rows(index)
        self._undo_splits(usable, rows, index)
        if fresh and len(fresh) < len(self):
            self._note_predecessors([bars[place] for place in fresh], index)
        age, starts_ns, ends_ns, volume, moves, ranges, withins = self._read(usable, rows, index)
        self._days.enter(index, usable[0].end_ns)
        known = factors(index, starts_ns, ends_ns) if factors is not None else None
        measured = self._measure(rows, index, age, moves, ranges, withins, known)
        return BarBatch(
            rows=rows,
            index=index,
            age=age,
            **measured,
            due=(age + self._columns["rota"][rows]) % RENEWAL_BARS == 0,
            start_ns=starts_ns,
            end_ns=ends_ns,
            group=self._columns["group"][rows].copy(),
            volume=volume,
            covariates=self._covariates.read(index, ends_ns, self._columns["log_close"]),
        )

    def _undo_splits(self, bars: list[Bar], rows: Rows, index: NDArray[np.intp]) -> None:
        """Restate the last close of a series whose prices are not adjusted for a split that comes with its new bar.

        Within a day prices are not looked at: a session's first return counts from its own open.
        """
        columns = self._columns
        if compiled.core is not None and not compiled.core.follow_volumes(
            bars, index, columns["gap_ns"], columns["log_close"], columns["usual_volume"], _NO_LENGTH,
            CANDIDATE_BY_FAR, VOLUME_GAIN, MAX_SPIKE,
        ):  # fmt: skip
            return
        age = columns["num_bars"][rows]
        if not (columns["gap_ns"][rows] == _NO_LENGTH).any():
            return
        usual_volume = columns["usual_volume"][rows]
        found = find_splits(bars, columns["log_close"][rows], columns["usual_var"][rows], usual_volume, age)
        volume = np.array([bar.volume for bar in bars], np.float64)
        columns["usual_volume"][rows] = follow_volume(usual_volume, volume)
        for place, log_ratio in found:
            if columns["gap_ns"][index[place]] != _NO_LENGTH:
                continue
            columns["log_close"][index[place]] -= log_ratio
            if len(self.splits) < MAX_LISTED:
                self.splits.append(split_of(bars[place], log_ratio))

    def _note_predecessors(self, first_bars: list[Bar], index: NDArray[np.intp]) -> None:
        """Note series without a bar now, at whose last price another begins; bars of a day or longer alone."""
        columns, num = self._columns, len(self)
        absent = np.ones(num, np.bool_)
        absent[index] = False
        for bar in first_bars:
            row = self._row_of[bar.symbol, bar.interval]
            if columns["gap_ns"][row] != _NO_LENGTH or len(self._starts) >= MAX_LISTED:
                continue
            same = columns["group"][:num] == columns["group"][row]
            ends_ns: NDArray[np.int64] = columns["end_ns"][:num]
            last, usual_variance = columns["log_close"][:num], columns["usual_var"][:num]
            old = find_predecessor(bar, ends_ns, last, usual_variance, absent & same)
            if old >= 0:
                symbol, end_ns = list(self._row_of)[old][0], int(columns["end_ns"][old])
                self._starts.append(RenameFound(symbol, bar.symbol, bar.interval, old, end_ns, bar.end_ns))

    @property
    def renames(self) -> list[RenameFound]:
        """Series that ended where another began, as far as they have not come again."""
        ends_ns = self._columns["end_ns"]
        return [one for one in self._starts if int(ends_ns[one.old_row]) == one.old_end_ns]

    @property
    def price_faults(self) -> list[str]:
        """A line on each split that prices were not adjusted for, and on each of `renames`, with the days of their
        bars."""
        days, lines = self._days, list[str]()
        for split in self.splits:
            row = self._row_of[split.symbol, split.interval]
            lines.append(split.line(days.day(row, split.end_ns), may_be_closes=days.may_be_closes(row)))
        for one in self.renames:
            row, new = one.old_row, self._row_of[one.new, one.interval]
            lines.append(one.line(days.day(row, one.old_end_ns), days.day(new, one.new_end_ns, row)))
        return lines

    def _read(self, bars: list[Bar], rows: Rows, index: NDArray[np.intp]) -> tuple[NDArray[Any], ...]:
        """Ages, starts and ends in nanoseconds, volumes, moves, ranges, and those within the bar alone, [n] of bars
        ordered by row."""
        columns, n = self._columns, len(bars)
        if compiled.core is not None:
            age, starts_ns, ends_ns = (np.empty(n, np.int64) for _ in range(3))
            volume, moves, ranges, withins = (np.empty(n) for _ in range(4))
            names = ("num_bars", "gap_ns", "end_ns", "log_close")
            compiled.core.read_bars(
                bars, index, starts_ns, ends_ns, volume, moves, ranges, withins, age,
                *(columns[name] for name in names), _NO_LENGTH,
            )  # fmt: skip
            return age, starts_ns, ends_ns, volume, moves, ranges, withins
        field = dict(zip(_FIELDS, zip(*map(msgspec.structs.astuple, bars), strict=True), strict=True))
        prices = np.array([field["open"], field["high"], field["low"], field["close"]], np.float64)
        known = (prices > 0.0) & np.isfinite(prices)
        logs = exact.log(np.where(known, prices, prices[3]))  # [4, n]
        starts_ns, ends_ns = (np.array(field[name], np.int64) for name in ("start_ns", "end_ns"))
        volume = np.array(field["volume"], np.float64)
        age = columns["num_bars"][rows].copy()
        gap_ns = columns["gap_ns"][rows]
        last = columns["log_close"][rows]
        fresh = np.isnan(last) | ((gap_ns != _NO_LENGTH) & (starts_ns - columns["end_ns"][rows] > gap_ns))
        before = np.where(fresh, logs[0], last)
        top, bottom = logs.max(axis=0), logs.min(axis=0)
        ranges = np.maximum(top, before) - np.minimum(bottom, before)
        columns["end_ns"][rows] = ends_ns
        columns["log_close"][rows] = logs[3]
        has_range = logs[1] > logs[2]
        ranges, withins = np.where(has_range, ranges, 0.0), np.where(has_range, top - bottom, 0.0)
        return age, starts_ns, ends_ns, volume, logs[3] - before, ranges, withins

    def _measure(
        self,
        rows: Rows,
        index: NDArray[np.intp],
        age: NDArray[np.int64],
        moves: Array,
        ranges: Array,
        withins: Array,
        factors: tuple[Array, Array] | None,
    ) -> dict[str, Array]:
        """The fields of a batch that follow from these moves and ranges."""
        columns = self._columns
        uncut = moves
        if factors is not None:
            moves, ranges, withins = moves / factors[0], ranges / factors[1], withins / factors[1]
        if compiled.core is not None:
            return self._measure_compiled(compiled.core, index, age, moves, ranges, withins, uncut)
        usual_var = columns["usual_var"][rows]
        size = np.maximum(np.abs(moves), math.sqrt(_PARKINSON) * ranges)
        usual = np.maximum(np.where(age > 0, np.sqrt(usual_var), size), SIGMA_FLOOR)
        known = (age >= _OUTLIER_MIN_BARS) & (usual > _TICK)
        limit = np.where(known, _OUTLIER_RATIO * usual, np.inf)
        returns = np.minimum(np.maximum(moves, -limit), limit)
        moved = (moves != 0.0) | (ranges > 0.0)
        columns["num_bars"][rows] = np.where(moved | (age > 0), age + 1, 0)
        gain = np.maximum(1.0 / (age + 1.0), np.where(moved, _USUAL_GAIN, _UNCHANGED_GAIN))
        columns["usual_var"][rows] = usual_var + gain * (returns * returns - usual_var)
        variance = np.where(ranges > 0.0, _PARKINSON * ranges * ranges, returns * returns)
        variance = np.minimum(np.maximum(variance, 0.01 * usual * usual), limit * limit)
        within = np.where(withins > 0.0, _PARKINSON * withins * withins, variance)
        within = np.minimum(np.maximum(within, 0.01 * usual * usual), limit * limit)
        path = columns["path"][rows] + uncut
        columns["path"][rows] = path
        paths, longest = columns["paths"], int(self._horizons[-1])
        slots = (age[:, None] - self._horizons) % longest
        away = path[:, None] - paths[index[:, None], slots]
        paths[index, age % longest] = path
        return {
            "returns": returns,
            "variance": variance,
            "log_variance": exact.log(variance),
            "within_log_variance": exact.log(within),
            "usual": usual,
            "outcomes": np.where(age[:, None] >= self._horizons, away, np.nan),
        }

    def _measure_compiled(
        self,
        core: Any,
        index: NDArray[np.intp],
        age: NDArray[np.int64],
        moves: Array,
        ranges: Array,
        withins: Array,
        uncut: Array,
    ) -> dict[str, Array]:
        columns, n = self._columns, len(index)
        names = ("returns", "variance", "log_variance", "within_log_variance", "usual")
        measured: dict[str, Array] = {name: np.empty(n) for name in names}
        measured["outcomes"] = np.empty((n, len(self._horizons)))
        core.measure(
            moves, ranges, withins, uncut, index, age, self._horizons, columns["usual_var"], columns["num_bars"],
            columns["path"], columns["paths"], *measured.values(), _TICK, SIGMA_FLOOR, _OUTLIER_MIN_BARS,
            _OUTLIER_RATIO, _PARKINSON, _USUAL_GAIN, _UNCHANGED_GAIN,
        )  # fmt: skip
        return measured

    def _register(self, symbol: str, interval: str) -> int:
        if (symbol, interval) in self._row_of:  # twice in one call: the caller refuses it
            return self._row_of[symbol, interval]
        row, name = len(self._row_of), series_id(symbol, interval)
        self._row_of[symbol, interval] = self._row_of_name[name] = row
        self._covariates.register(name, row)
        self.names.append(name)
        self.intervals.append(interval)
        self._days.add(symbol, interval)
        self._columns.grow(row + 1)
        self._columns["group"][row] = self._join_group(interval)
        self._columns["gap_ns"][row] = _gap_ns(interval, self._session_gap_bars)
        self._columns["rota"][row] = zlib.crc32(name.encode()) % RENEWAL_BARS
        return row

    def _join_group(self, interval: str) -> int:
        group = self._group_of.setdefault(interval, len(self._group_of))
        self._group_sizes[group] = self._group_sizes.get(group, 0) + 1
        return group

    def state(self) -> dict[str, Any]:
        return {
            "series": [list(name) for name in self._row_of],
            "columns": self._columns.state(),
            "covariates": self._covariates.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["columns"])
        self._row_of = {(symbol, interval): row for row, (symbol, interval) in enumerate(state["series"])}
        if len(self._row_of) > self._columns.num_rows:
            raise IntegrityError("saved forecasting state names more series than it holds: start again")
        self._row_of_name = {series_id(*name): row for name, row in self._row_of.items()}
        self._covariates.restore(state["covariates"], self._row_of_name)
        self.names = list(self._row_of_name)
        self.intervals = [interval for _, interval in self._row_of]
        self._group_of, self._group_sizes, self._days = {}, {}, TradingDays()
        for symbol, interval in self._row_of:
            self._join_group(interval)
            self._days.add(symbol, interval)


def as_rows(rows: NDArray[np.intp]) -> Rows:
    """The same rows as a slice, where they are neighbours in rising order."""
    n = len(rows)
    if n and bool((rows[1:] - rows[:-1] == 1).all()):
        return slice(int(rows[0]), int(rows[0]) + n)
    return rows


def to_index(rows: Rows, num_rows: int) -> NDArray[np.intp]:
    """Rows of so many as numbers."""
    return np.arange(*rows.indices(num_rows)) if isinstance(rows, slice) else rows


def _gap_ns(interval: str, session_gap_bars: float) -> int:
    try:
        length_ns = parse_duration(interval)
    except InvalidInput:
        return _NO_LENGTH
    return int(length_ns * session_gap_bars) if length_ns < NS_PER_DAY else _NO_LENGTH
