"""The known relative variance of each coming bar, as one factor on every expert.

A return is r = σ·g·z: g² is the bar's pattern over the week, times what its events and the gap before it make of it.
Experts read returns and ranges divided by g, and their quantiles over h bars are multiplied by the root of the mean of
g² over the bars ahead. So none of them need know of hours, weekends or releases.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.decision import EventFactor, KnownEvents
from htfi.domain.errors import InvalidInput
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance import compiled
from htfi.forecasting.known_variance.coming_bars import ComingBars, daily_ends, is_weekend, week_slots
from htfi.forecasting.known_variance.contributions import (
    NO_EVENT,
    CommonEvents,
    CompanyEvents,
    Contributions,
    HeldEvents,
)
from htfi.forecasting.known_variance.event_effects import EventEffects
from htfi.forecasting.known_variance.event_facts import KindFacts, event_facts
from htfi.forecasting.known_variance.event_table import ScheduledLines, tabulate
from htfi.forecasting.known_variance.priors import Priors, shipped
from htfi.forecasting.known_variance.quiet_days import KINDS as QUIET_KINDS
from htfi.forecasting.known_variance.quiet_days import QuietDays, is_near_year_end
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
from htfi.forecasting.known_variance.stated_events import stated_days, stated_events
from htfi.forecasting.known_variance.surprise_effects import Z90, ClosedBar, SurpriseEffects
from htfi.forecasting.known_variance.weekly_pattern import MAX_BAR_NS, WeeklyPattern
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Rows = NDArray[np.intp]
Mask = slice | NDArray[np.bool_]  # which of some rows; a slice for all of them

VERSION = "4"
KNOWN = "known_variance"
_NONE, _INTRADAY, _DAILY, _QUIET = 0, 1, 2, 3  # what is known of a series' bars; quiet days alone
_GAPS = ("gap_midweek", "gap_weekend", "gap_long")  # before a daily bar
_ASSETS = (FX, VOLATILITY, OTHER_ASSETS)
_NO_DAYS = np.empty(0, np.int64)
_ALL = slice(None)
_NEVER = -1
_RANGE_SHARE = 0.75  # of an event's log factor: a release jumps, so the range grows less than the return


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """What was worked out after some bars of n series, for the case that the next ones come when they are expected.

    Shapes, of the m series that anything is known of: starts [m]; ends, begins, pattern and events [m, 2 + L], of the
    bars that closed, the next ones and those that follow; index and known [n]. No `events`: each is 1.
    """

    index: Rows
    known: Mask
    daily: NDArray[np.bool_]
    starts: Instants
    ends: Instants
    begins: Instants
    pattern: Array
    events: Array | None
    parts: list[Contributions]

    def serves(
        self,
        index: Rows,
        known: Mask,
        start_ns: Instants,
        end_ns: Instants,
        table: ScheduledLines,
    ) -> bool:
        """Whether bars that closed are those, of the same series anything is known, and no calendar line became known
        or was withdrawn meanwhile."""
        if len(index) != len(self.index) or not (index == self.index).all() or not len(self.starts):
            return False
        if isinstance(known, slice) or isinstance(self.known, slice):
            if not (isinstance(known, slice) and isinstance(self.known, slice)):
                return False  # the year's end came near, or is over
        elif not (known == self.known).all():
            return False
        came = (end_ns[self.known] == self.ends[:, 1]) & (self.daily | (start_ns[self.known] == self.starts))
        if not came.all():
            return False
        return not len(table.changes_ns) or not table.has_changed(
            int(self.ends[:, 0].min()), int(self.ends[:, 1].max())
        )


@dataclass(frozen=True, slots=True, eq=False)
class _NextBars:
    """What was known of the next bars of m series, after some have closed.

    Shapes: rows, closes, of the bars before, begins, ends and pattern [m]; `parts` count bars, of which the next one is
    `bar`.
    """

    rows: Rows
    closes: Instants
    begins: Instants
    ends: Instants
    pattern: Array
    parts: list[Contributions]
    bar: int


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
        self._priors = priors or shipped()
        self.effects = EventEffects(self._table, self._priors, _GAPS)
        self._surprises = SurpriseEffects(self.effects, self._table, events) if self._table.kinds else None
        self._first_gap = len(self._table.kinds)
        self._closed_hours = [self._priors.quiet_hours(assets).get(CLOSED_HOURS, 0.0) for assets in _ASSETS]
        self._closures = self._table.all_closed_days(HOME)
        self._quiet_days = [QuietDays(self._priors.quiet_days(assets)) for assets in _ASSETS]
        self._hours, self._pattern = ComingBars(), WeeklyPattern()
        self._columns = SeriesColumns()
        self._columns.declare("kind", _NONE, np.int8)
        self._columns.declare("has_pattern", 0, np.int8)
        self._columns.declare("at_weekends", 0, np.int8)
        self._columns.declare("assets", 0, np.int8)  # their place in _ASSETS
        self._columns.declare("is_home", 0, np.int8)  # it has no session when New York has none
        self._columns.declare("start_ns", _NEVER, np.int64)
        self._columns.declare(
            "begin_ns", _NEVER, np.int64
        )  # of its return: the end of the bar before, in a session
        self._columns.declare("end_ns", _NEVER, np.int64)
        self._columns.declare("ahead", np.ones(len(horizons)))
        self._columns.declare("waiting", np.ones((len(horizons), self._longest)))
        self._num_known = self._num_eventful = self._num_intraday = self._num_patterned = (
            0  # series of whose bars anything is known, more than quiet days, hours, and a pattern of the week
        )
        self._has_ahead = self._has_waiting = False  # whether any of what stands or waits is not 1
        self.num_series = 0
        self._is_year_end = False  # the bars ahead of those that closed last may hold it
        self._closing: list[HeldEvents] = []  # of the bars that closed last
        self._prepared: _Prepared | None = None  # follows from the rest: never saved
        self._next: _NextBars | None = None
        self._is_prepared = False  # for the bars that closed last

    @property
    def models(self) -> dict[str, str]:
        """What shapes forecasts where a calendar is given, for the record."""
        return {KNOWN: f"{VERSION} {self._priors.version}"} if self._table.kinds else {}

    def grow(self, series: Sequence[tuple[str, str]]) -> None:
        """Make space for all series so far, by symbol and interval; those that are there stay as they are."""
        self._columns.grow(len(series))
        for row in range(self.num_series, len(series)):
            symbol, interval = series[row]
            length_ns = _length_ns(interval)
            kind = _DAILY if length_ns == NS_PER_DAY else _INTRADAY if 0 < length_ns < NS_PER_DAY else _NONE
            if kind == _DAILY and not self._knows_events(symbol):
                kind = _QUIET if self._quiet_days[_ASSETS.index(asset_class(symbol))].has_any else _NONE
            self._columns["kind"][row] = kind
            self._columns["has_pattern"][row] = 0 < length_ns <= MAX_BAR_NS
            self._columns["assets"][row] = _ASSETS.index(asset_class(symbol))
            self._columns["is_home"][row] = not currencies_of(symbol)
            self._num_known += kind != _NONE
            self._num_eventful += kind in (_INTRADAY, _DAILY)
            self._num_intraday += kind == _INTRADAY
            self._num_patterned += 0 < length_ns <= MAX_BAR_NS
            self.effects.add(row, symbol, max(length_ns, 1))
            if self._surprises is not None:
                self._surprises.add(row, symbol)
        self.num_series = len(series)
        if self._num_intraday:
            self._hours.grow(len(series))
            self._pattern.grow(len(series))

    def _knows_events(self, symbol: str) -> bool:
        """Whether more than quiet days may be known of a series' daily bars: events of a calendar, or what gaps do."""
        return bool(self._table.kinds or self._table.closures) or self.effects.has_gaps(symbol)

    def of_closed(self, index: Rows, start_ns: Instants, end_ns: Instants) -> tuple[Array, Array] | None:
        """g [n] of bars that have just closed, of their returns and of their ranges; None where it is 1 for all."""
        self._closing, self._is_prepared = [], False
        if not self._num_known:
            return None
        columns = self._columns
        self._is_year_end = is_near_year_end(int(end_ns.max()), self._longest)
        if not self._may_know:
            return None
        rows, known = self._known(index)
        if not len(rows):
            return None
        prepared = self._prepared
        self._is_prepared = prepared is not None and prepared.serves(
            index, known, start_ns, end_ns, self._table
        )
        if prepared is not None and self._is_prepared:
            begins, pattern, events, parts = (
                prepared.begins,
                prepared.pattern,
                prepared.events,
                prepared.parts,
            )
        else:
            spans = np.stack([columns["begin_ns"][rows], start_ns[known]], axis=1)
            ends = np.stack([columns["end_ns"][rows], end_ns[known]], axis=1)
            begins, pattern, events, parts = self._variances(rows, spans, ends)
        self._closing = [held for part in parts for held in part.of_bar(1)]
        columns["start_ns"][rows], columns["end_ns"][rows] = start_ns[known], end_ns[known]
        columns["begin_ns"][rows] = begins[:, 1]
        if not self._closing:
            if (pattern[:, 1] == 1.0).all():
                return None
            factors = np.ones(len(index))
            factors[known] = np.sqrt(pattern[:, 1])
            return factors, factors
        of_returns, of_ranges = np.ones(len(index)), np.ones(len(index))
        if events is not None:
            of_returns[known] = of_ranges[known] = np.sqrt(pattern[:, 1] * events[:, 1])
            jumps = np.sqrt(pattern[:, 1]) * exact.exp(0.5 * _RANGE_SHARE * exact.log(events[:, 1]))
            of_ranges[known] = np.where(events[:, 1] > 1.0, jumps, of_returns[known])
        return of_returns, of_ranges

    def ahead(self, index: Rows) -> Array | None:
        """The root of the mean of g² over the bars ahead [n, H] of those that closed; None where it is 1 for all."""
        self._next = None
        if not self._num_known:
            return None
        rows, known = self._known(index) if self._may_know else (index[:0], _ALL)
        if not len(rows):
            if self._has_ahead:
                self._columns["ahead"][index] = 1.0
                self._has_ahead = bool((self._columns["ahead"] != 1.0).any())
            return None
        if self._prepared is not None and self._is_prepared:
            pattern, events, first = self._prepared.pattern, self._prepared.events, 2
            begins, ends, parts = self._prepared.begins, self._prepared.ends, self._prepared.parts
        else:
            self._learn_hours(rows)
            starts, ends = self._coming(rows, self._longest)
            begins, pattern, events, parts = self._variances(rows, starts, ends)
            first = 1
        self._next = _NextBars(
            rows, ends[:, first - 1], begins[:, first], ends[:, first], pattern[:, first], parts, first
        )
        factors, is_any = self._roots(pattern, events, first)
        if len(rows) < len(index):
            whole = np.ones((len(index), len(self._horizons)))
            whole[known] = factors
            factors = whole
        self._columns["ahead"][index] = factors
        self._has_ahead = self._has_ahead or is_any
        return factors if is_any else None

    def _roots(self, pattern: Array, events: Array | None, first: int) -> tuple[Array, bool]:
        """The root of the mean of bars' factors [n, B] over each horizon [n, H], from the bar `first` on, and whether
        any is not 1."""
        if compiled.core is not None:
            factors = np.empty((len(pattern), len(self._horizons)))
            return factors, compiled.core.fill_ahead(pattern, events, first, self._horizons, factors)
        coming = (pattern if events is None else pattern * events)[:, first : first + self._longest]
        factors = np.sqrt(np.cumsum(coming, axis=1)[:, self._horizons - 1] / self._horizons)
        return factors, not (factors == 1.0).all()

    def known_events(self) -> dict[int, KnownEvents]:
        """By row, what events, gaps and quiet days make of the next bar's band, of the series whose bars closed last;
        those that they change by less than a tenth are left out."""
        coming = self._next
        if coming is None:
            return {}
        quiet = self._quiet(coming)
        found = stated_days(quiet) if quiet else {}
        for bar in (bar for part in coming.parts for bar in part.of_bar(coming.bar)):
            kinds = [self.effects.kind(source) for source in bar.sources.tolist()]
            end_ns = int(coming.ends[coming.rows == bar.rows[0]][0])  # of all rows of the bar
            times_ns: list[int] = [
                end_ns if place == NO_EVENT else int(self._table.time_ns[place])
                for place in bar.places.tolist()
            ]
            for row in bar.rows.tolist():
                found.pop(row, None)
            found |= stated_events(bar.rows, kinds, times_ns, bar.variances, quiet)
        return found

    def _quiet(self, coming: _NextBars) -> dict[int, EventFactor]:
        """By row, the quiet day that the next bar is, or the quiet hours that it lies in."""
        rows, found = coming.rows, dict[int, EventFactor]()
        intraday = self._columns["kind"][rows] == _INTRADAY
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

    def _learn_hours(self, rows: Rows) -> None:
        columns = self._columns
        if self._num_intraday == self.num_series:
            self._hours.learn(rows, columns["start_ns"][rows])
            return
        intraday = columns["kind"][rows] == _INTRADAY
        if intraday.any():
            self._hours.learn(rows[intraday], columns["start_ns"][rows[intraday]])
        if not intraday.all():
            columns["at_weekends"][rows] |= is_weekend(columns["end_ns"][rows]) & ~intraday

    def _coming(self, rows: Rows, num: int) -> tuple[Instants, Instants]:
        """Begin and end [n, 1 + num] of the bars that closed last, and of those that will follow."""
        columns = self._columns
        end_ns = columns["end_ns"][rows]
        begins, ends = np.empty((len(rows), 1 + num), np.int64), np.empty((len(rows), 1 + num), np.int64)
        begins[:, 0], ends[:, 0] = columns["begin_ns"][rows], end_ns
        if self._num_intraday == self.num_series and compiled.core is not None:
            self._hours.spans(rows, columns["start_ns"][rows], end_ns, num, (begins[:, 1:], ends[:, 1:]))
            return begins, ends
        kind = columns["kind"][rows]
        daily, intraday = kind != _INTRADAY, kind == _INTRADAY
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

    def _prepare(self, index: Rows) -> None:
        """Work out what is known of the next bars of these series and of those that follow, before they close."""
        rows, known = self._known(index) if self._may_know else (index[:0], _ALL)
        if not len(rows):
            self._prepared = None
            return
        starts, ends = self._coming(rows, 1 + self._longest)
        begins, pattern, events, parts = self._variances(rows, starts, ends)
        self._prepared = _Prepared(
            index,
            known,
            self._columns["kind"][rows] != _INTRADAY,
            starts[:, 1],
            ends,
            begins,
            pattern,
            events,
            parts,
        )

    def standing(self, rows: slice | Rows) -> Array:
        """The newest `ahead` [n, H] of series."""
        return self._columns["ahead"][rows]

    @property
    def _may_know(self) -> bool:
        """Whether anything may be known of the bars that closed last, or of those ahead of them."""
        return self._num_eventful > 0 or (self._is_year_end and self._num_known > 0)

    def _known(self, index: Rows) -> tuple[Rows, Mask]:
        """The rows of which anything is known, and which of `index` they are."""
        if self._num_eventful == self.num_series:
            return index, _ALL
        kind = self._columns["kind"][index]
        known = (kind != _NONE) & (self._is_year_end | (kind != _QUIET))
        return index[known], known

    def _variances(
        self, rows: Rows, begins: Instants, ends: Instants
    ) -> tuple[Instants, Array, Array | None, list[Contributions]]:
        """Where the returns of bars [n, 1 + B] begin, what the week and what events make of their variance, and the
        parts of the latter; None where there are none.

        The first bar has closed: it counts for what follows an event.
        """
        columns, num_bars = self._columns, begins.shape[1]
        pattern = np.ones(begins.shape)
        if not len(rows):
            return begins, pattern, None, []
        if self._num_patterned == self.num_series:
            self._fill_pattern(rows, begins, ends, pattern)
        elif self._num_patterned and (shows := columns["has_pattern"][rows] > 0).any():
            part = pattern[shows]
            self._fill_pattern(rows[shows], begins[shows], ends[shows], part)
            pattern[shows] = part
        kind = columns["kind"][rows]
        daily = kind != _INTRADAY
        has_daily = self._num_intraday < self.num_series and bool(daily.any())
        if has_daily:
            pattern[daily, 1:] = self._of_quiet_days(rows[daily], ends[daily])
        spans = self._joined(daily, begins, ends)
        parts: list[Contributions] = []
        if not has_daily and not self._table.kinds:
            return spans, pattern, None, parts
        events = np.ones(begins.shape)
        eventful = np.flatnonzero(kind != _QUIET)
        for alike in _alike(spans[eventful], ends[eventful], daily[eventful]):
            among = eventful[alike]
            part = self._contributions(rows[among], spans[among[0]], ends[among[0]], bool(daily[among[0]]))
            if part is not None:
                events[among] = part.factors(num_bars)
                parts.append(part)
        return spans, pattern, events if parts else None, parts

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
            yield _ALL, latest
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
            compiled.core.join_spans(daily.view(np.uint8), begins, ends, self._gap_bars, _NEVER, spans)
            return spans
        pause = begins[:, 1:] - ends[:, :-1]
        longest = (self._gap_bars * (ends[:, 1] - begins[:, 1])).astype(np.int64)
        joins = (daily[:, None] | (pause <= longest[:, None])) & (ends[:, :-1] != _NEVER)
        return np.concatenate([begins[:, :1], np.where(joins, ends[:, :-1], begins[:, 1:])], axis=1)

    def _contributions(
        self, rows: Rows, begins: Instants, ends: Instants, is_daily: bool
    ) -> Contributions | None:
        """What events and gaps do to the bars of rows with these spans [1 + B]; None where there are none."""
        if not is_daily and not self._table.kinds:
            return None
        num_bars, now_ns = len(ends), int(ends[0])
        places = self._table.within(int(begins[0]), int(ends[-1]), max(now_ns, 0))
        times, sources = self._table.time_ns[places], self._table.kind[places]
        bar = np.searchsorted(ends, times, "right")
        inside = (bar < num_bars) & (times >= begins[np.minimum(bar, num_bars - 1)])
        inside &= is_daily | self._table.is_exact[places]
        bar, sources, places = bar[inside], sources[inside], places[inside]
        is_own = self.effects.is_of_company[sources]
        companies = CompanyEvents.of(
            self.effects, rows, sources[is_own], bar[is_own], places[is_own], num_bars
        )
        bar, sources, places = bar[~is_own], sources[~is_own], places[~is_own]
        events = [places, places]
        bars, lags, kinds = [bar, bar + 1], [np.zeros_like(bar), np.ones_like(bar)], [sources, sources]
        if is_daily and begins[0] != _NEVER:
            days = (np.diff(ends) + NS_PER_DAY // 2) // NS_PER_DAY
            after = np.flatnonzero(days > 1)
            events.append(np.full_like(after, NO_EVENT))
            bars.append(after + 1)
            lags.append(np.zeros_like(after))
            kinds.append(self._first_gap + np.minimum(days[after] - 2, len(_GAPS) - 1))
        at, lag, kind, place = (np.concatenate(each) for each in (bars, lags, kinds, events))
        order = np.argsort(at, kind="stable")
        order = order[(at[order] >= 1) & (at[order] < num_bars)]
        if not len(order) and companies is None:
            return None
        at, lag, kind, place = at[order], lag[order], kind[order], place[order]
        variances = self.effects.variances(rows, kind)[:, np.arange(len(kind)), lag]
        return Contributions(rows, CommonEvents(place, kind, lag, at, variances), companies)

    def divided(self, batch: BarBatch) -> Array | None:
        """What the outcomes [n, H] that came with these bars would have been without what was known; None: the same."""
        if not self._has_waiting:
            return None
        if compiled.core is not None:
            divided = np.empty(batch.outcomes.shape)
            waiting = self._columns["waiting"]
            is_any = compiled.core.divide_outcomes(
                batch.index, batch.age, self._horizons, waiting, batch.outcomes, divided
            )
            return divided if is_any else None
        at, across = batch.index[:, None], np.arange(len(self._horizons))
        waited = self._columns["waiting"][at, across, (batch.age[:, None] - self._horizons) % self._longest]
        return None if (waited == 1.0).all() else batch.outcomes / waited

    def learn(self, batch: BarBatch, ratio: Array) -> None:
        """Take in the bars that closed. `ratio` [n] is each return over half the 90% band that was forecast."""
        if not self._num_known:
            return
        columns, index = self._columns, batch.index
        if self._has_ahead or self._has_waiting:
            columns["waiting"][index, :, batch.age % self._longest] = columns["ahead"][index]
            self._has_waiting = self._has_ahead or bool((columns["waiting"] != 1.0).any())
        if self._is_prepared:
            self._learn_hours(self._known(index)[0])
        if self._num_patterned:
            shows = _ALL if self._num_patterned == self.num_series else columns["has_pattern"][index] > 0
            start_ns = batch.start_ns[shows]
            if len(start_ns):
                length_ns = batch.end_ns[shows] - start_ns
                self._pattern.learn(index[shows], week_slots(start_ns), length_ns, batch.log_variance[shows])
        place = np.full(columns.num_rows if self._closing else 0, -1)
        if self._closing:
            place[index] = np.arange(len(index))
        for held in self._closing:
            seen = ratio[place[held.rows]]
            if self._surprises is not None:
                events = (held.lags == 0) & (held.places != NO_EVENT)
                end_ns = int(batch.end_ns[place[held.rows[0]]])
                closed = ClosedBar(held.rows, held.places[events], held.sources[events], Z90 * seen, end_ns)
                self._surprises.learn(closed)
            self.effects.learn(held.with_ratio(np.abs(seen)))
        self._closing, self._is_prepared = [], False
        self._prepare(index)

    def event_facts(self, names: Sequence[str]) -> list[KindFacts]:
        """What was learnt of a calendar's events, for series of these names by row; empty without a calendar."""
        if self._surprises is None:
            return []
        return event_facts(self.effects, self._surprises, self._table.kinds, names)

    def state(self) -> dict[str, Any]:
        return {
            "columns": self._columns.state(),
            "hours": self._hours.state(),
            "pattern": self._pattern.state(),
            "effects": self.effects.state(),
            "surprises": self._surprises.state() if self._surprises is not None else {},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The series are those that `grow` was told of."""
        self._columns.restore(state["columns"])
        self._has_ahead, self._has_waiting = (
            bool((self._columns[name] != 1.0).any()) for name in ("ahead", "waiting")
        )
        self._hours.restore(state["hours"])
        self._pattern.restore(state["pattern"])
        self.effects.restore(state["effects"])
        if self._surprises is not None and state.get("surprises"):
            self._surprises.restore(state["surprises"])
        self._closing, self._prepared, self._is_prepared = [], None, False
        self._next = None


def _alike(begins: Instants, ends: Instants, daily: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The rows [n] in groups with the same spans [n, B]."""
    if not len(begins):
        return []
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
