"""Keeps a view from waiting for its reader. Long-running commands put it around their console.

A pipe that is full, or a terminal that is held, stops the thread that writes to it; a node would then answer no
request, and not end on a signal.
"""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import IO, Any, TextIO, cast

from rich.console import Console

_FLUSH_S = 1.0  # what is written last is waited for so long


class NonBlockingStream:
    """What is written to a stream goes out in a thread of its own. The writer looks at `is_behind` first."""

    def __init__(self, stream: TextIO) -> None:
        self.encoding = stream.encoding
        self._stream, self._descriptor = stream, stream.fileno()
        self._pending = bytearray()
        self._changed = threading.Condition()
        self._is_writing = False
        threading.Thread(target=self._work, name="view", daemon=True).start()

    @property
    def is_behind(self) -> bool:
        """Whether something written has not gone out: then nothing more should be."""
        return bool(self._pending) or self._is_writing

    def write(self, text: str) -> int:
        with self._changed:
            self._pending += text.encode(self.encoding, "replace")
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """It goes out by itself."""

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._descriptor

    def wait(self, timeout_s: float) -> None:
        """Until all has gone out, or so long."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_behind, timeout_s)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._pending))
                self._is_writing = True
                taken, self._pending = bytes(self._pending), bytearray()
            with suppress(OSError):  # the reader is gone
                while taken:
                    taken = taken[os.write(self._descriptor, taken) :]


class DirectStream:
    """Replaces `NonBlockingStream` where writing cannot block."""

    is_behind = False


@contextmanager
def nonblocking_output(console: Console) -> Generator[NonBlockingStream | DirectStream]:
    """Inside, the console writes without waiting; on the way out what is left has a second."""
    before = console.file
    try:
        before.flush()
        out = NonBlockingStream(cast("TextIO", before))
    except (OSError, ValueError, AttributeError):  # it has no descriptor: it is in memory
        yield DirectStream()
        return
    console.file = cast("IO[str]", cast("Any", out))
    try:
        yield out
    finally:
        out.wait(_FLUSH_S)
        console.file = before
