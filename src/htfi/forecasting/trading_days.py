"""Which day a daily bar is of, as lines about it name it: its exchange's, whatever the hour that its bar ends at."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_S, parse_duration

# Exchanges whose sessions end on another date than New York's then shows; all others end on it.
_ELSEWHERE = (
    (re.compile(r".+\.AX|ASX[:_].+|\^A[XF]JO", re.IGNORECASE), ZoneInfo("Australia/Sydney")),
    (re.compile(r".+\.NZ|NZX[:_].+|\^NZ50", re.IGNORECASE), ZoneInfo("Pacific/Auckland")),
)
_NEW_YORK = ZoneInfo("America/New_York")
_MONDAY, _SATURDAY, _SUNDAY = 1 << 0, 1 << 5, 1 << 6
_MIN_WEEKDAYS = 3  # before anything is concluded from them


class TradingDays:
    """The weekdays on which the daily bars of N series have ended since the start, by the clock of their exchange.

    Bars that end on Saturdays, and neither on Sundays nor on Mondays, are of the day before: times of closes that were
    taken for starts, or days that began in New York and ended in Sydney.
    """

    def __init__(self) -> None:
        self._zones = list[ZoneInfo | None]()  # by row; None where bars are not of a day
        self._weekdays = list[int]()  # bits, Monday first
        self._has_any = False

    def add(self, symbol: str, interval: str) -> None:
        """Make the next row, of a series."""
        self._zones.append(_zone(symbol) if _is_day(interval) else None)
        self._weekdays.append(0)
        self._has_any = self._has_any or self._zones[-1] is not None

    def enter(self, index: NDArray[np.intp], end_ns: int) -> None:
        """Take in bars of these rows that ended then."""
        if not self._has_any:
            return
        rows: list[int] = index.tolist()
        for row in rows:
            zone = self._zones[row]
            if zone is not None:
                self._weekdays[row] |= 1 << _weekday(end_ns, zone)

    def day(self, row: int, end_ns: int, like: int = -1) -> str:
        """The day (ISO) of a row's bar that ended then; as the row `like` dates its own, where one is given."""
        day = _moment(end_ns, self._zones[row] or _NEW_YORK).date()
        return str(day - timedelta(days=1) if self.are_late(row if like < 0 else like) else day)

    def are_late(self, row: int) -> bool:
        """Whether a row's bars end on the day after their own."""
        weekdays = self._weekdays[row]
        return (
            weekdays.bit_count() >= _MIN_WEEKDAYS
            and bool(weekdays & _SATURDAY)
            and not weekdays & (_SUNDAY | _MONDAY)
        )

    def may_be_closes(self, row: int) -> bool:
        """Whether a row's times may be of closes that were taken for starts."""
        return self.are_late(row) and self._zones[row] is _NEW_YORK


def _zone(symbol: str) -> ZoneInfo:
    return next((zone for names, zone in _ELSEWHERE if names.fullmatch(symbol)), _NEW_YORK)


@lru_cache(maxsize=64)
def _is_day(interval: str) -> bool:
    try:
        return parse_duration(interval) == NS_PER_DAY
    except InvalidInput:
        return False


@lru_cache(maxsize=64)
def _weekday(end_ns: int, zone: ZoneInfo) -> int:
    return _moment(end_ns, zone).weekday()


def _moment(end_ns: int, zone: ZoneInfo) -> datetime:
    """Just before a bar's end: one of a date alone ends at that day's end."""
    return datetime.fromtimestamp((end_ns - 1) // NS_PER_S, UTC).astimezone(zone)
