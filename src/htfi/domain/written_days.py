"""Days and instants as people and vendors write them ('04-Jan-2021', '1/4/2021 9:30 AM'), in the order of ISO 8601.

'03/04/2021' alone is the third of April or the fourth of March: the caller says which number is the day. Of three
numbers of two digits any could be the year: they are read nowhere.
"""

import re
from collections.abc import Iterable
from typing import Literal

DayOrder = Literal["", "day_first", "month_first"]
DAY_ORDERS: tuple[DayOrder, ...] = ("day_first", "month_first")

_CLOCK = r"(?:(?:[ T,]|, )\s*(?P<clock>\d.*))?"
# The year first, whatever stands between: '2023/11/03', '2023.11.03 8:30', '2023-11-03 08:30 PM', '20231103 083000'.
_YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})" + _CLOCK
)
_DIGITS = re.compile(r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)" + _CLOCK)
# With points the day is first, and a month with a name is the month.
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})" + _CLOCK)
_NAMED_DAY_FIRST = re.compile(
    r"(?:[A-Za-z]{3,9},? )?(?P<day>\d{1,2})[ -](?P<name>[A-Za-z]{3,9})\.?,?[ -](?P<year>\d{4}|\d\d)" + _CLOCK
)
_NAMED_MONTH_FIRST = re.compile(
    r"(?:[A-Za-z]{3,9},? )?(?P<name>[A-Za-z]{3,9})\.?[ -](?P<day>\d{1,2}),?[ -](?P<year>\d{4})" + _CLOCK
)
_EITHER_WAY = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[-/])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4})" + _CLOCK
)
_FORMS = (_YEAR_FIRST, _DIGITS, _DAY_FIRST, _NAMED_DAY_FIRST, _NAMED_MONTH_FIRST)
_TIME_OF_DAY = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?P<part>[.,]\d{1,9})?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s*(?:(?:GMT|UTC)?(?P<offset>[+-]\d\d:?\d\d)|(?P<utc>Z|UTC|GMT))?"
)
_CLOCK_DIGITS = re.compile(r"(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?P<part>\d{3})?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PIVOT = 70  # two digits below it are of this century


def in_iso_order(text: str, order: DayOrder = "") -> str | None:
    """'04-Jan-2021' as '2021-01-04', '1/4/2021 9:30 AM' month first as '2021-01-04 09:30:00'; offsets are kept.

    None for any other text, and where month and day can be read either way and no order says which.
    """
    for form in _FORMS:
        if found := form.fullmatch(text):
            part = found.groupdict()
            month = part.get("month") or month_named(part["name"])
            return _iso(part["year"], month, part["day"], part["clock"]) if month else None
    found = _EITHER_WAY.fullmatch(text)
    if found is None or not order:
        return None
    day, month = ("first", "second") if order == "day_first" else ("second", "first")
    return _iso(found["year"], found[month], found[day], found["clock"])


def is_either_way(text: str) -> bool:
    """Whether the text has the form of '03/04/2021', month and day in an order that others must tell."""
    return _EITHER_WAY.fullmatch(text) is not None


def day_order_of(texts: Iterable[str]) -> DayOrder:
    """The order that these texts show by a number above 12; '' where none does, or where they contradict each other."""
    shown: set[DayOrder] = set()
    for text in texts:
        found = _EITHER_WAY.fullmatch(text)
        if found is None:
            continue
        if int(found["first"]) > 12:
            shown.add("day_first")
        if int(found["second"]) > 12:
            shown.add("month_first")
    return shown.pop() if len(shown) == 1 else ""


def month_named(name: str) -> str:
    """The number of a month by the first three letters of its English name; '' for any other word."""
    short = name[:3].lower()
    return str(_MONTHS.index(short) + 1) if short in _MONTHS else ""


def _iso(year: str, month: str, day: str, clock: str | None) -> str | None:
    if len(year) == 2:
        year = f"{20 if int(year) < _PIVOT else 19}{year}"
    written = f"{year}-{int(month):02}-{int(day):02}"
    if clock is None:
        return written
    at = _TIME_OF_DAY.fullmatch(clock.strip()) or _CLOCK_DIGITS.fullmatch(clock.strip())
    if at is None:
        return None
    part = at.groupdict("")
    hour, half = int(part["hour"]), part.get("half", "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    fraction = part["part"].lstrip(".,")
    rest = f"{hour:02}:{part['minute']}:{part['second'] or '00'}{f'.{fraction}' if fraction else ''}"
    return f"{written} {rest}{'Z' if part.get('utc') else part.get('offset', '')}"
