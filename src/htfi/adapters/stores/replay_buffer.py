"""The replay buffer on disk: what a target lately said, the oldest dropped. A service adds, `htfi models distil` reads.

Two files of lines: when the younger is half the bound, it takes the older's place. A line is written in one call, so
a crash cuts at most the last one short, which reading skips.
"""

import errno
import os
from pathlib import Path

from htfi.decoding.replay_buffer import ReplayRecord, from_line, to_line
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import make_private, open_private

CURRENT_FILE, PREVIOUS_FILE = "recent.jsonl", "recent.old.jsonl"
DEFAULT_MAX_BYTES = 64 * 2**20


class ReplayBufferFile:
    """Appends to the buffer in `folder`. A disk that fails must not stop a service: what is lost is counted."""

    def __init__(self, folder: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        """Raises: DependencyUnavailable, when the folder cannot be made or written."""
        self.num_lost = 0
        self.last_error = ""  # why the last one was lost
        self._folder = folder
        self._max_file_bytes = max(max_bytes // 2, 1)
        try:
            make_private(folder)
            self._open()
        except OSError as error:
            raise DependencyUnavailable(
                f"replay buffer {folder}: cannot be written: {error.strerror}; name another folder"
            ) from error

    def add(self, exchange: ReplayRecord) -> bool:
        """Append one; false where it was lost."""
        line = to_line(exchange)
        try:
            if self._size and self._size + len(line) > self._max_file_bytes:
                self._rotate()
            if os.write(self._file, line) < len(line):
                os.ftruncate(self._file, self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._size += len(line)
        except OSError as error:
            self.num_lost += 1
            self.last_error = f"replay buffer {self._folder}: {error.strerror}"
            return False
        return True

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> None:
        path = self._folder / CURRENT_FILE
        self._file = open_private(path, os.O_RDWR | os.O_APPEND)
        self._size = os.fstat(self._file).st_size
        if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
            self._size += os.write(self._file, b"\n")  # ends a line that a crash cut short

    def _rotate(self) -> None:
        self.close()
        (self._folder / CURRENT_FILE).replace(self._folder / PREVIOUS_FILE)
        self._open()


def read_replay_buffer(folder: Path) -> tuple[list[ReplayRecord], int]:
    """All exchanges, oldest first, and how many lines were skipped as unreadable.

    Raises: InvalidInput, when the folder is not a replay buffer; DependencyUnavailable, when it cannot be read.
    """
    files = [file for name in (PREVIOUS_FILE, CURRENT_FILE) if (file := folder / name).is_file()]
    if not files:
        raise InvalidInput(
            f"{folder} holds no replay buffer: name the folder in which a service keeps {CURRENT_FILE}"
        )
    found: list[ReplayRecord] = []
    num_skipped = 0
    for file in files:
        try:
            lines = file.read_bytes().split(b"\n")[:-1]
        except OSError as error:
            raise DependencyUnavailable(f"{file} cannot be read: {error.strerror}") from error
        for line in lines:  # what follows the last line end was cut short
            try:
                found.append(from_line(line))
            except InvalidInput:
                num_skipped += 1
    return found, num_skipped
