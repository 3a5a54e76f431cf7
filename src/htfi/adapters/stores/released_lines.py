"""The lines of decisions.jsonl as those get them who read along, each at its own pace from its own place.

The run's thread says how far the file is whole; it never waits for a reader.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from htfi.domain.errors import DependencyUnavailable

_CHUNK_BYTES = 64 << 10


class ReleasedLines:
    """How many bytes of `path` are whole lines, and whether more will come."""

    def __init__(self, path: Path, num_bytes: int) -> None:
        self.path = path
        self.num_bytes = num_bytes
        self.has_ended = False
        self._changed = threading.Condition()

    def grow(self, num_bytes: int) -> None:
        """So many more bytes are whole."""
        with self._changed:
            self.num_bytes += num_bytes
            self._changed.notify_all()

    def end(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self.has_ended = True
            self._changed.notify_all()

    def read_from(self, offset: int) -> Iterator[bytes]:
        """What is whole from a byte on, then what comes, until the end; waits for it. Raises: OSError."""
        with self.path.open("rb", buffering=0) as file:
            while True:
                num = min(self._wait_for_more(offset) - offset, _CHUNK_BYTES)
                if num <= 0:
                    return
                chunk = os.pread(file.fileno(), num, offset)
                if not chunk:
                    return  # somebody has cut the file
                offset += len(chunk)
                yield chunk

    def _wait_for_more(self, offset: int) -> int:
        """How many bytes are whole, once they are more than `offset` or no more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self.num_bytes > offset or self.has_ended)
            return self.num_bytes

    def read_from_line(self, number: int) -> Iterator[bytes]:
        """The same from the line with this number on, counted from 0."""
        for chunk in self.read_from(0):
            start = 0
            while number and (end := chunk.find(b"\n", start)) >= 0:
                start, number = end + 1, number - 1
            if not number and start < len(chunk):
                yield chunk[start:]

    def num_lines_from(self, offset: int) -> int:
        """How many lines begin at or after a byte."""
        num = 0
        with suppress(OSError), self.path.open("rb") as file:
            file.seek(offset)
            while chunk := file.read(_CHUNK_BYTES):
                num += chunk.count(b"\n")
        return num


class FollowingReader:
    """Writes the lines from a byte on to a stream, in a thread of its own, until they end or its reader leaves."""

    def __init__(self, lines: ReleasedLines, offset: int, stream: BinaryIO) -> None:
        self._lines, self._offset, self._stream = lines, offset, stream
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._follow, name="released lines", daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> bool:
        """No more lines will come: whether the reader has taken all, after so long at most. Raises: as `check`."""
        self._lines.end()
        self._thread.join(timeout_s)
        self.check()
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raises: BrokenPipeError where the reader has left, DependencyUnavailable where it cannot be written to."""
        if isinstance(self._error, BrokenPipeError):
            raise self._error
        if self._error is not None:
            raise DependencyUnavailable(
                f"decisions cannot be passed on: {self._error.strerror}; they are in {self._lines.path}"
            ) from self._error

    @property
    def num_unread(self) -> int:
        """How many lines the reader has not taken."""
        return self._lines.num_lines_from(self._offset)

    def _follow(self) -> None:
        try:
            for chunk in self._lines.read_from(self._offset):
                rest = memoryview(chunk)
                while rest:
                    num = self._stream.write(rest)
                    self._offset, rest = self._offset + num, rest[num:]
                self._stream.flush()
        except OSError as error:
            self._error = error
