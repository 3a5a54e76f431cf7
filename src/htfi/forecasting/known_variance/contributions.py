"""What events and gaps do to the variance of coming bars: those that all series share, and those of single companies.

Of hundreds of shares in a season of reports each event concerns one: those are kept as a list, not as a table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting.known_variance.event_effects import (
    NUM_LAGS,
    BarWithEvents,
    EventEffects,
    combined_variance,
)

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Rows = NDArray[np.intp]

NO_EVENT = -1  # the place of a gap in the table of events


@dataclass(frozen=True, slots=True, eq=False)
class HeldEvents:
    """What moved the variance of one bar of n series: m events and gaps.

    Shapes: rows [n]; places, of events in the table, `NO_EVENT` for a gap, sources and lags [m]; variances [n, m], 0
    where one is none of a series'.
    """

    rows: Rows
    places: Places
    sources: Places
    lags: Places
    variances: Array

    def with_ratio(self, ratio: Array) -> BarWithEvents:
        """With the sizes [n] of the returns over half the band that was forecast."""
        return BarWithEvents(self.rows, self.sources, self.lags, self.variances, ratio)


@dataclass(frozen=True, slots=True, eq=False)
class CommonEvents:
    """m events and gaps that may concern all of n series, in the order of their bars.

    Shapes: places, sources, lags and bars [m]; variances [n, m], 0 where one is none of a series'.
    """

    places: Places
    sources: Places
    lags: Places
    bars: Places
    variances: Array


class PlacedEvents(NamedTuple):
    """m events by source, bar and place in the table. One that is not `inside` its bar came in the pause before it."""

    sources: Places
    bars: Places
    places: Places
    inside: NDArray[np.bool_]

    def joined(self, others: "PlacedEvents") -> "PlacedEvents":
        """These and others."""
        return PlacedEvents(
            np.concatenate([self.sources, others.sources]),
            np.concatenate([self.bars, others.bars]),
            np.concatenate([self.places, others.places]),
            np.concatenate([self.inside, others.inside]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class CompanyEvents:
    """E pairs of a series and an event of its company.

    Shapes: at, the place of the series in its group, places, sources, lags, bars and variances [E].
    """

    at: Rows
    places: Places
    sources: Places
    lags: Places
    bars: Places
    variances: Array

    @classmethod
    def of(
        cls, effects: EventEffects, rows: Rows, events: PlacedEvents, sessions: Places, session_bars: int
    ) -> "CompanyEvents | None":
        """Of events those on series of `rows`: in their bar and in the next. One that is not inside its bar moves the
        `session_bars` from that bar on, as far as its session goes, each less than the one before. `sessions` [1 + B]
        number the sessions of the bars.
        """
        sources, bars, places, inside = events
        num_bars = len(sessions)
        if not len(sources):
            return None
        event, row = effects.series_of(sources)
        found = np.full(effects.num_series, NO_EVENT)
        found[rows] = np.arange(len(rows))
        at = found[row]
        event, at = event[at >= 0], at[at >= 0]
        variances = effects.own_variances(rows[at], sources[event])  # [E, L]
        within = inside[event]
        held, after = np.flatnonzero(within), np.flatnonzero(~within)
        parts = [
            (at[held], event[held], np.full_like(held, lag), bars[event[held]] + lag, variances[held, lag])
            for lag in range(NUM_LAGS)
        ]
        first = bars[event[after]]
        for k in range(session_bars if len(after) else 0):
            goes_on = (
                sessions[np.clip(first + k, 0, num_bars - 1)] == sessions[np.clip(first, 0, num_bars - 1)]
            )
            of = after[goes_on]
            size = exact.exp(exact.log(variances[of, 1]) / math.sqrt(1.0 + k))
            parts.append((at[of], event[of], np.full_like(of, 1 + k), first[goes_on] + k, size))
        at, event, lags, bar, size = (np.concatenate(each) for each in zip(*parts, strict=True))
        ahead = (bar >= 1) & (bar < num_bars)
        if not ahead.any():
            return None
        at, event, lags, bar, size = (each[ahead] for each in (at, event, lags, bar, size))
        return cls(at, places[event], sources[event], lags, bar, size)


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """What moves the variance of bars of rows [n] with the same spans."""

    rows: Rows
    common: CommonEvents
    companies: CompanyEvents | None

    def factors(self, num_bars: int) -> Array:
        """Factors [n, B] of the variance of so many bars: the largest of a bar's events, and a share of the others."""
        largest, excess = np.zeros((2, len(self.rows), num_bars))
        bars, variances = self.common.bars, self.common.variances
        starts = np.flatnonzero(np.diff(bars, prepend=-1))
        if len(starts):
            largest[:, bars[starts]] = np.maximum.reduceat(variances, starts, axis=1)
            excess[:, bars[starts]] = np.add.reduceat(np.maximum(variances - 1.0, 0.0), starts, axis=1)
        if (own := self.companies) is not None:
            np.maximum.at(largest, (own.at, own.bars), own.variances)
            np.add.at(excess, (own.at, own.bars), np.maximum(own.variances - 1.0, 0.0))
        return combined_variance(largest, excess)

    def of_bar(self, bar: int) -> Sequence[HeldEvents]:
        """What one bar held: of the series without events of their company, and of those with some."""
        common, own = self.common, self.companies
        there = np.flatnonzero(common.bars == bar)
        mine = np.flatnonzero(own.bars == bar) if own is not None else there[:0]
        with_own = np.unique(own.at[mine]) if own is not None else there[:0]
        rest = np.delete(np.arange(len(self.rows)), with_own)
        found: list[HeldEvents] = []
        shared = (common.places[there], common.sources[there], common.lags[there])
        if len(there) and len(rest):
            found.append(HeldEvents(self.rows[rest], *shared, common.variances[np.ix_(rest, there)]))
        if own is not None and len(mine):
            variances = np.zeros((len(with_own), len(there) + len(mine)))
            variances[:, : len(there)] = common.variances[np.ix_(with_own, there)]
            columns = len(there) + np.arange(len(mine))
            variances[np.searchsorted(with_own, own.at[mine]), columns] = own.variances[mine]
            listed = (own.places[mine], own.sources[mine], own.lags[mine])
            places, sources, lags = (np.concatenate(pair) for pair in zip(shared, listed, strict=True))
            found.append(HeldEvents(self.rows[with_own], places, sources, lags, variances))
        return found
