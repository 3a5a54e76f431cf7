"""The known relative variance of each coming bar, as one factor on every expert.

A return is r = σ·g·z: g² is the bar's pattern over the week, times what its events and the gap before it make of it.
Experts read returns and ranges divided by g, and their quantiles over h bars are multiplied by the root of the mean of
g² over the bars ahead. So none of them need know of hours, weekends or releases.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.decision import KnownEvents
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance import compiled
from htfi.forecasting.known_variance.contributions import Contributions, HeldEvents
from htfi.forecasting.known_variance.event_effects import EventEffects
from htfi.forecasting.known_variance.event_facts import KindFacts
from htfi.forecasting.known_variance.event_table import tabulate
from htfi.forecasting.known_variance.eventful_bars import EventfulBars
from htfi.forecasting.known_variance.prepared_bars import Mask, NextBars, PreparedBars
from htfi.forecasting.known_variance.priors import Priors, shipped
from htfi.forecasting.known_variance.quiet_days import is_near_year_end
from htfi.forecasting.known_variance.usual_bars import ALL, INTRADAY, NEVER, NONE, QUIET, UsualBars
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Rows = NDArray[np.intp]

VERSION = "5"
KNOWN = "known_variance"
_NEAR_NS = NS_PER_DAY // 2  # of a daily bar's end: clocks change
_RANGE_SHARE = 0.75  # of an event's log factor: a release jumps, so the range grows less than the return


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
        self._table = tabulate(events)
        self._priors = priors or shipped()
        self._columns = SeriesColumns()
        self._usual = UsualBars(self._columns, self._table, self._priors, session_gap_bars)
        self._events = EventfulBars(self._table, self._priors, events)
        self._columns.declare("ahead", np.ones(len(horizons)))
        self._columns.declare("waiting", np.ones((len(horizons), self._longest)))
        self._has_ahead = self._has_waiting = False  # whether any of what stands or waits is not 1
        self._is_year_end = False  # the bars ahead of those that closed last may hold it
        self._columns.declare("next_ns", NEVER, np.int64)  # when the next bar was expected to end
        self._closing: list[HeldEvents] = []  # of the bars that closed last
        self._unforeseen: Rows = np.empty(0, np.intp)  # series whose bars ended when none was expected to
        self._prepared: PreparedBars | None = None  # follows from the rest: never saved
        self._next: NextBars | None = None
        self._is_prepared = False  # for the bars that closed last

    @property
    def effects(self) -> EventEffects:
        """What is learnt of events."""
        return self._events.effects

    @property
    def num_series(self) -> int:
        """How many series there are."""
        return self._usual.num_series

    @property
    def models(self) -> dict[str, str]:
        """What shapes forecasts where a calendar is given, for the record."""
        return {KNOWN: f"{VERSION} {self._priors.version}"} if self._table.kinds else {}

    def grow(self, series: Sequence[tuple[str, str]]) -> None:
        """Make space for all series so far, by symbol and interval; those that are there stay as they are."""
        fresh = series[self.num_series :]
        for row, (symbol, interval) in enumerate(fresh, self.num_series):
            self._events.add(row, symbol, interval)
        self._usual.grow(series, [self._events.may_know(symbol) for symbol, _ in fresh])

    def of_closed(self, index: Rows, start_ns: Instants, end_ns: Instants) -> tuple[Array, Array] | None:
        """g [n] of bars that have just closed, of their returns and of their ranges; None where it is 1 for all."""
        self._closing, self._is_prepared = [], False
        if not self._usual.num_known:
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
        if self._closing:
            near_ns = np.where(columns["kind"][rows] == INTRADAY, 0, _NEAR_NS)
            self._unforeseen = rows[np.abs(columns["next_ns"][rows] - end_ns[known]) > near_ns]
        self._usual.close(rows, start_ns[known], end_ns[known], begins[:, 1])
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
        if not self._usual.num_known:
            return None
        rows, known = self._known(index) if self._may_know else (index[:0], ALL)
        if not len(rows):
            if self._has_ahead:
                self._columns["ahead"][index] = 1.0
                self._has_ahead = bool((self._columns["ahead"] != 1.0).any())
            return None
        if self._prepared is not None and self._is_prepared:
            pattern, events, first = self._prepared.pattern, self._prepared.events, 2
            begins, ends, parts = self._prepared.begins, self._prepared.ends, self._prepared.parts
        else:
            self._usual.learn_hours(rows)
            starts, ends = self._usual.coming(rows, self._longest)
            begins, pattern, events, parts = self._variances(rows, starts, ends)
            first = 1
        self._next = NextBars(
            rows, ends[:, first - 1], begins[:, first], ends[:, first], pattern[:, first], parts, first
        )
        self._columns["next_ns"][rows] = ends[:, first]
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
        return {} if self._next is None else self._events.stated(self._next, self._usual.quiet(self._next))

    def _prepare(self, index: Rows) -> None:
        """Work out what is known of the next bars of these series and of those that follow, before they close."""
        rows, known = self._known(index) if self._may_know else (index[:0], ALL)
        if not len(rows):
            self._prepared = None
            return
        starts, ends = self._usual.coming(rows, 1 + self._longest)
        begins, pattern, events, parts = self._variances(rows, starts, ends)
        self._prepared = PreparedBars(
            index,
            known,
            self._columns["kind"][rows] != INTRADAY,
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
        return self._usual.num_eventful > 0 or (self._is_year_end and self._usual.num_known > 0)

    def _known(self, index: Rows) -> tuple[Rows, Mask]:
        """The rows of which anything is known, and which of `index` they are."""
        if self._usual.num_eventful == self.num_series:
            return index, ALL
        kind = self._columns["kind"][index]
        known = (kind != NONE) & (self._is_year_end | (kind != QUIET))
        return index[known], known

    def _variances(
        self, rows: Rows, begins: Instants, ends: Instants
    ) -> tuple[Instants, Array, Array | None, list[Contributions]]:
        """Where the returns of bars [n, 1 + B] begin, what the week and what events make of their variance, and the
        parts of the latter; None where there are none."""
        if not len(rows):
            return begins, np.ones(begins.shape), None, []
        spans, pattern, daily = self._usual.variances(rows, begins, ends)
        kind, sessions = self._columns["kind"][rows], self._usual.sessions(rows)
        events, parts = self._events.variances(rows, kind, daily, spans, ends, sessions)
        return spans, pattern, events, parts

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
        """Take in the bars that closed. `ratio` [n] is each return over half the 90% band that was forecast.

        A bar that ended when none was expected to teaches nothing of events: its band was made for another bar. A share
        that is not traded for days comes after a gap that no calendar has.
        """
        if not self._usual.num_known:
            return
        columns, index = self._columns, batch.index
        if self._has_ahead or self._has_waiting:
            columns["waiting"][index, :, batch.age % self._longest] = columns["ahead"][index]
            self._has_waiting = self._has_ahead or bool((columns["waiting"] != 1.0).any())
        if self._is_prepared:
            self._usual.learn_hours(self._known(index)[0])
        self._usual.learn(batch)
        if self._closing and len(self._unforeseen):
            missed = np.zeros(columns.num_rows, np.bool_)
            missed[self._unforeseen] = True
            ratio = np.where(missed[index], np.nan, ratio)
        self._events.learn(self._closing, batch, ratio, columns.num_rows)
        self._closing, self._is_prepared = [], False
        self._prepare(index)

    def event_facts(self, names: Sequence[str]) -> list[KindFacts]:
        """What was learnt of a calendar's events, for series of these names by row; empty without a calendar."""
        return self._events.facts(names)

    def state(self) -> dict[str, Any]:
        return {"columns": self._columns.state(), **self._usual.state(), **self._events.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """The series are those that `grow` was told of."""
        never = np.full(len(state["columns"]["end_ns"]), NEVER)  # before version 4
        self._columns.restore({"pause_ns": never, "open_ns": never, "next_ns": never, **state["columns"]})
        self._has_ahead, self._has_waiting = (
            bool((self._columns[name] != 1.0).any()) for name in ("ahead", "waiting")
        )
        self._usual.restore(state)
        self._events.restore(state)
        self._closing, self._prepared, self._is_prepared = [], None, False
        self._next = None
