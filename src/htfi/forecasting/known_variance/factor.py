"""The known relative variance of each coming bar, as one factor on every expert.

A return is r = σ·g·z: g² is the bar's pattern over the week, times what its events and the gap before it make of it.
Experts read returns and ranges divided by g, and their quantiles over h bars are multiplied by the root of the mean of
g² over the bars ahead. So none of them need know of hours, weekends or releases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.errors import InvalidInput
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance.coming_bars import ComingBars, daily_ends, is_weekend, week_slots
from htfi.forecasting.known_variance.event_effects import EventEffects, combine
from htfi.forecasting.known_variance.event_table import tabulate
from htfi.forecasting.known_variance.priors import Priors, shipped
from htfi.forecasting.known_variance.weekly_pattern import MAX_BAR_NS, WeeklyPattern
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Rows = NDArray[np.intp]

VERSION = "1"
_NONE, _INTRADAY, _DAILY = 0, 1, 2  # what is known of a series' bars
_GAPS = ("gap_midweek", "gap_weekend", "gap_long")  # before a daily bar
_NEVER = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Contributions:
    """What moves the variance of bars of rows [n] with the same spans: m events and gaps, in the order of the bars.

    Shapes: sources, lags and bars [m]; variances [n, m].
    """

    rows: Rows
    sources: Instants
    lags: Instants
    bars: Instants
    variances: Array

    def combined(self, num_bars: int) -> Array:
        """The factors [n, B] of the variance of so many bars."""
        starts = np.flatnonzero(np.diff(self.bars, prepend=-1))
        found = np.ones((len(self.rows), num_bars))
        found[:, self.bars[starts]] = combine(self.variances, starts)
        return found

    def of_bar(self, bar: int) -> "_Contributions":
        """The part that concerns one bar."""
        there = self.bars == bar
        return _Contributions(
            self.rows, self.sources[there], self.lags[there], self.bars[there], self.variances[:, there]
        )


class KnownVariance:
    """g of N series' bars. Where nothing is known of a bar, its factor is 1 and nothing is computed."""

    def __init__(
        self,
        horizons: Sequence[int],
        session_gap_bars: float,
        events: Sequence[ScheduledEvent] = (),
        priors: Priors | None = None,
    ) -> None:
        self._horizons = np.array(horizons)
        self._longest = int(horizons[-1])
        self._gap_bars = session_gap_bars
        self._table = tabulate(events)
        self._effects = EventEffects(self._table, priors or shipped(), _GAPS)
        self._first_gap = len(self._table.kinds)
        self._hours, self._pattern = ComingBars(), WeeklyPattern()
        self._columns = SeriesColumns()
        self._columns.declare("kind", _NONE, np.int8)
        self._columns.declare("has_pattern", 0, np.int8)
        self._columns.declare("at_weekends", 0, np.int8)
        self._columns.declare("start_ns", _NEVER, np.int64)
        self._columns.declare("end_ns", _NEVER, np.int64)
        self._columns.declare("ahead", np.ones(len(horizons)))
        self._columns.declare("waiting", np.ones((len(horizons), self._longest)))
        self._num_known = 0  # series of whose bars anything is known
        self._num = 0
        self._closing: list[_Contributions] = []  # of the bars that closed last

    def grow(self, series: Sequence[tuple[str, str]]) -> None:
        """Make space for all series so far, by symbol and interval; those that are there stay as they are."""
        self._columns.grow(len(series))
        for row in range(self._num, len(series)):
            symbol, interval = series[row]
            length_ns = _length_ns(interval)
            kind = _DAILY if length_ns == NS_PER_DAY else _INTRADAY if 0 < length_ns < NS_PER_DAY else _NONE
            self._columns["kind"][row] = kind
            self._columns["has_pattern"][row] = 0 < length_ns <= MAX_BAR_NS
            self._num_known += kind != _NONE
            self._effects.add(row, symbol, max(length_ns, 1))
        self._num = len(series)
        if (self._columns["kind"] == _INTRADAY).any():
            self._hours.grow(len(series))
            self._pattern.grow(len(series))

    def of_closed(self, index: Rows, start_ns: Instants, end_ns: Instants) -> Array | None:
        """g [n] of bars that have just closed; None where it is 1 for all."""
        self._closing = []
        if not self._num_known:
            return None
        columns = self._columns
        rows, known = self._known(index)
        begins = np.stack([columns["start_ns"][rows], start_ns[known]], axis=1)
        ends = np.stack([columns["end_ns"][rows], end_ns[known]], axis=1)
        found, parts = self._variances(rows, begins, ends)
        self._closing = [part.of_bar(1) for part in parts]
        columns["start_ns"][rows], columns["end_ns"][rows] = begins[:, 1], ends[:, 1]
        columns["at_weekends"][rows] |= is_weekend(ends[:, 1])
        variance = np.ones(len(index))
        variance[known] = found[:, 1]
        return None if (variance == 1.0).all() else np.sqrt(variance)

    def ahead(self, index: Rows) -> Array | None:
        """The root of the mean of g² over the bars ahead [n, H], after those that closed; None where it is 1 for all."""
        if not self._num_known:
            return None
        columns = self._columns
        rows, known = self._known(index)
        kind = columns["kind"][rows]
        start_ns, end_ns = columns["start_ns"][rows], columns["end_ns"][rows]
        begins, ends = (np.empty((len(rows), 1 + self._longest), np.int64) for _ in range(2))
        begins[:, 0], ends[:, 0] = start_ns, end_ns
        daily, intraday = kind == _DAILY, kind == _INTRADAY
        if daily.any():
            ends[daily, 1:] = daily_ends(end_ns[daily], columns["at_weekends"][rows[daily]] > 0, self._longest)
            begins[daily, 1:] = ends[daily, :-1]
        if intraday.any():
            self._hours.learn(rows[intraday], start_ns[intraday])
            begins[intraday, 1:], ends[intraday, 1:] = self._hours.spans(
                rows[intraday], start_ns[intraday], end_ns[intraday], self._longest
            )
        found, _ = self._variances(rows, begins, ends)
        total = np.cumsum(found[:, 1:], axis=1)[:, self._horizons - 1]
        factors = np.ones((len(index), len(self._horizons)))
        factors[known] = np.sqrt(total / self._horizons)
        columns["ahead"][index] = factors
        return None if (factors == 1.0).all() else factors

    def standing(self, rows: slice | Rows) -> Array:
        """The newest `ahead` [n, H] of series."""
        return self._columns["ahead"][rows]

    def _known(self, index: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        known = self._columns["kind"][index] != _NONE
        return index[known], known

    def _variances(self, rows: Rows, begins: Instants, ends: Instants) -> tuple[Array, list[_Contributions]]:
        """g² [n, 1 + B] of bars, the first of which has closed and counts for what follows an event; and its parts."""
        columns, num_bars = self._columns, begins.shape[1]
        found = np.ones(begins.shape)
        if not len(rows):
            return found, []
        shows = columns["has_pattern"][rows] > 0
        if shows.any():
            logs = self._pattern.log_factors(rows[shows], week_slots(begins[shows, 1:]))
            found[shows, 1:] = exact.exp(logs)
        daily = columns["kind"][rows] == _DAILY
        spans = self._joined(daily, begins, ends)
        parts: list[_Contributions] = []
        for among in _alike(spans, ends, daily):
            part = self._contributions(rows[among], spans[among[0]], ends[among[0]], bool(daily[among[0]]))
            if part is not None:
                found[among] *= part.combined(num_bars)
                parts.append(part)
        return found, parts

    def _joined(self, daily: NDArray[np.bool_], begins: Instants, ends: Instants) -> Instants:
        """Where the returns of bars [n, 1 + B] begin: at the end of the bar before, but for the first of a session."""
        pause = begins[:, 1:] - ends[:, :-1]
        longest = (self._gap_bars * (ends[:, 1] - begins[:, 1])).astype(np.int64)
        joins = (daily[:, None] | (pause <= longest[:, None])) & (ends[:, :-1] != _NEVER)
        return np.concatenate([begins[:, :1], np.where(joins, ends[:, :-1], begins[:, 1:])], axis=1)

    def _contributions(self, rows: Rows, begins: Instants, ends: Instants, is_daily: bool) -> _Contributions | None:
        """What events and gaps do to the bars of rows with these spans [1 + B]; None where there are none."""
        num_bars, now_ns = len(ends), int(ends[0])
        places = self._table.within(int(begins[0]), int(ends[-1]), max(now_ns, 0))
        times, sources = self._table.time_ns[places], self._table.kind[places]
        bar = np.searchsorted(ends, times, "right")
        inside = (bar < num_bars) & (times >= begins[np.minimum(bar, num_bars - 1)])
        bar, sources = bar[inside], sources[inside]
        bars, lags, kinds = [bar, bar + 1], [np.zeros_like(bar), np.ones_like(bar)], [sources, sources]
        if is_daily and begins[0] != _NEVER:
            days = (np.diff(ends) + NS_PER_DAY // 2) // NS_PER_DAY
            after = np.flatnonzero(days > 1)
            bars.append(after + 1)
            lags.append(np.zeros_like(after))
            kinds.append(self._first_gap + np.minimum(days[after] - 2, len(_GAPS) - 1))
        at, lag, kind = (np.concatenate(each) for each in (bars, lags, kinds))
        order = np.argsort(at, kind="stable")
        order = order[(at[order] >= 1) & (at[order] < num_bars)]
        if not len(order):
            return None
        at, lag, kind = at[order], lag[order], kind[order]
        variances = self._effects.variances(rows, kind)[:, np.arange(len(kind)), lag]
        return _Contributions(rows, kind, lag, at, variances)

    def divided(self, batch: BarBatch) -> Array | None:
        """What the outcomes [n, H] that came with these bars would have been without what was known; None: the same."""
        if not self._num_known:
            return None
        at, across = batch.index[:, None], np.arange(len(self._horizons))
        waited = self._columns["waiting"][at, across, (batch.age[:, None] - self._horizons) % self._longest]
        return None if (waited == 1.0).all() else batch.outcomes / waited

    def learn(self, batch: BarBatch, ratio: Array) -> None:
        """Take in the bars that closed. `ratio` [n] is each return's size over half the 90% band that was forecast."""
        if not self._num_known:
            return
        columns, index = self._columns, batch.index
        columns["waiting"][index, :, batch.age % self._longest] = columns["ahead"][index]
        shows = columns["has_pattern"][index] > 0
        if shows.any():
            start_ns = batch.start_ns[shows]
            self._pattern.learn(
                index[shows], week_slots(start_ns), batch.end_ns[shows] - start_ns, batch.log_variance[shows]
            )
        place = np.full(columns.num_rows, -1)
        place[index] = np.arange(len(index))
        for part in self._closing:
            if len(part.sources):
                seen = ratio[place[part.rows]]
                self._effects.learn(part.rows, part.sources, part.lags, part.variances, seen)
        self._closing = []

    def state(self) -> dict[str, Any]:
        return {
            "columns": self._columns.state(),
            "hours": self._hours.state(),
            "pattern": self._pattern.state(),
            "effects": self._effects.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The series are those that `grow` was told of."""
        self._columns.restore(state["columns"])
        self._hours.restore(state["hours"])
        self._pattern.restore(state["pattern"])
        self._effects.restore(state["effects"])
        self._closing = []


def _alike(begins: Instants, ends: Instants, daily: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The rows [n] in groups with the same spans [n, B]."""
    if (begins == begins[0]).all() and (ends == ends[0]).all() and (daily == daily[0]).all():
        return [np.arange(len(begins), dtype=np.intp)]
    groups: dict[bytes, list[int]] = {}
    for row in range(len(begins)):
        key = begins[row].tobytes() + ends[row].tobytes() + daily[row].tobytes()
        groups.setdefault(key, []).append(row)
    return [np.array(rows, np.intp) for rows in groups.values()]


def _length_ns(interval: str) -> int:
    """0 for bars without a length in time."""
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 0
