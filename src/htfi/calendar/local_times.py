"""When a row of a calendar happens: instants, wall clocks of a zone, days without a time; in UTC nanoseconds."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from htfi.calendar.clocks import read_clock, shown, zone_apart
from htfi.domain.errors import InvalidInput, MissingZone
from htfi.domain.time import NS_PER_S, parse_timestamp, to_ns
from htfi.domain.written_days import month_named

_SERIAL_DAYS = 20_000, 80_000  # days since 30 December 1899, as spreadsheets number them: 1954 to 2119
# Numbers that are read as a day or a wall clock by their digits: 20231103, 202311030830, 20231103083000.
_DIGITS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_MIN_SINCE_1970 = (
    1e8  # smaller numbers, of seconds until 1973, are something else: a row's number, a year, a count
)
# The year first, whatever stands between: '2023/11/03', '2023.11.03 8:30', '2023-11-03 08:30 PM'.
_YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?P<clock>\b.*)"
)
_TWO_WAYS = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[-/])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4}|\d\d)(?P<clock>\b.*)"
)
# Days that can be read in one way: with points the day is first, and a month with a name is the month.
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?P<clock>\b.*)")
_NAMED_MONTH = re.compile(
    r"(?:[a-z]{3,9},? )?"
    r"(?:(?P<day>\d{1,2})[ -](?P<month>[a-z]{3,9})\.?,?[ -]|(?P<name>[a-z]{3,9})\.? (?P<number>\d{1,2}),? )"
    r"(?P<year>\d{4})(?P<clock>\b.*)",
    re.IGNORECASE,
)
_YEAR_AND_NAME = re.compile(
    r"(?P<year>\d{4}),? (?P<name>[a-z]{3,9})\.? (?P<number>\d{1,2})(?P<clock>\b.*)", re.IGNORECASE
)
_SHORT_YEAR = re.compile(r"\d{1,2}[- ][a-z]{3,9}\.?[- ]\d\d(?:\s.*)?", re.IGNORECASE)
_HALF = re.compile(r"(\s|\d)([ap])\.?\s?m\b\.?", re.IGNORECASE)
_FRACTION = re.compile(r":\d\d:\d\d[.,]\d")  # of a second
_DAY_CHARS = 10  # of a day alone in ISO 8601, at most
MIN_YEAR, MAX_YEAR = 1900, 2100


def wall_clock_ns(moment: datetime, zone: tzinfo, shown: str) -> int:
    """UTC nanoseconds of a wall clock.

    Raises: InvalidInput, where the zone's clocks skip it (going forward) or show it twice (going back).
    """
    earlier, later = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if earlier.utcoffset() != later.utcoffset():
        passed = earlier.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment
        why = "does not exist there: clocks go forward" if passed else "comes twice there: clocks go back"
        raise InvalidInput(f"{shown} in {zone} {why}; write it with its offset, such as -04:00")
    return to_ns(earlier)


def event_time(value: Any, clock: Any, zone: tzinfo | None, time_format: str = "") -> tuple[int, bool]:
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
        clock, own_zone = zone_apart(clock)
        at = read_clock(clock)
        has_clock = at is not None
        moment = datetime.combine(moment.date(), at or time(), own_zone or moment.tzinfo)
    if not MIN_YEAR <= moment.year < MAX_YEAR:
        raise InvalidInput(f"'{shown(value)}' is outside {MIN_YEAR} to {MAX_YEAR}")
    if not has_clock:
        return to_ns(datetime(moment.year, moment.month, moment.day, tzinfo=UTC)), False
    if is_written and isinstance(moment.tzinfo, ZoneInfo):
        moment, zone = moment.replace(tzinfo=None), moment.tzinfo
    if moment.tzinfo is not None:
        return to_ns(moment), True
    if zone is None:
        raise MissingZone(
            f"'{shown(value)}' has no zone: state zone = \"America/New_York\", or UTC, or write its offset"
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
        return _in_form(text, time_format)
    written = text
    text, own_zone = zone_apart(text, offsets=False)
    text = _in_iso_order(text)
    if re.fullmatch(r"[0-9]{8,19}", text):
        return _of_number(int(text))
    if re.fullmatch(r"[0-9]{5}(?:\.[0-9]+)?", text):
        return _of_number(int(text) if text.isdigit() else float(text))
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            if own_zone is not None and not _has_offset(own_zone, found):
                raise InvalidInput(f"'{shown(written)}' states an offset and a zone that has another")
            return (found if found.time() == time() else parse_timestamp(text)), True
        found = found.replace(tzinfo=own_zone)
    except (ValueError, OverflowError):
        raise InvalidInput(f"'{shown(written)}' {_no_time(written)}") from None
    return found, len(text) > _DAY_CHARS


def _has_offset(zone: tzinfo, moment: datetime) -> bool:
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


def _day_begun(moment: datetime | int, zone: tzinfo | None) -> date | None:
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
    if _SHORT_YEAR.fullmatch(text):
        return 'states its year by two digits: state time_format, such as "%d-%b-%y" or "%d-%b-%y %H:%M"'
    found = _TWO_WAYS.fullmatch(text)
    if found is None:
        return (
            "is not a time such as 2026-01-28 14:00; of another form state time_format, such as "
            '"%m/%d/%Y %H:%M"'
        )
    rest = _form_of_clock(found["clock"])
    year = "%Y" if len(found["year"]) == 4 else "%y"
    month_first, day_first = (
        f'"{found["sign"].join((*parts, year))}{rest}"' for parts in (("%m", "%d"), ("%d", "%m"))
    )
    return f"states month and day in an order that is not known: state time_format = {month_first} or {day_first}"


def _form_of_clock(text: str) -> str:
    """The clock behind a day as time_format states it: ' %I:%M %p' of ' 8:30 am EST'."""
    clock = zone_apart(text)[0].strip()
    found = re.fullmatch(
        r"\d{1,2}:\d\d(?P<second>:\d\d)?(?P<space>\s*)(?P<half>[ap]m)?", clock, re.IGNORECASE
    )
    if found is None:
        return ""
    half = f"{' ' if found['space'] else ''}%p" if found["half"] else ""
    return f" {'%I' if half else '%H'}:%M{':%S' if found['second'] else ''}{half}"


def _in_form(text: str, time_format: str) -> tuple[datetime, bool]:
    """A text in a form of strptime, whether or not a zone stands behind it, and whether it has an hour: one that lacks
    the form's clock is a day. Raises: InvalidInput."""
    has_clock = "%H" in time_format or "%I" in time_format
    day_form = re.split(r"[ T]%[HI]", time_format)[0]
    plain = _HALF.sub(lambda found: f"{found[1]}{found[2].upper()}M", text)
    bare, own_zone = zone_apart(plain, offsets=False)
    tried = ((text, None, time_format), (bare, own_zone, time_format), (bare, own_zone, day_form))
    for one, zone, form in tried:
        try:
            found = datetime.strptime(one.strip(), form)  # noqa: DTZ007
        except ValueError:
            continue
        found = found if found.tzinfo is not None else found.replace(tzinfo=zone)
        return found, has_clock and form == time_format
    raise InvalidInput(f"'{shown(text)}' does not have the form time_format = \"{time_format}\"")


def _in_iso_order(text: str) -> str:
    """'3.11.2023 8:30' and 'Nov 3, 2023 8:30 am' as '2023-11-03 08:30:00'; any other text as it is.

    Raises: InvalidInput, of a clock that is none.
    """
    forms = (_YEAR_FIRST, _DAY_FIRST, _NAMED_MONTH, _YEAR_AND_NAME)
    found = next((match for form in forms if (match := form.fullmatch(text))), None)
    if found is None:
        return text
    part = {name: value for name, value in found.groupdict().items() if value is not None}
    day, month = part.get("day", part.get("number", "")), part.get("month", part.get("name", ""))
    if not month.isdigit():
        month = month_named(month)
        if not month:
            return text
    return f"{part['year']}-{int(month):02}-{int(day):02}{_iso_clock(part['clock'].strip(' ,T'))}"


def _iso_clock(clock: str) -> str:
    """' 08:30:00' of '8.30 am'; '' where no hour is stated."""
    bare, zone = zone_apart(clock)
    try:
        at = read_clock(bare)
    except InvalidInput:
        if not _FRACTION.search(clock):
            raise
        return f" {clock.replace(' ', '')}"
    if at is None:
        return ""
    return f" {at.isoformat()}{clock[len(bare) :].strip().replace('−', '-') if zone is not None else ''}"


def _of_number(value: float) -> tuple[datetime | int, bool]:
    first, beyond = _SERIAL_DAYS
    if first <= value < beyond:
        minutes = round(value * 1_440)  # four decimals state a minute, to some seconds
        return datetime(1899, 12, 30) + timedelta(minutes=minutes), minutes % 1_440 != 0  # noqa: DTZ001
    if not abs(value) < 1e20:  # NaN too
        raise InvalidInput(f"'{shown(value)}' is not a time")
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
            f"'{shown(value)}' is neither a time since 1970, nor a day such as 20231103, nor a spreadsheet's number "
            "of a day"
        )
    return _since_1970(value), True


def _since_1970(value: float) -> int:
    size = abs(value)
    unit = NS_PER_S if size < 1e11 else 1_000_000 if size < 1e14 else 1_000 if size < 1e17 else 1
    return round(value * unit)


def _checked(time_ns: int, value: Any) -> int:
    if not MIN_YEAR <= _year_of(time_ns) < MAX_YEAR:
        raise InvalidInput(f"'{shown(value)}' is outside {MIN_YEAR} to {MAX_YEAR}")
    return time_ns


def _year_of(time_ns: int) -> float:
    return 1970 + time_ns / NS_PER_S / 31_556_952
