"""The interval of a bar as feeds write it: `1h`, `H4`, `PERIOD_M15`, `15 min`, `daily`. Specs and rows read it."""

import re

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_MS, NS_PER_S, format_duration

ACCEPTED_INTERVALS = (
    "1m 15min 1h 4h 1d 1w 1mo · M1 M15 H1 H4 D1 W1 MN1 · 60 (minutes) · hourly daily weekly · volume:5000"
)
COUNTED_CLOCKS = ("volume", "dollar", "tick")
BAR_LENGTH_LIMITS_NS = (NS_PER_MS, 366 * NS_PER_DAY)  # of the shortest and of the longest bar
_MAX_TEXT = 40
_MINUTE_NS, _HOUR_NS = 60 * NS_PER_S, 3600 * NS_PER_S
# Months, quarters and years are as long as the longest of them: a bar is never known before its end.
_MONTHS_NS = {months: days * NS_PER_DAY for months, days in ((1, 31), (2, 62), (3, 92), (6, 184), (12, 366))}
_UNIT_NS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), NS_PER_MS),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), NS_PER_S),
    **dict.fromkeys(("m", "t", "min", "mins", "minute", "minutes"), _MINUTE_NS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), _HOUR_NS),
    **dict.fromkeys(("d", "day", "days"), NS_PER_DAY),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 7 * NS_PER_DAY),
}
_UNIT_MONTHS = {
    **dict.fromkeys(("mo", "mon", "mn", "month", "months"), 1),
    **dict.fromkeys(("q", "quarter", "quarters"), 3),
    **dict.fromkeys(("y", "yr", "year", "years"), 12),
}
_WORDS = {
    "minutely": "1min", "hourly": "1h", "daily": "1d", "weekly": "1w", "monthly": "1mo",
    "quarterly": "1q", "yearly": "1y", "annual": "1y", "annually": "1y",
}  # fmt: skip
_PREFIX = re.compile(r"(?:period|timeframe)_", re.IGNORECASE)
_NUMBER_FIRST = re.compile(r"(\d+(?:\.\d+)?)[ _-]?([A-Za-z]+)")
_LETTERS_FIRST = re.compile(r"(MN|[SMHDW])(\d+)", re.IGNORECASE)  # MetaTrader: M15 is 15 minutes, MN1 a month
_ISO_8601 = re.compile(r"P(?:(T)(\d+)([SMH])|(\d+)([DWMY]))")


def read_interval(text: str) -> str:
    """The one name of a bar's clock: '60s', 'M1' and '1 min' are '1m'; 'volume:5000' stays. Raises: InvalidInput."""
    head, found, amount = text.partition(":")
    if found and head in COUNTED_CLOCKS:
        try:
            good = float(amount) > 0
        except ValueError:
            good = False
        if good:
            return text
        raise InvalidInput(
            f"'{text[:_MAX_TEXT]}' is no interval: write {head}: and a number above 0, such as {head}:5000"
        )
    length_ns = _length_ns(text.strip()) if len(text) <= _MAX_TEXT else None
    if length_ns is None:
        raise InvalidInput(f"'{text[:_MAX_TEXT]}' is no interval: write one of {ACCEPTED_INTERVALS}")
    if not BAR_LENGTH_LIMITS_NS[0] <= length_ns <= BAR_LENGTH_LIMITS_NS[1]:
        raise InvalidInput(f"'{text[:_MAX_TEXT]}' is no interval: from 1ms to 366d")
    return format_duration(length_ns)


def is_timed(interval: str) -> bool:
    """Whether an interval is a span of time, not a count of volume, dollars or ticks."""
    return ":" not in interval


def _length_ns(text: str) -> int | None:
    """A span of time in nanoseconds; None for what is none.

    Only a number before a capital M means months ('1M'), and only those that make whole parts of a year: '15M'
    could be minutes as well, so it is none.
    """
    if text.isascii() and text.isdecimal():
        return int(text) * _MINUTE_NS
    if match := _ISO_8601.fullmatch(text):
        if match[1]:
            return int(match[2]) * _UNIT_NS[match[3].lower()]
        return _unit_length_ns(float(match[4]), "mo" if match[5] == "M" else match[5].lower())
    text = _PREFIX.sub("", text)
    text = _WORDS.get(text.lower(), text)
    if match := _LETTERS_FIRST.fullmatch(text):
        return _unit_length_ns(float(match[2]), match[1].lower())
    if text == "M":
        return _unit_length_ns(1.0, "mo")
    if match := _NUMBER_FIRST.fullmatch(text):
        return _unit_length_ns(float(match[1]), "mo" if match[2] == "M" else match[2].lower())
    return _unit_length_ns(1.0, text.lower()) if text.lower() not in ("m", "t", "s", "ms") else None


def _unit_length_ns(count: float, unit: str) -> int | None:
    if unit in _UNIT_MONTHS:
        months = count * _UNIT_MONTHS[unit]
        return _MONTHS_NS.get(int(months)) if months.is_integer() else None
    return round(count * _UNIT_NS[unit]) if unit in _UNIT_NS else None
