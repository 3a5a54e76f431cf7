"""UTCTimestamp (FIX) to and from UTC nanoseconds."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from htfi.domain.time import NS_PER_S

_PATTERN = re.compile(r"(\d{8}-\d{2}:\d{2}:\d{2})(?:\.(\d{3}|\d{6}|\d{9}))?", re.ASCII)


def format_timestamp(at_ns: int) -> str:
    """With milliseconds, as every version of FIX since 4.2 reads it."""
    seconds, rest = divmod(at_ns, NS_PER_S)
    return f"{_second_text(seconds)}.{rest // 1_000_000:03d}"


def exact_timestamp(at_ns: int) -> str:
    """With nine decimals where milliseconds do not state it, for a counterparty that reads them."""
    seconds, rest = divmod(at_ns, NS_PER_S)
    return f"{_second_text(seconds)}.{rest:09d}" if rest % 1_000_000 else format_timestamp(at_ns)


def parse_timestamp(text: str) -> int | None:
    """Nanoseconds; None where it is no UTCTimestamp. A leap second counts as the second before it."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        return None
    seconds = _second_of(found[1])
    fraction = found[2]
    if seconds is None:
        return None
    return seconds * NS_PER_S + (int(fraction.ljust(9, "0")) if fraction else 0)


def day_of(at_ns: int, zone: ZoneInfo) -> tuple[str, bool]:
    """The date of an instant in a zone, and whether the day begins with it."""
    seconds, rest = divmod(at_ns, NS_PER_S)
    local = datetime.fromtimestamp(seconds, zone)
    return local.date().isoformat(), not rest and (local.hour, local.minute, local.second) == (0, 0, 0)


@lru_cache(maxsize=64)
def _second_text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d-%H:%M:%S")


@lru_cache(maxsize=64)
def _second_of(text: str) -> int | None:
    if text.endswith(":60"):
        text = text[:-2] + "59"
    try:
        return int(datetime.strptime(text, "%Y%m%d-%H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
