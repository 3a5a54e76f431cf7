"""When a row of a calendar happens: instants, wall clocks of a zone, days without a time; in UTC nanoseconds."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from htfi.domain.errors import InvalidInput, MissingZone
from htfi.domain.time import NS_PER_S, parse_timestamp, to_ns

_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d)(?::(\d\d))?)?\s*([ap]m)?", re.IGNORECASE)
# Zones behind a clock, each with its summer time: vendors write EST the year round.
_SHORT_ZONE = re.compile(r"(?<=[\d\sMm])\s*(E[SD]?T|CES?T|JST|UTC|GMT)$", re.IGNORECASE)
_SHORT_ZONES = {"E": "America/New_York", "C": "Europe/Berlin", "J": "Asia/Tokyo", "U": "UTC", "G": "UTC"}
_OFFSET = re.compile(
    r"(?<=[\d\sMm])\s*(?:Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>[0-5]\d))$"
)  # behind a clock
_SERIAL_DAYS = 20_000, 80_000  # days since 30 December 1899, as spreadsheets number them: 1954 to 2119
# Numbers that are read as a day or a wall clock by their digits: 20231103, 202311030830, 20231103083000.
_DIGITS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_MIN_SINCE_1970 = (
    1e8  # smaller numbers, of seconds until 1973, are something else: a row's number, a year, a count
)
_NO_CLOCK = re.compile(
    r"(?:all[- ]?day|tentative|day \d+|tbd|tba|n/?a|tns|-+|(?:time[- ])?not[- ]supplied|)", re.IGNORECASE
)
# Beside which session a company reports, as calendars of results state it, and an hour that is outside of every
# exchange's session by its own clock.
_BESIDE_SESSION = (
    (
        re.compile(r"bmo|(?:time[- ])?(?:pre|before)[- ](?:market|open|market[- ]open)", re.IGNORECASE),
        time(7),
    ),
    (
        re.compile(r"amc|(?:time[- ])?after[- ](?:market|hours|close|market[- ]close)", re.IGNORECASE),
        time(18),
    ),
)
# The year first, whatever stands between: '2023/11/03', '2023.11.03 8:30', '2023-11-03 08:30 PM'.
_YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?P<clock>\b.*)"
)
_TWO_WAYS = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[-/])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4})(?P<clock>.*)"
)
# Days that can be read in one way: with points the day is first, and a month with a name is the month.
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?P<clock>\b.*)")
_NAMED_MONTH = re.compile(
    r"(?:[a-z]{3,9},? )?"
    r"(?:(?P<day>\d{1,2})[ -](?P<month>[a-z]{3,9})\.?,?[ -]|(?P<name>[a-z]{3,9})\.? (?P<number>\d{1,2}),? )"
    r"(?P<year>\d{4})(?P<clock>\b.*)",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MAX_SHOWN = 40
MIN_YEAR, MAX_YEAR = 1900, 2100


def open_zone(name: str) -> ZoneInfo | None:
    """The zone of a name; None for ''. Raises: InvalidInput."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"zone '{name}' is not known: write it as America/New_York or UTC") from None


def wall_clock_ns(moment: datetime, zone: ZoneInfo, shown: str) -> int:
    """UTC nanoseconds of a wall clock.

    Raises: InvalidInput, where the zone's clocks skip it (going forward) or show it twice (going back).
    """
    earlier, later = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if earlier.utcoffset() != later.utcoffset():
        passed = earlier.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment
        why = "does not exist there: clocks go forward" if passed else "comes twice there: clocks go back"
        raise InvalidInput(f"{shown} in {zone.key} {why}; write it with its offset, such as -04:00")
    return to_ns(earlier)


def event_time(value: Any, clock: Any, zone: ZoneInfo | None, time_format: str = "") -> tuple[int, bool]:
    """When an event happens, and whether to the minute: a day without a time is its midnight in UTC, and False.

    `value` is a text (ISO 8601, or as `time_format` of strptime states), a datetime, a date, a number of seconds, ms,
    us or ns since 1970, a spreadsheet's number of a day, or a number such as 20231103; `clock` a time of day beside it
    ('8:30am', '4 PM EDT', 'All Day', 'Tentative'), None where there is no such column; a zone or an offset that it
    names stands before `zone`. Beside an instant that begins a day the clock is of that day, and of `zone` where there
    is one; an instant with an hour of its own stands. Raises: InvalidInput.
    """
    moment, has_clock = _moment(value, time_format)
    if clock is not None and _is_instant(moment, value):
        day = _day_begun(moment, zone)
        if day is None:
            clock = None
        else:
            own = None if isinstance(moment, int) or zone is not None else moment.tzinfo
            moment = datetime.combine(day, time(), own)
    if isinstance(moment, int):
        return _checked(moment, value), True
    is_written = not isinstance(value, datetime)  # else it knows which of two equal clocks it is
    if clock is not None:
        is_written = True
        clock, own_zone = _zone_apart(clock)
        at = _clock(clock)
        has_clock = at is not None
        moment = datetime.combine(moment.date(), at or time(), own_zone or moment.tzinfo)
    if not MIN_YEAR <= moment.year < MAX_YEAR:
        raise InvalidInput(f"'{_shown(value)}' is outside {MIN_YEAR} to {MAX_YEAR}")
    if not has_clock:
        return to_ns(datetime(moment.year, moment.month, moment.day, tzinfo=UTC)), False
    if is_written and isinstance(moment.tzinfo, ZoneInfo):
        moment, zone = moment.replace(tzinfo=None), moment.tzinfo
    if moment.tzinfo is not None:
        return to_ns(moment), True
    if zone is None:
        raise MissingZone(
            f"'{_shown(value)}' has no zone: state zone = \"America/New_York\", or UTC, or write its offset"
        )
    return wall_clock_ns(moment, zone, f"'{moment.isoformat(' ', 'minutes')}'"), True


def _moment(value: Any, time_format: str) -> tuple[datetime | int, bool]:
    if isinstance(value, datetime):
        return value, True
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day), False  # noqa: DTZ001
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_number(value)
    text = "" if value is None else str(value).strip()
    if not text:
        raise InvalidInput("the row has no time")
    if time_format:
        try:
            found = datetime.strptime(text, time_format)  # noqa: DTZ007
        except ValueError:
            raise InvalidInput(
                f"'{_shown(text)}' does not have the form time_format = \"{time_format}\""
            ) from None
        return found, "%H" in time_format or "%I" in time_format
    written = text
    text, own_zone = _short_zone_apart(text)
    text = _in_iso_order(text)
    if re.fullmatch(r"[0-9]{8,19}", text):
        return _of_number(int(text))
    if re.fullmatch(r"[0-9]{5}(?:\.[0-9]+)?", text):
        return _of_number(int(text) if text.isdigit() else float(text))
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            if own_zone is not None and not _has_offset(own_zone, found):
                raise InvalidInput(f"'{_shown(written)}' states an offset and a zone that has another")
            return (found if found.time() == time() else parse_timestamp(text)), True
        found = found.replace(tzinfo=own_zone)
    except (ValueError, OverflowError):
        raise InvalidInput(f"'{_shown(written)}' {_no_time(written)}") from None
    return found, ":" in text or "T" in text


def _short_zone_apart(value: Any) -> tuple[Any, ZoneInfo | None]:
    """A text without the zone at its end ('8:30 am', New York of '8:30 am EDT'); anything else as it is."""
    found = _SHORT_ZONE.search(value.rstrip()) if isinstance(value, str) else None
    if found is None:
        return value, None
    return value[: found.start()], ZoneInfo(_SHORT_ZONES[found[1][0].upper()])


def _zone_apart(clock: Any) -> tuple[Any, tzinfo | None]:
    """A clock without the offset or the zone at its end; anything else as it is."""
    found = _OFFSET.search(clock.rstrip()) if isinstance(clock, str) else None
    if found is None:
        return _short_zone_apart(clock)
    size = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    if size >= timedelta(days=1):
        return clock, None
    return clock[: found.start()], timezone(-size if found["sign"] == "-" else size)


def _has_offset(zone: ZoneInfo, moment: datetime) -> bool:
    """Whether the moment's offset is one of the zone's in that year: EST is written with -05:00 and with -04:00."""
    offsets = {datetime(moment.year, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)}
    return moment.utcoffset() in offsets


def _is_instant(moment: datetime | int, value: Any) -> bool:
    """Whether a column states an instant, by number or offset, and not a day or a clock of a zone."""
    if isinstance(moment, int):
        return True
    return moment.tzinfo is not None and (
        isinstance(value, datetime) or not isinstance(moment.tzinfo, ZoneInfo)
    )


def _day_begun(moment: datetime | int, zone: ZoneInfo | None) -> date | None:
    """The day that begins at an instant, by its own offset or in the zone; None where it has an hour."""
    if isinstance(moment, int):
        if moment % NS_PER_S or not MIN_YEAR <= _year_of(moment) < MAX_YEAR:
            return None
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=moment // NS_PER_S)
    for local in (moment, moment if zone is None else moment.astimezone(zone)):
        if local.time() == time():
            return local.date()
    return None


def _no_time(text: str) -> str:
    """Why a text is no time, and what to do."""
    found = _TWO_WAYS.fullmatch(text)
    if found is None:
        return (
            "is not a time such as 2026-01-28 14:00; of another form state time_format, such as "
            '"%m/%d/%Y %H:%M"'
        )
    clock = _CLOCK.fullmatch(found["clock"].strip())
    rest = "" if clock is None else f" {'%I' if clock[4] else '%H'}:%M{':%S' if clock[3] else ''}"
    if clock is not None and clock[4]:
        rest += " %p" if " " in found["clock"].strip() else "%p"
    month_first, day_first = (
        f'"{found["sign"].join(parts)}{rest}"' for parts in (("%m", "%d", "%Y"), ("%d", "%m", "%Y"))
    )
    return f"states month and day in an order that is not known: state time_format = {month_first} or {day_first}"


def _in_iso_order(text: str) -> str:
    """'3.11.2023 8:30' and 'Nov 3, 2023 8:30 am' as '2023-11-03 08:30:00'; any other text as it is."""
    found = _YEAR_FIRST.fullmatch(text) or _DAY_FIRST.fullmatch(text) or _NAMED_MONTH.fullmatch(text)
    if found is None:
        return text
    part = {name: value for name, value in found.groupdict().items() if value is not None}
    day, month = part.get("day", part.get("number", "")), part.get("month", part.get("name", ""))
    if not month.isdigit():
        if month[:3].lower() not in _MONTHS:
            return text
        month = str(_MONTHS.index(month[:3].lower()) + 1)
    clock = part["clock"].strip(" ,T")
    at = _clock(clock) if _CLOCK.fullmatch(clock) else None
    rest = (f" {at.isoformat()}" if at else f" {clock}") if clock else ""
    return f"{part['year']}-{int(month):02}-{int(day):02}{rest}"


def _of_number(value: float) -> tuple[datetime | int, bool]:
    first, beyond = _SERIAL_DAYS
    if first <= value < beyond:
        minutes = round(value * 1_440)  # four decimals state a minute, to some seconds
        return datetime(1899, 12, 30) + timedelta(minutes=minutes), minutes % 1_440 != 0  # noqa: DTZ001
    if not abs(value) < 1e20:  # NaN too
        raise InvalidInput(f"'{_shown(value)}' is not a time")
    form = _DIGITS.get(len(str(int(value)))) if value == int(value) else None
    if form is not None and value > 0:
        try:
            found = datetime.strptime(str(int(value)), form)  # noqa: DTZ007
        except ValueError:
            pass
        else:
            if MIN_YEAR <= found.year < MAX_YEAR:
                return found, "%H" in form
    if abs(value) < _MIN_SINCE_1970:
        raise InvalidInput(
            f"'{_shown(value)}' is neither a time since 1970, nor a day such as 20231103, nor a spreadsheet's number "
            "of a day"
        )
    return _since_1970(value), True


def _since_1970(value: float) -> int:
    size = abs(value)
    unit = NS_PER_S if size < 1e11 else 1_000_000 if size < 1e14 else 1_000 if size < 1e17 else 1
    return round(value * unit)


def _clock(value: Any) -> time | None:
    if isinstance(value, time):
        return value
    text = str(value).strip()
    if _NO_CLOCK.fullmatch(text):
        return None
    for words, at in _BESIDE_SESSION:
        if words.fullmatch(text):
            return at
    match = _CLOCK.fullmatch(text)
    if match is not None and (match[2] or match[4]):
        hour, half = int(match[1]), (match[4] or "").lower()
        if not half or 1 <= hour <= 12:
            hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
            try:
                return time(hour, int(match[2] or 0), int(match[3] or 0))
            except ValueError:
                pass
    raise InvalidInput(f"'{_shown(text)}' is not a time of day such as 14:00 or 8:30am")


def _checked(time_ns: int, value: Any) -> int:
    if not MIN_YEAR <= _year_of(time_ns) < MAX_YEAR:
        raise InvalidInput(f"'{_shown(value)}' is outside {MIN_YEAR} to {MAX_YEAR}")
    return time_ns


def _year_of(time_ns: int) -> float:
    return 1970 + time_ns / NS_PER_S / 31_556_952


def _shown(value: Any) -> str:
    text = "".join(char if char.isprintable() else " " for char in str(value))
    return " ".join(text.split())[:_MAX_SHOWN]
