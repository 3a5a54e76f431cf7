"""When a row happened and when it became known: reads instants and dates, strictly. The row parser calls it."""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_S, parse_timestamp, session_time_ns
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.spec import UNITS, SourceSpec, read_clock_time

EARLIEST_NS = -2_208_988_800 * NS_PER_S  # 1900-01-01
LATEST_NS = 7_258_118_400 * NS_PER_S  # 2200-01-01

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEYOND_US = re.compile(r"[.,]\d{7,}")
_LONGEST_TEXT = 64


class Instant(msgspec.Struct, frozen=True, gc=False):
    """A timestamp that a typed file stores: nanoseconds since 1970, of UTC or of a zone that the file leaves open."""

    ns: int
    zoned: bool


def read_time(value: Any, zone: ZoneInfo | None, unit: str) -> int | date:
    """UTC nanoseconds of an instant, or the date of a row that is dated by day. Raises: Refusal."""
    try:
        kind = type(value)
        if kind is str:
            found = _from_text(value, zone, unit)
        elif kind is Instant:
            found = (
                value.ns
                if value.zoned
                else _ns(_localise(_EPOCH + timedelta(microseconds=value.ns // 1000), zone))
            )
            found += 0 if value.zoned else value.ns % 1000
        elif kind is int or kind is float:
            found = _from_number(value, unit)
        elif isinstance(value, datetime):
            found = _ns(value if value.tzinfo else _localise(value, zone))
        elif isinstance(value, date):
            found = value
        else:
            raise Refusal(Reason.BAD_TIME, f"{_show(value)} is no timestamp")
    except (ValueError, OverflowError) as error:
        raise Refusal(Reason.BAD_TIME, f"{_show(value)} is no timestamp") from error
    if isinstance(found, date):
        if not 1900 <= found.year < 2200:
            raise Refusal(Reason.ABSURD_TIME, f"{found} is not between 1900 and 2200")
    elif not EARLIEST_NS <= found < LATEST_NS:
        raise Refusal(Reason.ABSURD_TIME, f"{_show(value)} is not between 1900 and 2200")
    return found


@dataclass(slots=True)
class DayRule:
    """When rows that carry a date only become known. Where the mapping states no time:

    bars at 16:00 New York; news and macro values at the next session's open, 09:30 New York on the next weekday.
    """

    zone: ZoneInfo
    at: tuple[int, int] | None
    delayed: bool
    _closes: dict[date, int] = field(default_factory=dict[date, int])
    _opens: dict[date, int] = field(default_factory=dict[date, int])

    @classmethod
    def of(cls, spec: SourceSpec) -> "DayRule":
        at = read_clock_time(spec.date_at) if spec.date_at else None
        return cls(ZoneInfo(spec.date_zone), at, bool(spec.delay))

    def start(self, day: date) -> int:
        return session_time_ns(day, 0, 0, self.zone)

    def close(self, day: date) -> int:
        """The end of a bar of this date."""
        found = self._closes.get(day)
        if found is None:
            found = self._closes[day] = self._at(day, self.at or (16, 0))
        return found

    def known(self, day: date) -> int:
        """When an item or a value of this date is published, before any stated delay."""
        found = self._opens.get(day)
        if found is None:
            stated = self.at or ((24, 0) if self.delayed else None)
            found = self._opens[day] = (
                self._at(day, stated) if stated else self._at(next_weekday(day), (9, 30))
            )
        return found

    def _at(self, day: date, clock: tuple[int, int]) -> int:
        if clock == (24, 0):
            return session_time_ns(day + timedelta(days=1), 0, 0, self.zone)
        return session_time_ns(day, *clock, self.zone)


def next_weekday(day: date) -> date:
    """The first Monday to Friday after a date. Holidays count as open: known too late does no harm on them."""
    return day + timedelta(days=max(1, 7 - day.weekday()) if day.weekday() >= 4 else 1)


def _from_text(text: str, zone: ZoneInfo | None, unit: str) -> int | date:
    text = text.strip()
    if not text or len(text) > _LONGEST_TEXT:
        raise Refusal(Reason.MISSING_FIELD if not text else Reason.BAD_TIME, f"{_show(text)} is no timestamp")
    if len(text) == 10 and text[4] == "-" == text[7]:
        return date.fromisoformat(text)
    if text.isdecimal() or (text[0] == "-" and text[1:].isdecimal()):
        return _from_number(int(text), unit)
    if len(text) > 26 and _BEYOND_US.search(text):
        try:
            return parse_timestamp(text, zone)
        except InvalidInput as error:
            raise Refusal(
                Reason.NO_ZONE if "no zone" in str(error) else Reason.BAD_TIME, str(error)
            ) from error
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _from_number(float(text), unit)
    return _ns(moment if moment.tzinfo else _localise(moment, zone))


def _from_number(value: int | float, unit: str) -> int | date:
    """A count since 1970 in `unit`; without one, its size tells; eight digits such as 20131007 are a date."""
    if not unit:
        if 1900_01_01 <= value < 2200_01_01 and value == (whole := int(value)):
            return date(whole // 10_000, whole // 100 % 100, whole % 100)
        size = abs(value)
        unit = "s" if size < 1e11 else "ms" if size < 1e14 else "us" if size < 1e17 else "ns"
    if isinstance(value, int):
        return value * UNITS[unit]
    whole = int(value // 1)
    grain_ns = 1000 if unit == "s" else 1  # a float64 of seconds is exact to the microsecond, no further
    return whole * UNITS[unit] + round((value - whole) * UNITS[unit] / grain_ns) * grain_ns


def _localise(moment: datetime, zone: ZoneInfo | None) -> datetime:
    if zone is None:
        raise Refusal(
            Reason.NO_ZONE, f"'{moment.replace(tzinfo=None)}' has no zone: state `zone` in the feed's mapping"
        )
    return moment.replace(tzinfo=zone)


def _ns(moment: datetime) -> int:
    since = moment - _EPOCH
    return since.days * NS_PER_DAY + since.seconds * NS_PER_S + since.microseconds * 1000


def _show(value: Any) -> str:
    text = str(value)
    return f"'{text[:_LONGEST_TEXT]}'"
