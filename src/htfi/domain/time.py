"""Time as integer UTC nanoseconds, and the one clock. Every package takes time from here."""

import re
import time
from datetime import UTC, date, datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from htfi.domain.errors import InvalidInput, MissingZone

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
NS_PER_DAY = 86_400 * NS_PER_S

MAX_DURATION_NS = 36_500 * NS_PER_DAY  # a hundred years: sums of a few fit 64 bits

_UNITS = {"ms": NS_PER_MS, "s": NS_PER_S, "m": 60 * NS_PER_S, "h": 3600 * NS_PER_S, "d": NS_PER_DAY}
_FRACTION = re.compile(r"[.,](\d+)")


class Clock(Protocol):
    """Where live code reads time; replay and tests give it a virtual one."""

    def now_ns(self) -> int:
        """UTC nanoseconds; never less than at the call before."""
        ...


class SystemClock:
    """The machine's clock, held still while it steps back, so that order is never undone."""

    def __init__(self) -> None:
        self._latest_ns = 0

    def now_ns(self) -> int:
        self._latest_ns = max(self._latest_ns, time.time_ns())
        return self._latest_ns


def parse_duration(text: str) -> int:
    """Nanoseconds of '500ms', '60s', '1m', '4h' or '1d'. Raises: InvalidInput."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text.strip())
    duration_ns = float(match[1]) * _UNITS[match[2]] if match is not None else 0.0
    if not 1 <= duration_ns <= MAX_DURATION_NS:
        raise InvalidInput(
            f"'{text[:40]}' is not a duration: write a number and ms, s, m, h or d, such as 60s; at most 36500d"
        )
    return round(duration_ns)


def format_duration(duration_ns: int) -> str:
    """The shortest exact form of a duration: 86_400e9 → '1d', 90e9 → '90s'."""
    for unit in ("d", "h", "m", "s", "ms"):
        if duration_ns % _UNITS[unit] == 0:
            return f"{duration_ns // _UNITS[unit]}{unit}"
    return f"{duration_ns / NS_PER_MS:g}ms"


def parse_timestamp(text: str, zone: ZoneInfo | None = None) -> int:
    """UTC nanoseconds of an ISO 8601 instant, exact to the nanosecond.

    `zone` is the stated zone of texts without one; without it such a text is refused.
    Raises: MissingZone, InvalidInput.
    """
    body = text.strip()
    digits = _FRACTION.search(body)
    fraction_ns = int(digits[1][:9].ljust(9, "0")) if digits else 0
    try:
        moment = datetime.fromisoformat(_FRACTION.sub("", body, count=1))
    except ValueError:
        raise InvalidInput(f"'{text}' is not an ISO 8601 timestamp") from None
    if moment.tzinfo is None:
        if zone is None:
            raise MissingZone(
                f"timestamp '{text}' has no zone: add one, or state `zone` in the feed's mapping"
            )
        moment = moment.replace(tzinfo=zone)
    return to_ns(moment) + fraction_ns


def to_ns(moment: datetime) -> int:
    """UTC nanoseconds of an aware datetime, exact to the microsecond."""
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * NS_PER_S + since.microseconds * NS_PER_US


def format_ns(time_ns: int) -> str:
    """ISO 8601 in UTC, ending in Z, with as many decimals as the instant needs: ms, µs or ns."""
    seconds, rest_ns = divmod(time_ns, NS_PER_S)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if rest_ns == 0:
        return text + "Z"
    for digits, size in ((3, NS_PER_MS), (6, NS_PER_US), (9, 1)):
        if rest_ns % size == 0:
            return f"{text}.{rest_ns // size:0{digits}d}Z"
    raise AssertionError(rest_ns)


def session_time_ns(day: date, hour: int, minute: int, zone: ZoneInfo) -> int:
    """UTC nanoseconds of a wall-clock time on a calendar date in a zone."""
    return to_ns(datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone))
