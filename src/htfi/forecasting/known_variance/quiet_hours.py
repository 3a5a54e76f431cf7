"""Hours of a day without a session in New York, in which pairs of currencies move less."""

import numpy as np
from numpy.typing import NDArray

from htfi.domain.new_york import to_local_ns
from htfi.domain.time import NS_PER_DAY, NS_PER_S

Instants = NDArray[np.int64]
Days = NDArray[np.int64]

KIND = "market_closed"  # in the table of priors
_HOUR_NS = 3600 * NS_PER_S
_FIRST, _BEYOND = 8, 18  # hours of New York, in which its banks and exchanges would work


def may_hold(begin_ns: Instants, closed: Days) -> bool:
    """Whether any of these days, rising, counted since 1970-01-01, is among those on which bars begin."""
    if not len(closed) or not begin_ns.size:
        return False
    ends = to_local_ns(np.array([begin_ns.min(), begin_ns.max()])) // NS_PER_DAY
    first, beyond = np.searchsorted(closed, [ends[0], ends[1] + 1])
    return bool(first < beyond)


def are_quiet(begin_ns: Instants, closed: Days) -> NDArray[np.bool_]:
    """Whether each bar [...] begins in working hours of one of these days."""
    local = to_local_ns(begin_ns)
    hour = local % NS_PER_DAY // _HOUR_NS
    return np.isin(local // NS_PER_DAY, closed) & (hour >= _FIRST) & (hour < _BEYOND)
