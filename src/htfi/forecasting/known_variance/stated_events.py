"""What a decision states of what was known of the next bar: the factor of each event, gap and quiet day, and of all."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.domain.decision import EventFactor, KnownEvents
from htfi.forecasting.known_variance.event_effects import combine

MIN_CHANGE = 0.1  # of a band's width; less is left out
MAX_EVENTS = 3
_DIGITS = 3  # a record keeps thousandths in few bytes


def stated_events(
    rows: NDArray[np.intp],
    kinds: Sequence[str],
    times_ns: Sequence[int],
    lags: Sequence[int],
    variances: NDArray[np.float64],
    quiet: Mapping[int, EventFactor],
) -> dict[int, KnownEvents]:
    """What m events and gaps in one bar make of the bands of n series, by row; without those whose band hardly changes.

    Shapes: rows [n]; variances [n, m], factors of the variance, 0 where an event is none of a series'. `lags` are 0
    for those that it holds, more for those that it follows;
    `quiet` is what the bar's day or hour is, by row; it multiplies the others.
    """
    days = [quiet.get(row) for row in rows.tolist()]
    width = np.sqrt(combine(variances)) * np.array([1.0 if day is None else day.factor for day in days])
    factors = np.sqrt(variances)
    found: dict[int, KnownEvents] = {}
    for place in np.flatnonzero(np.abs(width - 1.0) >= MIN_CHANGE).tolist():
        own, day = factors[place], days[place]
        stated = [
            EventFactor(
                kinds[event],
                times_ns[event],
                round(float(own[event]), _DIGITS),
                True if lags[event] else UNSET,
            )
            for event in np.flatnonzero((own > 0.0) & (np.abs(own - 1.0) >= MIN_CHANGE)).tolist()
        ]
        if day is not None and abs(day.factor - 1.0) >= MIN_CHANGE:
            stated.append(EventFactor(day.kind, day.time_ns, round(day.factor, _DIGITS)))
        stated.sort(key=lambda one: (-max(one.factor, 1.0 / one.factor), one.time_ns, one.kind))
        found[int(rows[place])] = KnownEvents(round(float(width[place]), _DIGITS), tuple(stated[:MAX_EVENTS]))
    return found


def stated_days(quiet: Mapping[int, EventFactor]) -> dict[int, KnownEvents]:
    """The same of bars of which nothing else is known."""
    rows = np.array(list(quiet), np.intp)
    return stated_events(rows, [], [], [], np.zeros((len(rows), 1)), quiet)
