"""What events and gaps make of the variance of coming bars, and what bars that held some teach."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import EventFactor, KnownEvents
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
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
from htfi.forecasting.known_variance.event_table import HALF_DAY, ScheduledLines
from htfi.forecasting.known_variance.prepared_bars import NextBars
from htfi.forecasting.known_variance.priors import Priors
from htfi.forecasting.known_variance.stated_events import stated_days, stated_events
from htfi.forecasting.known_variance.surprise_effects import Z90, ClosedBar, SurpriseEffects
from htfi.forecasting.known_variance.usual_bars import NEVER, QUIET, length_ns
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Rows = NDArray[np.intp]

_SESSION_NS = 7 * 3600 * NS_PER_S
_LONGEST_PAUSE_NS = 4 * NS_PER_DAY  # before a session, in which results still move it
_ALL, _PAIRS, _SHARES = 0, 1, 2  # whose bar an event is in
_GAPS = ("gap_midweek", "gap_weekend", "gap_long")  # before a daily bar


class EventfulBars:
    """Bars of N series that hold events of a calendar, or come after a gap."""

    def __init__(self, table: ScheduledLines, priors: Priors, events: Sequence[ScheduledEvent]) -> None:
        """`table` is of the events."""
        self._table = table
        self.effects = EventEffects(table, priors, _GAPS)
        self._surprises = SurpriseEffects(self.effects, table, events) if table.kinds else None
        self._first_gap = len(table.kinds)
        self._has_companies = bool(self.effects.is_of_company.any())
        self._is_early_close = np.array([kind == HALF_DAY for kind in table.kinds], np.bool_)

    def add(self, row: int, symbol: str, interval: str) -> None:
        """Make a row of a series."""
        self.effects.add(row, symbol, max(length_ns(interval), 1))
        if self._surprises is not None:
            self._surprises.add(row, symbol)

    def may_know(self, symbol: str) -> bool:
        """Whether more than quiet days may be known of a series' daily bars: events of a calendar, or what gaps do."""
        return bool(self._table.kinds or self._table.closures) or self.effects.has_gaps(symbol)

    def variances(
        self,
        rows: Rows,
        kind: NDArray[np.int8],
        daily: NDArray[np.bool_],
        spans: Instants,
        ends: Instants,
        sessions: Instants,
    ) -> tuple[Array | None, list[Contributions]]:
        """What events make of the variance of bars [n, 1 + B], and the parts of it; None where there are none.

        The first bar has closed: it counts for what follows an event. The pauses before their sessions lay between the
        instants `sessions` [n, 2].
        """
        parts: list[Contributions] = []
        if not self._table.kinds and not daily.any():
            return None, parts
        factors = np.ones(ends.shape)
        eventful = np.flatnonzero(kind != QUIET)
        keys = np.concatenate([sessions, spans], axis=1) if self._has_companies else spans
        for alike in _alike(keys[eventful], ends[eventful], daily[eventful]):
            among, of = eventful[alike], eventful[alike[0]]
            part = self._contributions(rows[among], spans[of], ends[of], sessions[of], bool(daily[of]))
            if part is not None:
                factors[among] = part.factors(ends.shape[1])
                parts.append(part)
        return factors if parts else None, parts

    def _contributions(
        self, rows: Rows, begins: Instants, ends: Instants, session: Instants, is_daily: bool
    ) -> Contributions | None:
        """What events and gaps do to the bars of rows with these spans [1 + B]; None where there are none. The pause
        before their session lay between the instants `session` [2].
        """
        if not is_daily and not self._table.kinds:
            return None
        num_bars, now_ns = len(ends), int(ends[0])
        places = self._table.within(int(begins[0]), int(ends[-1]) + 1, max(now_ns, 0))
        times, sources = self._table.time_ns[places], self._table.kind[places]
        bar = np.searchsorted(ends, times, "right")
        is_own = self.effects.is_of_company[sources]
        usable = (bar < num_bars) & (is_daily | self._table.is_exact[places])
        begin = begins[np.minimum(bar, num_bars - 1)]
        inside = times >= begin  # else in a pause, which no return within the day counts
        after = (times >= begin - _LONGEST_PAUSE_NS) & (not is_daily)
        own, common = usable & is_own & (inside | after), usable & inside & ~is_own
        companies = None
        if self._has_companies:
            results = PlacedEvents(sources[own], bar[own], places[own], inside[own])
            if not is_daily:
                results = results.joined(self._results_before_session(session, ends))
            sessions = np.cumsum(np.append(False, begins[1:] > ends[:-1]))
            companies = CompanyEvents.of(self.effects, rows, results, sessions, _bars_of_session(ends))
        ends_bar = self._is_early_close[sources] & (bar >= 1) & (not is_daily) & self._table.is_exact[places]
        ends_bar[ends_bar] = times[ends_bar] == ends[bar[ends_bar] - 1]
        closed = PlacedEvents(sources[ends_bar], bar[ends_bar] - 1, places[ends_bar], inside[ends_bar])
        bar, sources, places, ends_bar = bar[common], sources[common], places[common], ends_bar[common]
        events = [places, places]
        bars, lags, kinds = [bar, bar + 1], [np.zeros_like(bar), np.ones_like(bar)], [sources, sources]
        whose = [np.where(ends_bar, _PAIRS, _ALL), np.where(ends_bar, _PAIRS, _ALL)]
        if len(closed.bars):  # a session ends with its last bar; currencies trade on
            events += [closed.places, closed.places]
            bars += [closed.bars, closed.bars + 1]
            lags += [np.zeros_like(closed.bars), np.ones_like(closed.bars)]
            kinds += [closed.sources, closed.sources]
            whose += [np.full_like(closed.bars, _SHARES)] * 2
        if is_daily and begins[0] != NEVER:
            days = (np.diff(ends) + NS_PER_DAY // 2) // NS_PER_DAY
            after = np.flatnonzero(days > 1)
            events.append(np.full_like(after, NO_EVENT))
            bars.append(after + 1)
            lags.append(np.zeros_like(after))
            kinds.append(self._first_gap + np.minimum(days[after] - 2, len(_GAPS) - 1))
            whose.append(np.full_like(after, _ALL))
        at, lag, kind, place, of = (np.concatenate(each) for each in (bars, lags, kinds, events, whose))
        order = np.argsort(at, kind="stable")
        order = order[(at[order] >= 1) & (at[order] < num_bars)]
        if not len(order) and companies is None:
            return None
        at, lag, kind, place, of = at[order], lag[order], kind[order], place[order], of[order]
        variances = self.effects.variances(rows, kind)[:, np.arange(len(kind)), lag]
        if len(closed.bars):
            is_pair = self.effects.are_pairs(rows)[:, None]
            variances = np.where((of == np.where(is_pair, _SHARES, _PAIRS)), 0.0, variances)
        return Contributions(rows, CommonEvents(place, kind, lag, at, variances), companies)

    def _results_before_session(self, session: Instants, ends: Instants) -> PlacedEvents:
        """The results that came in the pause before the session that goes on, with its first bar; bars end at `ends`
        [1 + B].
        """
        pause_ns, open_ns = session.tolist()
        over_ns, places = int(ends[0]) - open_ns, np.empty(0, np.intp)
        if pause_ns != NEVER and 0 <= over_ns < _SESSION_NS:
            found = self._table.within(max(pause_ns, open_ns - _LONGEST_PAUSE_NS), open_ns, int(ends[0]))
            is_own = self.effects.is_of_company[self._table.kind[found]]
            places = found[is_own & self._table.is_exact[found]]
        first = 1 - round(over_ns / max(int(np.diff(ends).min()), 1))
        return PlacedEvents(
            self._table.kind[places], np.full(len(places), first), places, np.zeros(len(places), np.bool_)
        )

    def stated(self, coming: NextBars, quiet: dict[int, EventFactor]) -> dict[int, KnownEvents]:
        """By row, what events, gaps and days that are `quiet` make of the next bar's band; those that they change by
        less than a tenth are left out."""
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

    def learn(self, closing: Sequence[HeldEvents], batch: BarBatch, ratio: Array, num_rows: int) -> None:
        """Take in what the bars that closed held; `ratio` [n] as `KnownVariance.learn` has it."""
        if not closing:
            return
        place = np.full(num_rows, -1)
        place[batch.index] = np.arange(len(batch.index))
        for held in closing:
            seen = ratio[place[held.rows]]
            if self._surprises is not None:
                events = (held.lags == 0) & (held.places != NO_EVENT)
                end_ns = int(batch.end_ns[place[held.rows[0]]])
                closed = ClosedBar(held.rows, held.places[events], held.sources[events], Z90 * seen, end_ns)
                self._surprises.learn(closed)
            self.effects.learn(held.with_ratio(np.abs(seen)))

    def facts(self, names: Sequence[str]) -> list[KindFacts]:
        """What was learnt of a calendar's events, for series of these names by row; empty without a calendar."""
        if self._surprises is None:
            return []
        return event_facts(self.effects, self._surprises, self._table.kinds, names)

    def state(self) -> dict[str, Any]:
        surprises = self._surprises.state() if self._surprises is not None else {}
        return {"effects": self.effects.state(), "surprises": surprises}

    def restore(self, state: dict[str, Any]) -> None:
        """The series are added before."""
        self.effects.restore(state["effects"])
        if self._surprises is not None and state.get("surprises"):
            self._surprises.restore(state["surprises"])


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
