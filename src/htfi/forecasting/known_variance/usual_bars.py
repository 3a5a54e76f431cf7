"""What is known of coming bars without events: when they begin and end, and how the hours of the week, quiet days and
holidays change their variance."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.decision import EventFactor
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance import compiled
from htfi.forecasting.known_variance.coming_bars import ComingBars, daily_ends, is_weekend, week_slots
from htfi.forecasting.known_variance.event_table import ScheduledLines
from htfi.forecasting.known_variance.prepared_bars import Mask, NextBars
from htfi.forecasting.known_variance.priors import Priors
from htfi.forecasting.known_variance.quiet_days import KINDS as QUIET_KINDS
from htfi.forecasting.known_variance.quiet_days import QuietDays
from htfi.forecasting.known_variance.quiet_hours import KIND as CLOSED_HOURS
from htfi.forecasting.known_variance.quiet_hours import are_quiet, may_hold
from htfi.forecasting.known_variance.relations import (
    FX,
    HOME,
    OTHER_ASSETS,
    VOLATILITY,
    asset_class,
    currencies_of,
)
from htfi.forecasting.known_variance.weekly_pattern import MAX_BAR_NS, WeeklyPattern
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Rows = NDArray[np.intp]

NONE, INTRADAY, DAILY, QUIET = 0, 1, 2, 3  # what is known of a series' bars; quiet days alone
NEVER = -1
ALL = slice(None)
_ASSETS = (FX, VOLATILITY, OTHER_ASSETS)
_NO_DAYS = np.empty(0, np.int64)


class UsualBars:
    """Hours, days and their variance of N series, whose `columns` are those of `KnownVariance`."""

    def __init__(
        self, columns: SeriesColumns, table: ScheduledLines, priors: Priors, session_gap_bars: float
    ) -> None:
        self._columns, self._table, self._gap_bars = columns, table, session_gap_bars
        self._closed_hours = [priors.quiet_hours(assets).get(CLOSED_HOURS, 0.0) for assets in _ASSETS]
        self._closures = table.all_closed_days(HOME)
        self._quiet_days = [QuietDays(priors.quiet_days(assets)) for assets in _ASSETS]
        self._hours, self._pattern = ComingBars(), WeeklyPattern()
        columns.declare("kind", NONE, np.int8)
        columns.declare("has_pattern", 0, np.int8)
        columns.declare("at_weekends", 0, np.int8)
        columns.declare("assets", 0, np.int8)  # their place in _ASSETS
        columns.declare("is_home", 0, np.int8)  # it has no session when New York has none
        columns.declare("start_ns", NEVER, np.int64)
        columns.declare("begin_ns", NEVER, np.int64)  # of its return: the end of the bar before, in a session
        columns.declare("end_ns", NEVER, np.int64)
        # The pause before the session of bars within a day: the end of the last bar before it, and its first begin.
        columns.declare("pause_ns", NEVER, np.int64)
        columns.declare("open_ns", NEVER, np.int64)
        self.num_series = 0
        # Series of whose bars anything is known, more than quiet days, hours, and a pattern of the week.
        self.num_known = self.num_eventful = self.num_intraday = self.num_patterned = 0

    def grow(self, series: Sequence[tuple[str, str]], knows_events: Sequence[bool]) -> None:
        """Take in the series, by symbol and interval, that are not there; of the daily bars of those that
        `knows_events` more than quiet days may be known."""
        columns = self._columns
        columns.grow(len(series))
        for row in range(self.num_series, len(series)):
            symbol, interval = series[row]
            length = length_ns(interval)
            kind = DAILY if length == NS_PER_DAY else INTRADAY if 0 < length < NS_PER_DAY else NONE
            assets = _ASSETS.index(asset_class(symbol))
            if kind == DAILY and not knows_events[row - self.num_series]:
                kind = QUIET if self._quiet_days[assets].has_any else NONE
            columns["kind"][row], columns["assets"][row] = kind, assets
            columns["has_pattern"][row] = 0 < length <= MAX_BAR_NS
            columns["is_home"][row] = not currencies_of(symbol)
        self.num_series = len(series)
        self._count()
        if self.num_intraday:
            self._hours.grow(len(series))
            self._pattern.grow(len(series))

    def _count(self) -> None:
        kind = self._columns["kind"][: self.num_series]
        self.num_known = int((kind != NONE).sum())
        self.num_intraday = int((kind == INTRADAY).sum())
        self.num_eventful = self.num_intraday + int((kind == DAILY).sum())
        self.num_patterned = int((self._columns["has_pattern"][: self.num_series] > 0).sum())

    def close(self, rows: Rows, start_ns: Instants, end_ns: Instants, begin_ns: Instants) -> None:
        """Take in when bars [n] that closed began and ended, and where their returns begin."""
        columns = self._columns
        if self.num_intraday:
            opens = (begin_ns > columns["end_ns"][rows]) & (columns["kind"][rows] == INTRADAY)
            if opens.any():
                columns["pause_ns"][rows[opens]] = columns["end_ns"][rows[opens]]
                columns["open_ns"][rows[opens]] = begin_ns[opens]
        columns["start_ns"][rows], columns["end_ns"][rows] = start_ns, end_ns
        columns["begin_ns"][rows] = begin_ns

    def sessions(self, rows: Rows) -> Instants:
        """The pause [n, 2] before the session of bars within a day, from its begin to its end."""
        return np.stack([self._columns["pause_ns"][rows], self._columns["open_ns"][rows]], axis=1)

    def learn_hours(self, rows: Rows) -> None:
        columns = self._columns
        if self.num_intraday == self.num_series:
            self._hours.learn(rows, columns["start_ns"][rows])
            return
        intraday = columns["kind"][rows] == INTRADAY
        if intraday.any():
            self._hours.learn(rows[intraday], columns["start_ns"][rows[intraday]])
        if not intraday.all():
            columns["at_weekends"][rows] |= is_weekend(columns["end_ns"][rows]) & ~intraday

    def coming(self, rows: Rows, num: int) -> tuple[Instants, Instants]:
        """Begin and end [n, 1 + num] of the bars that closed last, and of those that will follow."""
        columns = self._columns
        end_ns = columns["end_ns"][rows]
        begins, ends = np.empty((len(rows), 1 + num), np.int64), np.empty((len(rows), 1 + num), np.int64)
        begins[:, 0], ends[:, 0] = columns["begin_ns"][rows], end_ns
        if self.num_intraday == self.num_series and compiled.core is not None:
            self._hours.spans(rows, columns["start_ns"][rows], end_ns, num, (begins[:, 1:], ends[:, 1:]))
            return begins, ends
        kind = columns["kind"][rows]
        daily, intraday = kind != INTRADAY, kind == INTRADAY
        if daily.any():
            ends[daily, 1:] = self._daily_ends(rows[daily], end_ns[daily], num)
            begins[daily, 1:] = ends[daily, :-1]
        if intraday.any():
            start_ns = columns["start_ns"][rows[intraday]]
            begins[intraday, 1:], ends[intraday, 1:] = self._hours.spans(
                rows[intraday], start_ns, end_ns[intraday], num
            )
        return begins, ends

    def _daily_ends(self, rows: Rows, end_ns: Instants, num: int) -> Instants:
        at_weekends, home = self._columns["at_weekends"][rows] > 0, self._columns["is_home"][rows] > 0
        ends = daily_ends(end_ns, at_weekends, num, _NO_DAYS)
        if not self._table.closures or not home.any():
            return ends
        for among, now_ns in self._by_close(end_ns):
            closed = self._table.closed_days(HOME, now_ns)
            part = np.flatnonzero(home) if isinstance(among, slice) else np.flatnonzero(home & among)
            if len(closed) and len(part):
                ends[part] = daily_ends(end_ns[part], at_weekends[part], num, closed)
        return ends

    def variances(
        self, rows: Rows, begins: Instants, ends: Instants
    ) -> tuple[Instants, Array, NDArray[np.bool_]]:
        """Where the returns of bars [n, 1 + B] begin, what the week and quiet days make of their variance, the first
        left out, and which of the rows have daily bars."""
        columns, pattern = self._columns, np.ones(begins.shape)
        if self.num_patterned == self.num_series:
            self._fill_pattern(rows, begins, ends, pattern)
        elif self.num_patterned and (shows := columns["has_pattern"][rows] > 0).any():
            part = pattern[shows]
            self._fill_pattern(rows[shows], begins[shows], ends[shows], part)
            pattern[shows] = part
        daily = columns["kind"][rows] != INTRADAY
        if self.num_intraday < self.num_series and daily.any():
            pattern[daily, 1:] = self._of_quiet_days(rows[daily], ends[daily])
        return self._joined(daily, begins, ends), pattern, daily

    def _fill_pattern(self, rows: Rows, begins: Instants, ends: Instants, pattern: Array) -> None:
        """What the week, and holidays within it, make of the variance of bars [n, 1 + B], the first left out."""
        found = self._pattern.factors(rows, begins[:, 1:], pattern[:, 1:])
        if compiled.core is None:
            pattern[:, 1:] = found
        if may_hold(begins[:, 1:], self._closures):
            for among, now_ns in self._by_close(ends[:, 0]):
                pattern[among, 1:] *= self._of_closed_hours(rows[among], begins[among, 1:], now_ns)

    def _by_close(self, end_ns: Instants) -> Iterator[tuple[Mask, int]]:
        """Rows [n] whose bars closed at `end_ns` [n] with an instant, by each of which calendars say the same to all
        of the rows: their own close."""
        latest = max(int(end_ns.max()), 0)
        if not self._table.has_changed(int(end_ns.min()), latest):
            yield ALL, latest
            return
        for at in sorted(set(end_ns.tolist())):
            yield end_ns == at, max(at, 0)

    def _of_closed_hours(self, rows: Rows, begins: Instants, now_ns: int) -> Array:
        """Factors [n, B] of the variance of bars that begin then: what a holiday in New York makes of its hours."""
        factors = np.ones(begins.shape)
        closed = self._table.closed_days(HOME, now_ns)
        for place, log_scale in enumerate(self._closed_hours):
            among = self._columns["assets"][rows] == place
            if log_scale and among.any():
                factor = exact.exp(np.array(2.0 * log_scale))
                factors[among] = np.where(are_quiet(begins[among], closed), factor, 1.0)
        return factors

    def _of_quiet_days(self, rows: Rows, ends: Instants) -> Array:
        """Factors [n, B] of the variance of daily bars with these ends [n, 1 + B]; 1 for what trades at weekends."""
        factors = np.ones((len(ends), ends.shape[1] - 1))
        for part, now_ns in self._by_close(ends[:, 0]):
            found, coming = factors[part], ends[part, 1:]
            for among, quiet, days in self._by_quiet_days(rows[part], now_ns):
                found[among] = quiet.variances(coming[among], *days)
            factors[part] = found
        return factors

    def _by_quiet_days(
        self, rows: Rows, now_ns: int
    ) -> Iterator[tuple[NDArray[np.bool_], QuietDays, list[NDArray[np.int64]]]]:
        """The quiet days of daily bars, and the days without a session and of short ones that count for them, with
        which of the rows they are for."""
        columns = self._columns
        weekdays = columns["at_weekends"][rows] == 0
        for place, quiet in enumerate(self._quiet_days):
            for home in (0, 1) if quiet.has_any else ():
                among = weekdays & (columns["assets"][rows] == place) & (columns["is_home"][rows] == home)
                if among.any():
                    closed = (self._table.closed_days(HOME, now_ns, half=half) for half in (False, True))
                    yield among, quiet, list(closed) if home else []

    def _joined(self, daily: NDArray[np.bool_], begins: Instants, ends: Instants) -> Instants:
        """Where the returns of bars [n, 1 + B] begin: at the end of the bar before, but for the first of a session."""
        if compiled.core is not None:
            spans = np.empty(begins.shape, np.int64)
            compiled.core.join_spans(daily.view(np.uint8), begins, ends, self._gap_bars, NEVER, spans)
            return spans
        pause = begins[:, 1:] - ends[:, :-1]
        longest = (self._gap_bars * (ends[:, 1] - begins[:, 1])).astype(np.int64)
        joins = (daily[:, None] | (pause <= longest[:, None])) & (ends[:, :-1] != NEVER)
        return np.concatenate([begins[:, :1], np.where(joins, ends[:, :-1], begins[:, 1:])], axis=1)

    def quiet(self, coming: NextBars) -> dict[int, EventFactor]:
        """By row, the quiet day that the next bar is, or the quiet hours that it lies in."""
        rows, found = coming.rows, dict[int, EventFactor]()
        intraday = self._columns["kind"][rows] == INTRADAY
        at = np.flatnonzero(~intraday & (coming.pattern != 1.0))
        for part, now_ns in self._by_close(coming.closes[at]) if len(at) else ():
            places = at[part]
            for among, quiet, days in self._by_quiet_days(rows[places], now_ns):
                kinds: list[int] = quiet.kinds(coming.ends[places[among]], *days).tolist()
                for place, kind in zip(places[among].tolist(), kinds, strict=True):
                    scale = float(np.sqrt(coming.pattern[place]))
                    found[int(rows[place])] = EventFactor(QUIET_KINDS[kind], int(coming.ends[place]), scale)
        at = np.flatnonzero(intraday)
        if not may_hold(coming.begins[at], self._closures):
            return found
        for part, now_ns in self._by_close(coming.closes[at]):
            places = at[part]
            scales = np.sqrt(self._of_closed_hours(rows[places], coming.begins[places, None], now_ns))
            for place, scale in zip(places.tolist(), scales[:, 0].tolist(), strict=True):
                if scale != 1.0:
                    found[int(rows[place])] = EventFactor(CLOSED_HOURS, int(coming.begins[place]), scale)
        return found

    def learn(self, batch: BarBatch) -> None:
        """Take the bars that closed into the pattern of the week."""
        if not self.num_patterned:
            return
        index = batch.index
        shows = ALL if self.num_patterned == self.num_series else self._columns["has_pattern"][index] > 0
        start_ns = batch.start_ns[shows]
        if len(start_ns):
            length = batch.end_ns[shows] - start_ns
            self._pattern.learn(index[shows], week_slots(start_ns), length, batch.log_variance[shows])

    def state(self) -> dict[str, Any]:
        return {"hours": self._hours.state(), "pattern": self._pattern.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """The columns are restored before."""
        self._hours.restore(state["hours"])
        self._pattern.restore(state["pattern"])
        self._count()


def length_ns(interval: str) -> int:
    """0 for bars without a length in time."""
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 0
