"""Publishes for a desk that several edges work on: only the one that leads does. The edge command puts it before the
mirror of its decisions.

An edge that takes the lead says again what it kept back for the last while, as nobody knows how far the one before it
came: a reader of several edges gets each decision at least once, and knows it by its id.
"""

import time
from collections import deque
from collections.abc import Callable
from io import RawIOBase
from typing import BinaryIO, cast

_MOST_BYTES = 16 << 20  # kept back at most


class LeadingMirror(RawIOBase):
    """A sink of lines that hands them on while `leads()` is true. `kept_s` is how long others may not have noticed."""

    def __init__(
        self,
        mirror: BinaryIO,
        leads: Callable[[], bool],
        kept_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mirror = mirror
        self._leads = leads
        self._kept_s = kept_s
        self._clock = clock
        self._kept: deque[tuple[float, bytes]] = deque()
        self._num_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        """All of `data`, now or when this node comes to lead."""
        lines = bytes(cast(bytes, data))
        self._forget()
        if not self._leads():
            self._kept.append((self._clock(), lines))
            self._num_bytes += len(lines)
            return len(lines)
        while self._kept:
            _, kept = self._kept.popleft()
            self._num_bytes -= len(kept)
            _write_all(self._mirror, kept)
        _write_all(self._mirror, lines)
        return len(lines)

    def flush(self) -> None:
        self._mirror.flush()

    def _forget(self) -> None:
        too_old_s = self._clock() - self._kept_s
        while self._kept and (self._kept[0][0] < too_old_s or self._num_bytes > _MOST_BYTES):
            _, gone = self._kept.popleft()
            self._num_bytes -= len(gone)


def _write_all(mirror: BinaryIO, lines: bytes) -> None:
    view = memoryview(lines)
    while view:
        view = view[mirror.write(view) or 0 :]
