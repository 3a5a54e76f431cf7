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
from htfi.domain.time import NS_PER_DAY, NS_PER_S, parse_duration
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance.coming_bars import ComingBars, daily_ends, is_weekend, week_slots
from htfi.forecasting.known_variance.contributions import (
    NO_EVENT,
    CommonEvents,
    CompanyEvents,
    Contributions,
    HeldEvents,
    PlacedEvents,
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

VERSION = "4"
KNOWN = "known_variance"
_NONE, _INTRADAY, _DAILY, _QUIET = 0, 1, 2, 3  # what is known of a series' bars; quiet days alone
_GAPS = ("gap_midweek", "gap_weekend", "gap_long")  # before a daily bar
_ASSETS = (FX, VOLATILITY, OTHER_ASSETS)
_NO_DAYS = np.empty(0, np.int64)
_NEVER = -1
_SESSION_NS = 7 * 3600 * NS_PER_S
_LONGEST_PAUSE_NS = 4 * NS_PER_DAY  # before a session, in which results still move it
_RANGE_SHARE = 0.75  # of an event's log factor: a release jumps, so the range grows less than the return


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """What was worked out after some bars of n series, for the case that the next ones come when they are expected.

    Shapes, of the m series that anything is known of: starts [m]; ends, begins, pattern and events [m, 2 + L], of the
    bars that closed, the next ones and those that follow; index and known [n].
    """

    index: Rows
    known: NDArray[np.bool_]
    daily: NDArray[np.bool_]
    starts: Instants
    ends: Instants
    begins: Instants
    pattern: Array
    events: Array
    parts: list[Contributions]

    def serves(
        self,
        index: Rows,
        known: NDArray[np.bool_],
        start_ns: Instants,
        end_ns: Instants,
        table: ScheduledLines,
    ) -> bool:
        """Whether bars that closed are those, of the same series anything is known, and no calendar line became known
        or was withdrawn meanwhile."""
        if len(index) != len(self.index) or not (index == self.index).all() or not len(self.starts):
            return False
        if not (known == self.known).all():  # the year's end came near, or is over
            return False
        came = (end_ns[self.known] == self.ends[:, 1]) & (self.daily | (start_ns[self.known] == self.starts))
        return bool(came.all()) and not table.has_changed(
            int(self.ends[:, 0].min()), int(self.ends[:, 1].max())
        )


@dataclass(frozen=True, slots=True, eq=False)
class _NextBars:
    """What was known of the next bars of m series, after some have closed.

    Shapes: rows, begins, ends and pattern [m]; `parts` count bars, of which the next one is `bar`.
    """

    rows: Rows
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
        # The pause before the session of bars within a day: the end of the last bar before it, and its first begin.
        self._columns.declare("pause_ns", _NEVER, np.int64)
        self._columns.declare("open_ns", _NEVER, np.int64)
        self._columns.declare("ahead", np.ones(len(horizons)))
        self._columns.declare("waiting", np.ones((len(horizons), self._longest)))
        self._num_known = 0  # series of whose bars anything is known
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
            self.effects.add(row, symbol, max(length_ns, 1))
            if self._surprises is not None:
                self._surprises.add(row, symbol)
        self.num_series = len(series)
        if (self._columns["kind"] == _INTRADAY).any():
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
        opens = (begins[:, 1] > columns["end_ns"][rows]) & (columns["kind"][rows] == _INTRADAY)
        if opens.any():
            columns["pause_ns"][rows[opens]] = columns["end_ns"][rows[opens]]
            columns["open_ns"][rows[opens]] = begins[opens, 1]
        columns["start_ns"][rows], columns["end_ns"][rows] = start_ns[known], end_ns[known]
        columns["begin_ns"][rows] = begins[:, 1]
        if (pattern[:, 1] == 1.0).all() and not self._closing:
            return None
        of_returns, of_ranges = np.ones(len(index)), np.ones(len(index))
        of_returns[known] = of_ranges[known] = np.sqrt(pattern[:, 1] * events[:, 1])
        if self._closing:
            jumps = np.sqrt(pattern[:, 1]) * exact.exp(0.5 * _RANGE_SHARE * exact.log(events[:, 1]))
            of_ranges[known] = np.where(events[:, 1] > 1.0, jumps, of_returns[known])
        return of_returns, of_ranges

    def ahead(self, index: Rows) -> Array | None:
        """The root of the mean of g² over the bars ahead [n, H] of those that closed; None where it is 1 for all."""
        self._next = None
        if not self._num_known:
            return None
        rows, known = self._known(index)
        if not len(rows):
            self._columns["ahead"][index] = 1.0
            return None
        if self._prepared is not None and self._is_prepared:
            pattern, events, first = self._prepared.pattern, self._prepared.events, 2
            begins, ends, parts = self._prepared.begins, self._prepared.ends, self._prepared.parts
        else:
            self._learn_hours(rows)
            starts, ends = self._coming(rows, self._longest)
            begins, pattern, events, parts = self._variances(rows, starts, ends)
            first = 1
        self._next = _NextBars(rows, begins[:, first], ends[:, first], pattern[:, first], parts, first)
        total = np.cumsum((pattern * events)[:, first : first + self._longest], axis=1)[:, self._horizons - 1]
        factors = np.ones((len(index), len(self._horizons)))
        factors[known] = np.sqrt(total / self._horizons)
        self._columns["ahead"][index] = factors
        return None if (factors == 1.0).all() else factors

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
            found |= stated_events(bar.rows, kinds, times_ns, bar.lags.tolist(), bar.variances, quiet)
        return found

    def _quiet(self, coming: _NextBars) -> dict[int, EventFactor]:
        """By row, the quiet day that the next bar is, or the quiet hours that it lies in."""
        rows, found = coming.rows, dict[int, EventFactor]()
        intraday = self._columns["kind"][rows] == _INTRADAY
        at = np.flatnonzero(~intraday & (coming.pattern != 1.0))
        if len(at):
            now_ns = int(coming.begins[at].max())
            for among, quiet, days in self._by_quiet_days(rows[at], now_ns):
                kinds: list[int] = quiet.kinds(coming.ends[at[among]], *days).tolist()
                for place, kind in zip(at[among].tolist(), kinds, strict=True):
                    scale = float(np.sqrt(coming.pattern[place]))
                    found[int(rows[place])] = EventFactor(QUIET_KINDS[kind], int(coming.ends[place]), scale)
        at = np.flatnonzero(intraday)
        if may_hold(coming.begins[at], self._closures):
            scales = np.sqrt(
                self._of_closed_hours(rows[at], coming.begins[at, None], int(coming.begins.max()))
            )
            for place, scale in zip(at.tolist(), scales[:, 0].tolist(), strict=True):
                if scale != 1.0:
                    found[int(rows[place])] = EventFactor(CLOSED_HOURS, int(coming.begins[place]), scale)
        return found

    def _learn_hours(self, rows: Rows) -> None:
        columns = self._columns
        intraday = columns["kind"][rows] == _INTRADAY
        if intraday.any():
            self._hours.learn(rows[intraday], columns["start_ns"][rows[intraday]])
        if not intraday.all():
            columns["at_weekends"][rows] |= is_weekend(columns["end_ns"][rows]) & ~intraday

    def _coming(self, rows: Rows, num: int) -> tuple[Instants, Instants]:
        """Begin and end [n, 1 + num] of the bars that closed last, and of those that will follow."""
        columns = self._columns
        kind, end_ns = columns["kind"][rows], columns["end_ns"][rows]
        begins, ends = (np.empty((len(rows), 1 + num), np.int64) for _ in range(2))
        begins[:, 0], ends[:, 0] = columns["begin_ns"][rows], end_ns
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
        closed = self._table.closed_days(HOME, int(end_ns.max())) if self._table.closures else _NO_DAYS
        if not len(closed) or not home.any():
            return daily_ends(end_ns, at_weekends, num, _NO_DAYS)
        ends = np.empty((len(rows), num), np.int64)
        for part, days in ((home, closed), (~home, _NO_DAYS)):
            ends[part] = daily_ends(end_ns[part], at_weekends[part], num, days)
        return ends

    def _prepare(self, index: Rows) -> None:
        """Work out what is known of the next bars of these series and of those that follow, before they close."""
        rows, known = self._known(index)
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

    def _known(self, index: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        kind = self._columns["kind"][index]
        known = (kind != _NONE) & (self._is_year_end | (kind != _QUIET))
        return index[known], known

    def _variances(
        self, rows: Rows, begins: Instants, ends: Instants
    ) -> tuple[Instants, Array, Array, list[Contributions]]:
        """Where the returns of bars [n, 1 + B] begin, what the week and what events make of their variance, and the
        parts of the latter.

        The first bar has closed: it counts for what follows an event.
        """
        columns, num_bars = self._columns, begins.shape[1]
        pattern, events = np.ones(begins.shape), np.ones(begins.shape)
        if not len(rows):
            return begins, pattern, events, []
        shows = columns["has_pattern"][rows] > 0
        if shows.any():
            pattern[shows, 1:] = self._pattern.factors(rows[shows], begins[shows, 1:])
            if may_hold(begins[shows, 1:], self._closures):
                now_ns = max(int(ends[:, 0].max()), 0)
                pattern[shows, 1:] *= self._of_closed_hours(rows[shows], begins[shows, 1:], now_ns)
        kind = columns["kind"][rows]
        daily = kind != _INTRADAY
        if daily.any():
            pattern[daily, 1:] = self._of_quiet_days(rows[daily], ends[daily])
        spans = self._joined(daily, begins, ends)
        parts: list[Contributions] = []
        eventful = np.flatnonzero(kind != _QUIET)
        sessions = np.stack([columns["pause_ns"][rows], columns["open_ns"][rows]], axis=1)
        keys = np.concatenate([sessions, spans], axis=1)
        for alike in _alike(keys[eventful], ends[eventful], daily[eventful]):
            among, of = eventful[alike], eventful[alike[0]]
            part = self._contributions(rows[among], spans[of], ends[of], sessions[of], bool(daily[of]))
            if part is not None:
                events[among] = part.factors(num_bars)
                parts.append(part)
        return spans, pattern, events, parts

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
        for among, quiet, days in self._by_quiet_days(rows, int(ends[:, 0].max())):
            factors[among] = quiet.variances(ends[among, 1:], *days)
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

    def _results_before_session(self, session: Instants, ends: Instants) -> PlacedEvents:
        """The results that came in the pause before the session that goes on, with its first bar; bars end at `ends`
        [1 + B]."""
        pause_ns, open_ns = session.tolist()
        over_ns, places = int(ends[0]) - open_ns, np.empty(0, np.intp)
        if pause_ns != _NEVER and 0 <= over_ns < _SESSION_NS:
            found = self._table.within(max(pause_ns, open_ns - _LONGEST_PAUSE_NS), open_ns, int(ends[0]))
            is_own = self.effects.is_of_company[self._table.kind[found]]
            places = found[is_own & self._table.is_exact[found]]
        first = 1 - round(over_ns / max(int(np.diff(ends).min()), 1))
        return PlacedEvents(
            self._table.kind[places], np.full(len(places), first), places, np.zeros(len(places), np.bool_)
        )

    def _joined(self, daily: NDArray[np.bool_], begins: Instants, ends: Instants) -> Instants:
        """Where the returns of bars [n, 1 + B] begin: at the end of the bar before, but for the first of a session."""
        pause = begins[:, 1:] - ends[:, :-1]
        longest = (self._gap_bars * (ends[:, 1] - begins[:, 1])).astype(np.int64)
        joins = (daily[:, None] | (pause <= longest[:, None])) & (ends[:, :-1] != _NEVER)
        return np.concatenate([begins[:, :1], np.where(joins, ends[:, :-1], begins[:, 1:])], axis=1)

    def _contributions(
        self, rows: Rows, begins: Instants, ends: Instants, session: Instants, is_daily: bool
    ) -> Contributions | None:
        """What events and gaps do to the bars of rows with these spans [1 + B]; None where there are none. The pause
        before their session lay between the instants `session` [2]."""
        if not is_daily and not self._table.kinds:
            return None
        num_bars, now_ns = len(ends), int(ends[0])
        places = self._table.within(int(begins[0]), int(ends[-1]), max(now_ns, 0))
        times, sources = self._table.time_ns[places], self._table.kind[places]
        bar = np.searchsorted(ends, times, "right")
        is_own = self.effects.is_of_company[sources]
        usable = (bar < num_bars) & (is_daily | self._table.is_exact[places])
        begin = begins[np.minimum(bar, num_bars - 1)]
        inside = times >= begin  # else in a pause, which no return within the day counts
        after = (times >= begin - _LONGEST_PAUSE_NS) & (not is_daily)
        own, common = usable & is_own & (inside | after), usable & inside & ~is_own
        sessions = np.cumsum(np.append(False, begins[1:] > ends[:-1]))
        results = PlacedEvents(sources[own], bar[own], places[own], inside[own])
        if not is_daily:
            results = results.joined(self._results_before_session(session, ends))
        companies = CompanyEvents.of(self.effects, rows, results, sessions, _bars_of_session(ends))
        bar, sources, places = bar[common], sources[common], places[common]
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
        if not self._num_known:
            return None
        at, across = batch.index[:, None], np.arange(len(self._horizons))
        waited = self._columns["waiting"][at, across, (batch.age[:, None] - self._horizons) % self._longest]
        return None if (waited == 1.0).all() else batch.outcomes / waited

    def learn(self, batch: BarBatch, ratio: Array) -> None:
        """Take in the bars that closed. `ratio` [n] is each return over half the 90% band that was forecast."""
        if not self._num_known:
            return
        columns, index = self._columns, batch.index
        columns["waiting"][index, :, batch.age % self._longest] = columns["ahead"][index]
        if self._is_prepared:
            self._learn_hours(self._known(index)[0])
        shows = columns["has_pattern"][index] > 0
        if shows.any():
            start_ns = batch.start_ns[shows]
            self._pattern.learn(
                index[shows], week_slots(start_ns), batch.end_ns[shows] - start_ns, batch.log_variance[shows]
            )
        place = np.full(columns.num_rows, -1)
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
        never = np.full(len(state["columns"]["end_ns"]), _NEVER)  # before version 4
        self._columns.restore({"pause_ns": never, "open_ns": never, **state["columns"]})
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


def _bars_of_session(ends: Instants) -> int:
    """How many bars with these ends [1 + B] a session has, at most."""
    return max(int(_SESSION_NS // max(np.diff(ends).min(), 1)), 1)


def _length_ns(interval: str) -> int:
    """0 for bars without a length in time."""
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 0
