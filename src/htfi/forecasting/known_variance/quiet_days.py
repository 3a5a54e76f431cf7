"""Days of the year on which daily bars move less: around the year's end, before holidays, and on half days."""

from collections.abc import Mapping
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.new_york import to_local_ns
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.known_variance.coming_bars import next_day

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Days = NDArray[np.int64]

KINDS = ("half_day", "year_end", "before_year_end", "before_holiday", "two_before_holiday")
_EPOCH = date(1970, 1, 1).toordinal()
_DECEMBER = 11  # months are counted from 0
_YEAR_END = (24, 31)  # of December
_BEFORE_YEAR_END = (20, 23)
_NO_DAYS = np.empty(0, np.int64)
_WEEK_DAYS, _SLACK_DAYS = 5, 10  # days with a bar in a week; holidays and days around midnight


def is_near_year_end(end_ns: int, num_bars: int) -> bool:
    """Whether a quiet day of December may be among so many daily bars after one that ends then, or that one."""
    return _is_near(_EPOCH + end_ns // NS_PER_DAY, num_bars)


@lru_cache(maxsize=64)
def _is_near(day: int, num_bars: int) -> bool:
    first, last = day - _SLACK_DAYS, day + num_bars * 7 // _WEEK_DAYS + _SLACK_DAYS
    return date(date.fromordinal(first).year, _DECEMBER + 1, _BEFORE_YEAR_END[0]).toordinal() <= last


class QuietDays:
    """Factors of the variance of daily bars by the day on which they end, in New York; of one asset class."""

    def __init__(self, log_scales: Mapping[str, float]) -> None:
        """`log_scales`: the log factor of scale of each of KINDS that has one."""
        self.has_any = bool(log_scales)
        logs = np.array([log_scales.get(kind, 0.0) for kind in KINDS] + [0.0])
        self._variances = exact.exp(2.0 * logs)

    def variances(self, end_ns: Instants, closed: Days = _NO_DAYS, half: Days = _NO_DAYS) -> Array:
        """Factors [...] of the variance of bars that end then; `closed` and `half` are days without a session and of
        short ones, counted since 1970-01-01. A day that is several counts as the first in the order of KINDS."""
        return self._variances[self.kinds(end_ns, closed, half)]

    def kinds(self, end_ns: Instants, closed: Days = _NO_DAYS, half: Days = _NO_DAYS) -> NDArray[np.int64]:
        """The kinds [...] of these days, by their places in KINDS; beyond them where a day is none."""
        days = to_local_ns(end_ns) // NS_PER_DAY
        december = days.astype("datetime64[D]").astype("datetime64[M]")
        of_month = days - december.astype("datetime64[D]").astype(np.int64) + 1
        is_december = december.astype(np.int64) % 12 == _DECEMBER
        kind = np.full(days.shape, len(KINDS))
        if len(closed):
            following = next_day(days, False)
            kind[np.isin(next_day(following, False), closed)] = KINDS.index("two_before_holiday")
            kind[np.isin(following, closed)] = KINDS.index("before_holiday")
        for name, (first, last) in (("before_year_end", _BEFORE_YEAR_END), ("year_end", _YEAR_END)):
            kind[is_december & (of_month >= first) & (of_month <= last)] = KINDS.index(name)
        if len(half):
            kind[np.isin(days, half)] = KINDS.index("half_day")
        return kind
