"""Lines of a structured log: what may stand in them, and how many of a kind in a second.

A line has a time, a level, an event and ids; text from outside never stands in it, and what looks like a secret is
blanked, wherever it came from.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

LogValue = str | int | float | bool | Sequence[str]

MAX_FIELD_CHARS = 400
MAX_LINES_PER_S = 100  # of one event
BLANK = "[redacted]"
_NS_PER_S = 1_000_000_000

_SECRET_NAME = re.compile(
    r"passw|secret|token$|api_?key|credential|authorization|private_?key|cookie", re.IGNORECASE
)
_SECRETS = re.compile(
    r"(?P<url>\b[a-z][a-z0-9+.-]*://)[^\s/@]*@"  # userinfo
    r"|(?P<named>\b(?:pass(?:word|wd)?|secret|token|api[_-]?key|access[_-]?key|authorization)\b[\"']?\s*[=:]\s*"
    r"[\"']?)(?:bearer\s+|basic\s+)?[^\s\"'&,;]+"
    r"|(?P<bearer>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",  # a JSON Web Token
    re.IGNORECASE | re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")


class LogLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogEvent(StrEnum):
    """What a line is about."""

    STARTED = "started"
    ENDED = "ended"
    DECIDED = "decided"  # of sampled traces
    WITHHELD = "withheld"
    QUARANTINED = "news_quarantined"
    PEER = "peer_changed"
    DROPPED = "lines_dropped"
    REQUEST_FAILED = "request_failed"


class LogLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line; `fields` hold nothing that is read as a secret or as text from outside."""

    time: str  # RFC 3339, UTC, microseconds
    level: LogLevel
    event: LogEvent
    decision_id: str = ""
    trace_id: str = ""
    fields: dict[str, LogValue] = {}


class EventLog(Protocol):
    """Takes lines; `write` never waits for a reader or a disk, and never raises."""

    def write(
        self,
        event: LogEvent,
        level: LogLevel = LogLevel.INFO,
        *,
        decision_id: str = "",
        trace_id: str = "",
        **fields: LogValue,
    ) -> None: ...


class NullLog:
    """Discards every line."""

    def write(
        self,
        event: LogEvent,
        level: LogLevel = LogLevel.INFO,
        *,
        decision_id: str = "",
        trace_id: str = "",
        **fields: LogValue,
    ) -> None:
        """Nothing."""


NO_LOG = NullLog()


def redact(text: str) -> str:
    """The text without what looks like a secret, on one line, of bounded length."""
    blanked = _SECRETS.sub(
        lambda found: (
            f"{found['url'] or found['named'] or found['bearer'] or ''}{BLANK}"
            + ("@" if found["url"] else "")
        ),
        text[: 4 * MAX_FIELD_CHARS],
    )
    return _CONTROLS.sub(" ", blanked)[:MAX_FIELD_CHARS]


def safe_fields(fields: Mapping[str, LogValue]) -> dict[str, LogValue]:
    """Fields as they may be written."""
    return {name: BLANK if _SECRET_NAME.search(name) else _safe(value) for name, value in fields.items()}


def _safe(value: LogValue) -> LogValue:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bool | int | float):
        return value
    return [redact(each) for each in value]


class EventRate:
    """At most `MAX_LINES_PER_S` lines of each event in a second of the clock (ns)."""

    def __init__(self, clock: Callable[[], int], max_lines: int = MAX_LINES_PER_S) -> None:
        self._clock, self._max_lines = clock, max_lines
        self._counts: dict[LogEvent, int] = {}
        self._second = -1

    def admits(self, event: LogEvent) -> bool:
        second = self._clock() // _NS_PER_S
        if second != self._second:
            self._second = second
            self._counts.clear()
        num = self._counts[event] = self._counts.get(event, 0) + 1
        return num <= self._max_lines
