"""Parses instants and dates strictly, and decides when a row happened, when it became known and which span a bar
covers.

The row parsers call it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from htfi.domain.errors import InvalidInput, MissingZone
from htfi.domain.time import (
    NS_PER_DAY,
    NS_PER_S,
    NS_PER_US,
    format_duration,
    parse_duration,
    parse_timestamp,
    session_time_ns,
)
from htfi.domain.written_days import DayOrder, in_iso_order, is_either_way
from htfi.pipeline.intake.bar_spacing import BarSpacings, begin_ns, is_timed, read_interval
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import ColumnLayout
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, RowRefused
from htfi.pipeline.intake.spec import UNITS, SourceSpec, read_clock_time

MIN_TIME_NS = -2_208_988_800 * NS_PER_S  # 1900-01-01
MAX_TIME_NS = 7_258_118_400 * NS_PER_S  # 2200-01-01

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEYOND_US = re.compile(r"[.,]\d{7,}")
_NUMBER = re.compile(r"-?\d+\.\d*|-?\d+(\.\d*)?[eE][+-]?\d+")
_MAX_TEXT_CHARS = 64


_FIRST_SHOWN_S, _LAST_SHOWN_S = -62_135_596_800, 253_402_300_800  # the years 1 to 9999


class FileTimestamp(msgspec.Struct, frozen=True, gc=False):
    """A timestamp of a typed file: nanoseconds since 1970, of UTC or of a zone that the file leaves open."""

    ns: int
    zoned: bool

    def __str__(self) -> str:
        seconds, rest_ns = divmod(self.ns, NS_PER_S)
        if not _FIRST_SHOWN_S <= seconds < _LAST_SHOWN_S:
            return f"{self.ns} ns since 1970"
        text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
        return f"{text}{f'.{rest_ns:09}' if rest_ns else ''}{'Z' if self.zoned else ''}"


def read_time(value: Any, zone: ZoneInfo | None, unit: str, order: DayOrder = "") -> int | date:
    """UTC nanoseconds of an instant, or the date of a row that is dated by day; `order` is that of 03/04/2021.

    Raises: RowRefused.
    """
    try:
        usual = type(value) is str and 19 < len(value) < 27  # an instant to the microsecond at most
        found = _from_iso(value, zone) if usual else _from_any(value, zone, unit)
    except (ValueError, OverflowError) as error:
        found = _from_written(value, zone, order, error)
    if isinstance(found, int):
        if MIN_TIME_NS <= found < MAX_TIME_NS:
            return found
    elif 1900 <= found.year < 2200:
        return found
    raise RowRefused(QuarantineReason.ABSURD_TIME, f"{_quoted(value)} is not between 1900 and 2200")


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
    if isinstance(value, FileTimestamp):
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
        raise RowRefused(QuarantineReason.MISSING_FIELD, "the row has no time")
    if len(text) > _MAX_TEXT_CHARS:
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
    except MissingZone as error:
        raise RowRefused(QuarantineReason.NO_ZONE, str(error)) from error
    except InvalidInput as error:
        raise RowRefused(QuarantineReason.BAD_TIME, str(error)) from error


def _from_written(value: Any, zone: ZoneInfo | None, order: DayOrder, error: Exception) -> int | date:
    """A day or an instant that is not written as ISO 8601. Raises: RowRefused."""
    text = value.strip() if isinstance(value, str) and len(value) <= _MAX_TEXT_CHARS else ""
    iso = in_iso_order(text, order)
    if iso is None:
        open_order = not order and is_either_way(text)
        why = (
            'states month and day in an order that its source leaves open: state dates = "month_first" or '
            '"day_first"'
            if open_order
            else "is not a timestamp"
        )
        raise RowRefused(QuarantineReason.BAD_TIME, f"{_quoted(value)} {why}") from error
    try:
        return _from_text(iso, zone, "")
    except (ValueError, OverflowError):
        raise RowRefused(QuarantineReason.BAD_TIME, f"{_quoted(value)} is not a timestamp") from error


def _from_iso(text: str, zone: ZoneInfo | None) -> int:
    moment = datetime.fromisoformat(text)
    return _ns(moment if moment.tzinfo else _localise(moment, zone))


def _from_number(value: int | float, unit: str) -> int | date:
    """A count since 1970 in `unit`; without one, by its size; eight digits such as 20131007 are a date."""
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
        raise RowRefused(
            QuarantineReason.NO_ZONE,
            f"'{moment.replace(tzinfo=None)}' has no zone",
        )
    return moment.replace(tzinfo=zone)


def _ns(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * NS_PER_S + since.microseconds * NS_PER_US


def _with_zero(clock: str) -> str:
    """'93000' as '093000': a spreadsheet takes the zero away."""
    return clock.zfill(len(clock) + 1) if clock.isdecimal() and len(clock) in (3, 5) else clock


def _quoted(value: Any) -> str:
    text = str(value)
    return f"'{text[:_MAX_TEXT_CHARS]}'"


DAY_INTERVAL = format_duration(NS_PER_DAY)
_STREAM_INTERVAL_MISSING = (
    "a bar of a stream must state its length, which its rows show too late: state `interval`"
)


class RowTimes:
    """The rules of one source. `interval` is the length of its bars as its mapping states it, '' where it does not.

    `clocks` are what a survey of a file found; a stream has none and is taken at its word.
    """

    def __init__(self, spec: SourceSpec, clocks: BarSpacings | None = None) -> None:
        self.zone = spec.zone_info
        self.days = DayRule.of(spec)
        self.interval = read_interval(spec.interval) if spec.interval else ""
        self.clocks = clocks
        self._spec = spec
        self._delay_ns = spec.delay_ns
        self._tolerance_ns = spec.tolerance_ns
        self._by_arrival = spec.by_arrival

    def stamp(self, row: Row, layout: ColumnLayout) -> int | date | None:
        """The row's time column; None where it is empty."""
        column = layout.fields.get("ts")
        value = row.get(column) if column is not None else None
        if value is None or value == "":
            return None
        if layout.clock and isinstance(clock := row.get(layout.clock), str) and clock.strip():
            value = f"{value} {_with_zero(clock.strip())}"
        return read_time(value, self.zone or layout.zone, layout.time_unit, layout.day_order)

    def available(self, row: Row, layout: ColumnLayout) -> int | None:
        column = layout.fields.get("available_at")
        value = row.get(column) if column is not None else None
        if value is None or value == "":
            return None
        found = read_time(value, self.zone, layout.available_unit, layout.day_order)
        return found if isinstance(found, int) else self.days.known(found)

    def row_times(
        self, row: Row, layout: ColumnLayout, arrival_ns: int | None, of_day: Callable[[date], int]
    ) -> tuple[int, int]:
        """When the row became known and when it happened."""
        moment = self.stamp(row, layout)
        if arrival_ns is None and isinstance(moment, int) and "available_at" not in layout.fields:
            return moment + self._delay_ns, moment
        known_ns = self.available(row, layout)
        event_ns = of_day(moment) if isinstance(moment, date) else moment
        if arrival_ns is not None and self._by_arrival:
            if event_ns is None:
                return arrival_ns, arrival_ns
            # A date is only a day: its usual hour may lie after the row has come.
            return arrival_ns, min(event_ns, arrival_ns) if isinstance(moment, date) else event_ns
        if event_ns is None:
            event_ns = known_ns
        if event_ns is None:
            raise RowRefused(QuarantineReason.MISSING_FIELD, "the row has no time")
        return event_ns + self._delay_ns if known_ns is None else known_ns, event_ns

    def bar_times(
        self, row: Row, symbol: str, layout: ColumnLayout, arrival_ns: int | None
    ) -> tuple[str, int, int, int]:
        """Interval, start, end, and when the bar became known."""
        moment = self.stamp(row, layout)
        stated = self.stated(row, layout)
        interval, longest_ns = self._length(symbol, stated, moment, arrival_ns)
        length_ns = parse_duration(interval) if is_timed(interval) else 0
        start_ns, end_ns = self._span(moment, length_ns, layout, arrival_ns)
        if arrival_ns is not None and self._by_arrival:
            if arrival_ns < end_ns - self._tolerance_ns:
                raise RowRefused(
                    QuarantineReason.BAD_TIME, "the bar arrived before its end: it is not finished"
                )
            return interval, start_ns, end_ns, arrival_ns
        known_ns = self.available(row, layout)
        if known_ns is None:
            sure_ns = end_ns
            if longest_ns > length_ns and not self.stamps_end(layout):
                _, sure_ns = self._span(moment, longest_ns, layout, arrival_ns)
            known_ns = sure_ns + self._delay_ns
        if known_ns < end_ns:
            raise RowRefused(
                QuarantineReason.BAD_TIME,
                "the bar would be known before its end: check its times and bar_stamp",
            )
        return interval, start_ns, end_ns, known_ns

    def stamps_end(self, layout: ColumnLayout) -> bool:
        """Whether a bar's time is its end: as stated, else by the column's name."""
        return self._spec.bar_stamp == "end" or (not self._spec.bar_stamp and layout.stamps_end)

    def stated(self, row: Row, layout: ColumnLayout) -> str:
        """The interval that a row states, else the mapping's; '' where neither does. Raises: RowRefused."""
        column = layout.fields.get("interval")
        return self.read_stated(row.get(column), column) if column is not None else self.interval

    def read_stated(self, value: Any, column: str) -> str:
        """The interval of a cell. One that cannot be read is passed over only where the mapping states another."""
        if value is None or value == "" or value != value:
            return self.interval
        text = f"{value:g}" if isinstance(value, float) else str(value)
        try:
            return read_interval(text)
        except InvalidInput as error:
            if self.interval and "interval" not in self._spec.columns:
                return self.interval
            raise RowRefused(QuarantineReason.BAD_INTERVAL, f"{column}: {error}") from error

    def _length(
        self, symbol: str, stated: str, moment: int | date | None, arrival_ns: int | None
    ) -> tuple[str, int]:
        """The interval of a bar, and the longest that it may be, which is 0 where it is the interval."""
        dated = isinstance(moment, date)
        if self.clocks is None or moment is None or (stated and not is_timed(stated)):
            if not stated and dated and arrival_ns is not None and self._by_arrival:
                return DAY_INTERVAL, 0  # it has ended when it arrives, however long it is
            if not stated and moment is None and self.clocks is not None:
                raise RowRefused(QuarantineReason.MISSING_FIELD, "the row has no time")
            if not stated:
                raise RowRefused(QuarantineReason.BAD_INTERVAL, _STREAM_INTERVAL_MISSING)
            return stated, 0
        clock = self.clocks.of(symbol, stated, dated)
        if clock is None:
            if stated:
                return stated, 0
            raise RowRefused(
                QuarantineReason.BAD_INTERVAL,
                f"the length of bars of {symbol} cannot be determined: state `interval`",
            )
        part, known_after_ns = clock.find_one(begin_ns(moment))
        if clock.refusals[part]:
            raise RowRefused(QuarantineReason.BAD_INTERVAL, clock.refusals[part])
        return clock.intervals[part], known_after_ns

    def _span(
        self, moment: int | date | None, length_ns: int, layout: ColumnLayout, arrival_ns: int | None
    ) -> tuple[int, int]:
        """Start and end of a bar; one without a time ended when it arrived."""
        if moment is None:
            if arrival_ns is None:
                raise RowRefused(QuarantineReason.MISSING_FIELD, "the row has no time")
            return arrival_ns - length_ns, arrival_ns
        at_end = self.stamps_end(layout)
        if isinstance(moment, date):
            days = max(length_ns // NS_PER_DAY, 1)
            last = moment if at_end or days == 1 else date.fromordinal(moment.toordinal() + days - 1)
            first = date.fromordinal(last.toordinal() - days + 1)
            return self.days.start(first), self.days.close(last)
        return (moment - length_ns, moment) if at_end else (moment, moment + length_ns)
