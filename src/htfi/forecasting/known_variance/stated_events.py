"""What a decision states of the events that its band was made for: the factor of each, and of all together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import EventFactor, KnownEvents
from htfi.forecasting.known_variance.event_effects import combine

MIN_CHANGE = 0.1  # of a band's width; less is left out
MAX_EVENTS = 3
_DIGITS = 3  # a record keeps thousandths in few bytes


def stated_events(
    rows: NDArray[np.intp], kinds: Sequence[str], times_ns: Sequence[int], variances: NDArray[np.float64]
) -> dict[int, KnownEvents]:
    """What m events in one bar make of the bands of n series, by row; without those whose band hardly changes.

    Shapes: rows [n]; variances [n, m], factors of the variance, 0 where an event is none of a series'.
    """
    width = np.sqrt(combine(variances))
    factors = np.sqrt(variances)
    found: dict[int, KnownEvents] = {}
    for place in np.flatnonzero(np.abs(width - 1.0) >= MIN_CHANGE).tolist():
        own = factors[place]
        stated = [
            EventFactor(kinds[event], times_ns[event], round(float(own[event]), _DIGITS))
            for event in np.flatnonzero((own > 0.0) & (np.abs(own - 1.0) >= MIN_CHANGE)).tolist()
        ]
        stated.sort(key=lambda one: (-max(one.factor, 1.0 / one.factor), one.time_ns, one.kind))
        found[int(rows[place])] = KnownEvents(round(float(width[place]), _DIGITS), tuple(stated[:MAX_EVENTS]))
    return found
