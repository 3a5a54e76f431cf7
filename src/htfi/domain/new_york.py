"""New York's clock: the hours of US equities and the week of currencies. Pure, in arrays of instants."""

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from htfi.domain.time import NS_PER_S, format_ns

Instants = NDArray[np.int64]

_ZONE = ZoneInfo("America/New_York")
_FIRST_YEAR, _LAST_YEAR = 1970, 2100
_HOUR_S = 3600
_YEAR_S = 31_556_952
_DAY_NS = 86_400 * NS_PER_S


def to_local_ns(utc_ns: Instants) -> Instants:
    """Nanoseconds that New York's wall clock shows since its own 1970-01-01 0:00, at instants [...] in UTC."""
    changes, offsets = _offsets_about(utc_ns)
    return utc_ns + offsets[np.searchsorted(changes, utc_ns, "right")]


def closing_ns(ends_ns: Instants) -> Instants:
    """What New York's wall clock shows, since its own 1970-01-01 0:00, just before instants [...] in UTC.

    Its date is the day that a bar of a day or longer belongs to: one that carries a date alone ends at that day's end.
    """
    return to_local_ns(ends_ns - 1)


def closing_day(end_ns: int) -> str:
    """The date that New York's wall clock shows just before an instant in UTC: 2024-01-05 for midnight of the 6th."""
    return format_ns(int(closing_ns(np.array([end_ns], np.int64))[0]))[:10]


def to_utc_ns(local_ns: Instants) -> Instants:
    """The instants at which New York's wall clock shows this; of an hour that it shows twice the earlier."""
    changes, offsets = _offsets_about(local_ns)
    before = offsets[np.searchsorted(changes, local_ns - offsets.max(), "right")]
    return local_ns - offsets[np.searchsorted(changes, local_ns - before, "right")]


def _offsets_about(instants_ns: Instants) -> tuple[Instants, Instants]:
    if not instants_ns.size:
        return _offsets(_FIRST_YEAR, _FIRST_YEAR + 1)
    return clock_between(int(instants_ns.min()), int(instants_ns.max()))


def clock_between(first_ns: int, last_ns: int) -> tuple[Instants, Instants]:
    """When the distance of New York's clock from UTC changes about these instants and between them [C], and what it is
    before the first and after each change [C + 1]; nanoseconds."""
    first_ns, last_ns = first_ns - _DAY_NS, last_ns + _DAY_NS
    years = [
        min(max(1970 + at // NS_PER_S // _YEAR_S, _FIRST_YEAR), _LAST_YEAR) for at in (first_ns, last_ns)
    ]
    return _offsets(max(years[0] - 1, _FIRST_YEAR), years[1] + 2)


@lru_cache(maxsize=16)
def _offsets(first: int, beyond: int) -> tuple[Instants, Instants]:
    """When the distance from UTC changes in these years, and what it is before the first and after each change."""
    changes: list[int] = []
    offsets = [_offset_s(_month_s(first, 1))]
    for year in range(first, beyond):
        for month in range(1, 13):
            low, high = _month_s(year, month), _month_s(year + month // 12, month % 12 + 1)
            if _offset_s(high) == offsets[-1]:
                continue
            while high - low > _HOUR_S:
                middle = (low + high) // (2 * _HOUR_S) * _HOUR_S
                low, high = (middle, high) if _offset_s(middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(_offset_s(high))
    return np.array(changes, np.int64) * NS_PER_S, np.array(offsets, np.int64) * NS_PER_S


def _month_s(year: int, month: int) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp())


def _offset_s(utc_s: int) -> int:
    offset = datetime.fromtimestamp(utc_s, UTC).astimezone(_ZONE).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())
