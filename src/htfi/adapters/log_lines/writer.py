"""Writes a structured log as JSON lines to a file, or to standard error for '-'; from a thread of its own.

A disk or a pipe that takes nothing holds up nobody: lines wait in a bounded queue, and what does not fit is dropped and
counted.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import open_private
from htfi.telemetry import catalogue
from htfi.telemetry.logs import (
    EventRate,
    LogEvent,
    LogLevel,
    LogLine,
    LogValue,
    redact,
    safe_fields,
)
from htfi.telemetry.metrics import Reading

MAX_QUEUED_LINES = 4_096
_CLOSE_S = 2.0


class LogWriter:
    """A log: `write` from any thread. Raises: DependencyUnavailable where the file cannot be opened."""

    def __init__(self, target: str, utc_ns: Callable[[], int] = time.time_ns) -> None:
        self._utc_ns = utc_ns
        self._file = _opened(target)
        self._rate = EventRate(utc_ns)
        self._encoder = msgspec.json.Encoder()
        self._queue: deque[bytes] = deque()
        self._has_lines = threading.Event()
        self._is_closing = False
        self._num_written = self._num_dropped = 0
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)
        self._thread.start()

    def write(
        self,
        event: LogEvent,
        level: LogLevel = LogLevel.INFO,
        *,
        decision_id: str = "",
        trace_id: str = "",
        **fields: LogValue,
    ) -> None:
        """One line, unless there are too many of its kind in this second or too many wait."""
        if not self._rate.admits(event) or len(self._queue) >= MAX_QUEUED_LINES or self._is_closing:
            self._num_dropped += 1
            return
        at = datetime.fromtimestamp(self._utc_ns() / 1e9, UTC)
        line = LogLine(
            at.isoformat(timespec="microseconds").replace("+00:00", "Z"), level, event, redact(decision_id),
            trace_id, safe_fields(fields),
        )  # fmt: skip
        self._queue.append(self._encoder.encode(line) + b"\n")
        self._has_lines.set()

    def readings(self) -> Iterator[Reading]:
        yield catalogue.LOG_LINES, ("written",), float(self._num_written)
        yield catalogue.LOG_LINES, ("dropped",), float(self._num_dropped)

    def close(self) -> None:
        """Write what waits, for at most 2 s. Twice is once."""
        if self._is_closing:
            return
        if self._num_dropped:
            self.write(LogEvent.DROPPED, LogLevel.WARNING, num=self._num_dropped)
        self._is_closing = True
        self._has_lines.set()
        self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        while not (self._is_closing and not self._queue):
            self._has_lines.wait()
            self._has_lines.clear()
            while self._queue:
                self._write_one(self._queue.popleft())
        if self._file.fileno() > 2:
            self._file.close()

    def _write_one(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except (OSError, ValueError):  # a full disk, a closed pipe
            self._num_dropped += 1
        else:
            self._num_written += 1


def _opened(target: str) -> FileIO:
    if target == "-":
        return FileIO(sys.stderr.fileno(), "wb", closefd=False)
    try:
        return FileIO(open_private(Path(target), os.O_WRONLY | os.O_APPEND), "ab")
    except OSError as error:
        raise DependencyUnavailable(
            f"the log {redact(target)} cannot be opened: {error.strerror}; name another file"
        ) from error
