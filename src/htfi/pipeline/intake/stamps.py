"""Instants and dates, read strictly, and when a row that is dated by day becomes known. `times` calls it."""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_S, NS_PER_US, parse_timestamp, session_time_ns
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.spec import UNITS, SourceSpec, read_clock_time

EARLIEST_NS = -2_208_988_800 * NS_PER_S  # 1900-01-01
LATEST_NS = 7_258_118_400 * NS_PER_S  # 2200-01-01

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEYOND_US = re.compile(r"[.,]\d{7,}")
_NUMBER = re.compile(r"-?\d+\.\d*|-?\d+(\.\d*)?[eE][+-]?\d+")
_LONGEST_TEXT = 64


class Instant(msgspec.Struct, frozen=True, gc=False):
    """A timestamp of a typed file: nanoseconds since 1970, of UTC or of a zone that the file leaves open."""

    ns: int
    zoned: bool


def read_time(value: Any, zone: ZoneInfo | None, unit: str) -> int | date:
    """UTC nanoseconds of an instant, or the date of a row that is dated by day. Raises: Refusal."""
    try:
        usual = type(value) is str and 19 < len(value) < 27  # an instant to the microsecond at most
        found = _from_iso(value, zone) if usual else _from_any(value, zone, unit)
    except (ValueError, OverflowError) as error:
        raise Refusal(Reason.BAD_TIME, f"{_show(value)} is no timestamp") from error
    if isinstance(found, int):
        if EARLIEST_NS <= found < LATEST_NS:
            return found
    elif 1900 <= found.year < 2200:
        return found
    raise Refusal(Reason.ABSURD_TIME, f"{_show(value)} is not between 1900 and 2200")


@dataclass(slots=True)
class DayRule:
    """When rows that carry a date only become known. Where the mapping states no time:

    bars at the end of the day in New York, past the close of every market that day, round-the-clock ones
    too; news and macro values at the next session's open, 09:30 New York of the next weekday.
    """

    zone: ZoneInfo
    at: tuple[int, int] | None
    delayed: bool
    _closes: dict[date, int] = field(default_factory=dict[date, int])
    _opens: dict[date, int] = field(default_factory=dict[date, int])
    _starts: dict[date, int] = field(default_factory=dict[date, int])

    @classmethod
    def of(cls, spec: SourceSpec) -> "DayRule":
        at = read_clock_time(spec.date_at) if spec.date_at else None
        return cls(ZoneInfo(spec.date_zone), at, bool(spec.delay))

    def start(self, day: date) -> int:
        """The midnight with which a bar of this date begins."""
        found = self._starts.get(day)
        if found is None:
            found = self._starts[day] = self._at(day, (0, 0))
        return found

    def close(self, day: date) -> int:
        """The end of a bar of this date."""
        found = self._closes.get(day)
        if found is None:
            found = self._closes[day] = self._at(day, self.at or (24, 0))
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
    """The first Monday to Friday after a date. Holidays count as open: to know too early is what harms."""
    return day + timedelta(days=max(1, 7 - day.weekday()) if day.weekday() >= 4 else 1)


def _from_any(value: Any, zone: ZoneInfo | None, unit: str) -> int | date:
    if isinstance(value, str):
        return _from_text(value.strip(), zone, unit)
    if isinstance(value, Instant):
        if value.zoned:
            return value.ns
        whole_us, rest_ns = divmod(value.ns, NS_PER_US)
        return _ns(_localise(_EPOCH + timedelta(microseconds=whole_us), zone)) + rest_ns
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _from_number(value, unit)
    if isinstance(value, datetime):
        return _ns(value if value.tzinfo else _localise(value, zone))
    if isinstance(value, date):
        return value
    raise ValueError(value)


def _from_text(text: str, zone: ZoneInfo | None, unit: str) -> int | date:
    if not text:
        raise Refusal(Reason.MISSING_FIELD, "the row has no time")
    if len(text) > _LONGEST_TEXT:
        raise ValueError(text)
    if len(text) == 10 and text[4] == "-" == text[7]:
        return date.fromisoformat(text)
    if text.isdecimal() or (text[0] == "-" and text[1:].isdecimal()):
        return _from_number(int(text), unit)
    if _NUMBER.fullmatch(text):
        return _from_number(float(text), unit)
    if not _BEYOND_US.search(text):
        return _from_iso(text, zone)
    try:
        return parse_timestamp(text, zone)
    except InvalidInput as error:
        raise Refusal(Reason.NO_ZONE if "no zone" in str(error) else Reason.BAD_TIME, str(error)) from error


def _from_iso(text: str, zone: ZoneInfo | None) -> int:
    moment = datetime.fromisoformat(text)
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
    return (since.days * 86_400 + since.seconds) * NS_PER_S + since.microseconds * NS_PER_US


def _show(value: Any) -> str:
    text = str(value)
    return f"'{text[:_LONGEST_TEXT]}'"
