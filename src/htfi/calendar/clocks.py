"""Times of day as calendars write them, and the zone behind one: '8:30 A.M. EDT', '0830', '08h30', 'All Day'."""

import re
from collections.abc import Mapping
from datetime import time, timedelta, timezone, tzinfo
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from htfi.domain.errors import InvalidInput

MAX_SHOWN = 40

_NO_CLOCK = re.compile(
    r"(?:all[- ]?day|tentative|day \d+|tbd|tba|n/?a|tns|[-—–]+|(?:time[- ])?not[- ]supplied|)", re.IGNORECASE
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
_HALF = r"(?:\s*(?P<half>[ap])\.?\s?m\.?)?"
_CLOCKS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?!0\.)(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.0+)?)?)?{_HALF}",
        r"(?P<hour>\d{1,2})[:.](?P<minute>\d\d)\s?(?:h|hrs?|hours|uhr)\.?",
        r"(?P<hour>\d{1,2})\s?h(?:\s?(?P<minute>\d\d))?",
        rf"(?P<hour>\d{{1,2}})(?P<minute>\d\d)(?:\s?(?:h|hrs?|hours))?{_HALF}",
        r"(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)",
    )
)
_PART_OF_DAY = re.compile(r"0\.(?:\d|\d{3,})")  # of a spreadsheet: 0.5 is noon; 0.25 could be a clock too

# Words behind a clock that are of one zone, each with its summer time: vendors write EST the year round.
SHORT_ZONES: Mapping[str, str] = MappingProxyType({
    word: zone
    for words, zone in (
        ("UTC GMT", "UTC"),
        ("ET EST EDT", "America/New_York"),
        ("CT CDT", "America/Chicago"),
        ("MT MDT", "America/Denver"),
        ("PT PST PDT", "America/Los_Angeles"),
        ("BRT", "America/Sao_Paulo"),
        ("BST", "Europe/London"),
        ("WET WEST", "Europe/Lisbon"),
        ("CET CEST MEZ MESZ", "Europe/Berlin"),
        ("EET EEST", "Europe/Athens"),
        ("MSK", "Europe/Moscow"),
        ("TRT", "Europe/Istanbul"),
        ("SAST", "Africa/Johannesburg"),
        ("HKT", "Asia/Hong_Kong"),
        ("SGT", "Asia/Singapore"),
        ("KST", "Asia/Seoul"),
        ("JST", "Asia/Tokyo"),
        ("AWST", "Australia/Perth"),
        ("ACST ACDT", "Australia/Adelaide"),
        ("AET AEST AEDT", "Australia/Sydney"),
        ("NZT NZST NZDT", "Pacific/Auckland"),
    )
    for word in words.split()
})  # fmt: skip
# Words of several zones, and what to write instead of each.
AMBIGUOUS_ZONES: Mapping[str, str] = MappingProxyType({
    "CST": "America/Chicago or Asia/Shanghai",
    "IST": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
    "MST": "America/Denver, America/Phoenix or Asia/Kuala_Lumpur",
    "AST": "America/Halifax or Asia/Riyadh",
    "GST": "Asia/Dubai or Atlantic/South_Georgia",
})  # fmt: skip
_BEHIND = r"(?<=[\d\sMm.(\[])"
_WORD = re.compile(rf"{_BEHIND}({'|'.join([*SHORT_ZONES, *AMBIGUOUS_ZONES])})$", re.IGNORECASE)
_NAMED = re.compile(r"(?<=[\s\d(\[])([A-Z][A-Za-z_]+/[A-Za-z_/+\-0-9]+)$")
_FROM_UTC = re.compile(
    rf"{_BEHIND}(?:UTC|GMT)\s?(?P<sign>[-+−])(?P<hours>\d{{1,2}})(?::?(?P<minutes>[0-5]\d))?$", re.IGNORECASE
)
_OFFSET = re.compile(r"(?<=[\d\sMm])(?:Z|(?P<sign>[-+−])(?P<hours>\d\d):?(?P<minutes>[0-5]\d))$")


def open_zone(name: str) -> ZoneInfo | None:
    """The zone of a name; None for ''. Raises: InvalidInput."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"zone '{name}' is not known: write it as America/New_York or UTC") from None


def read_clock(value: Any) -> time | None:
    """The time of day; None where a calendar says that no hour is stated. Raises: InvalidInput."""
    if isinstance(value, time):
        return value
    text = str(value).strip()
    if _NO_CLOCK.fullmatch(text):
        return None
    for words, at in _BESIDE_SESSION:
        if words.fullmatch(text):
            return at
    if _PART_OF_DAY.fullmatch(text):
        minutes = round(float(text) * 1_440)
        return time(*divmod(min(minutes, 1_439), 60))
    for form in _CLOCKS:
        if found := form.fullmatch(text):
            part = {name: one for name, one in found.groupdict().items() if one}
            half, hour = part.get("half", "").lower(), int(part["hour"])
            if not (half or "minute" in part or "h" in text.lower()) or (half and not 1 <= hour <= 12):
                break
            hour = hour % 12 + (12 if half == "p" else 0) if half else hour
            try:
                return time(hour, int(part.get("minute", 0)), int(part.get("second", 0)))
            except ValueError:
                break
    raise InvalidInput(f"'{shown(text)}' is not a time of day such as 14:00 or 8:30am")


def zone_apart(value: Any, *, offsets: bool = True) -> tuple[Any, tzinfo | None]:
    """A text without the zone at its end, which is 'EDT', 'UTC+8', 'Asia/Tokyo', in brackets or not, and with `offsets`
    '+02:00' or 'Z'; anything else as it is.

    Raises: InvalidInput, of a word that several zones have.
    """
    if not isinstance(value, str):
        return value, None
    text = value.rstrip()
    if text.endswith((")", "]")):
        text = text[:-1].rstrip()
    if found := _FROM_UTC.search(text):
        zone = _fixed(found)
    elif found := _NAMED.search(text):
        zone = open_zone(found[1])
    elif found := _WORD.search(text):
        word = found[1].upper()
        if word in AMBIGUOUS_ZONES:
            raise InvalidInput(
                f"'{shown(value)}': {word} is the clock of several zones: write {AMBIGUOUS_ZONES[word]} instead, or an "
                "offset such as -06:00"
            )
        zone = ZoneInfo(SHORT_ZONES[word])
    elif offsets and (found := _OFFSET.search(text)):
        zone = _fixed(found)
    else:
        return value, None
    return (value, None) if zone is None else (text[: found.start()].rstrip(" (["), zone)


def zone_named(name: str) -> tzinfo | None:
    """The zone of a cell: 'America/New_York', 'EST', 'UTC+8', '+02:00'; None of an empty one. Raises: InvalidInput."""
    if not name:
        return None
    rest, zone = zone_apart(f" {name}")
    return zone if zone is not None and not rest.strip() else open_zone(name)


def _fixed(found: re.Match[str]) -> timezone | None:
    size = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    if size >= timedelta(days=1):
        return None
    return timezone(size if found["sign"] in ("+", None) else -size)


def shown(value: Any) -> str:
    """A cell as an error shows it, in one short line."""
    text = "".join(char if char.isprintable() else " " for char in str(value))
    return " ".join(text.split())[:MAX_SHOWN]
