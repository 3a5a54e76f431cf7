"""The journal of one FIX session: its sequence numbers and messages, on disk before they are sent or delivered.

One file of records that are only appended; a record cut off by a crash ends it. One process may own it. With each reset
of the numbers a new file begins and the earlier one stays beside it. A session message of ours is a number alone.
"""

import contextlib
import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.files import make_private, open_private, sync_folder

_RECORD = struct.Struct("<IIBQ")  # bytes of the frame, CRC-32 of what follows it, kind, number
_SENT, _RECEIVED, _EXPECTED = 1, 2, 3
_MAX_FRAME_BYTES = 2**27


class _Place(NamedTuple):
    offset: int
    num_bytes: int


class MessageJournal:
    """What a session has sent and received. Appended records are on disk after `flush`."""

    def __init__(self, folder: Path, *, sync: bool = True) -> None:
        """Raises: DependencyUnavailable where another process owns it or the disk refuses; IntegrityError."""
        self.folder = folder
        self.next_out = 1
        self.next_in = 1
        self._sync = sync
        self._pending: list[bytes] = []
        self._num_pending_bytes = 0
        self._sent: dict[int, _Place] = {}
        try:
            make_private(folder)
            self._lock = open_private(folder / "owner.lock", os.O_RDWR)
        except OSError as error:
            raise DependencyUnavailable(f"{folder}: cannot open the FIX journal: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise DependencyUnavailable(
                f"{folder}: another process owns this FIX session: end it, or give another folder"
            ) from error
        try:
            self._open()
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def path(self) -> Path:
        return self.folder / "messages.bin"

    def add_sent(self, number: int, frame: bytes) -> None:
        """A message of ours; `frame` empty: a session message, which is never sent again."""
        place = self._add(_SENT, number, frame)
        if frame:
            self._sent[number] = place
        self.next_out = number + 1

    def add_received(self, number: int, frame: bytes) -> None:
        """A message that the application is given."""
        self._add(_RECEIVED, number, frame)
        self.next_in = number + 1

    def add_expected(self, number: int) -> None:
        """The next number that the counterparty will send."""
        self._add(_EXPECTED, number, b"")
        self.next_in = number

    def flush(self) -> None:
        """Write what was added, and sync it. Raises: DependencyUnavailable; then nothing of it counts as written."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        try:
            self._write(data)
        except OSError as error:
            self._forget_pending()
            raise DependencyUnavailable(
                f"{self.path}: cannot write the FIX journal: {error.strerror}: nothing was sent"
            ) from error
        self._num_bytes += len(data)
        self._pending.clear()
        self._num_pending_bytes = 0
        self._written = (self.next_out, self.next_in)

    def _forget_pending(self) -> None:
        """Go back to what is on disk for certain."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._num_bytes)
        self._pending.clear()
        self._num_pending_bytes = 0
        self._sent = {number: place for number, place in self._sent.items() if place.offset < self._num_bytes}
        self.next_out, self.next_in = self._written

    def reset(self) -> None:
        """Both sequences begin at 1 again, in a new file. Raises: DependencyUnavailable."""
        self.flush()
        if self._num_bytes:
            archived = [int(path.stem.rpartition("-")[2]) for path in self._earlier_files()]
            try:
                self.path.rename(self.folder / f"messages-{max(archived, default=0) + 1:06d}.bin")
            except OSError as error:
                raise DependencyUnavailable(f"{self.path}: cannot be renamed: {error.strerror}") from error
            os.close(self._file)
            self._sent.clear()
            self._open()
            sync_folder(self.folder)

    def sent(self, number: int) -> bytes | None:
        """An application message of ours; None where the number is of a session message."""
        return self._frame(self._sent.get(number))

    def received(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """Messages for the application since the numbers began, those after a number: for what it lost in a crash."""
        self.flush()
        data = self.path.read_bytes()
        for kind, number, place in _records(data, self.path):
            if kind == _RECEIVED and number > after:
                yield number, data[place.offset : place.offset + place.num_bytes]

    @property
    def num_files(self) -> int:
        """Files that resets have put aside."""
        return len(self._earlier_files())

    def sent_since(self, num_files: int, number: int) -> Iterator[bytes]:
        """Application messages of ours since there were so many files put aside, from a number of the next file on."""
        yield from self._since(_SENT, num_files, number)

    def received_since(self, num_files: int, number: int) -> Iterator[bytes]:
        """The same of messages for the application."""
        yield from self._since(_RECEIVED, num_files, number)

    def _since(self, wanted: int, num_files: int, first: int) -> Iterator[bytes]:
        self.flush()
        for path in [*self._earlier_files()[num_files:], self.path]:
            data = path.read_bytes()
            for kind, number, place in _records(data, path):
                if kind == wanted and place.num_bytes and number >= first:
                    yield data[place.offset : place.offset + place.num_bytes]
            first = 1

    def _earlier_files(self) -> list[Path]:
        return sorted(self.folder.glob("messages-*.bin"))

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)

    def _add(self, kind: int, number: int, frame: bytes) -> _Place:
        body = struct.pack("<BQ", kind, number) + frame
        record = struct.pack("<II", len(frame), zlib.crc32(body)) + body
        place = _Place(self._num_bytes + self._num_pending_bytes + _RECORD.size, len(frame))
        self._pending.append(record)
        self._num_pending_bytes += len(record)
        return place

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            written = os.write(self._file, rest)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            rest = rest[written:]
        if self._sync:
            os.fdatasync(self._file)

    def _frame(self, place: _Place | None) -> bytes | None:
        if place is None:
            return None
        self.flush()
        return os.pread(self._file, place.num_bytes, place.offset)

    def _open(self) -> None:
        try:
            self._file = open_private(self.path, os.O_RDWR | os.O_APPEND)
            self.next_out = self.next_in = 1
            self._num_bytes = self._read(self.path.read_bytes())
            self._written = (self.next_out, self.next_in)
            os.ftruncate(self._file, self._num_bytes)
        except OSError as error:
            raise DependencyUnavailable(f"{self.path}: cannot be opened: {error.strerror}") from error

    def _read(self, data: bytes) -> int:
        """The bytes of whole records. Raises: IntegrityError where one in the middle does not hold."""
        end = 0
        for kind, number, place in _records(data, self.path):
            if kind == _SENT:
                self.next_out = number + 1
                if place.num_bytes:
                    self._sent[number] = place
            elif kind == _RECEIVED:
                self.next_in = number + 1
            else:
                self.next_in = number
            end = place.offset + place.num_bytes
        return end


def _records(data: bytes, path: Path) -> Iterator[tuple[int, int, _Place]]:
    """Kind, number and frame of the whole records. Raises: IntegrityError where one in the middle does not hold."""
    at = 0
    while at + _RECORD.size <= len(data):
        size, checksum, kind, number = _RECORD.unpack_from(data, at)
        end = at + _RECORD.size + size
        if size > _MAX_FRAME_BYTES or end > len(data):
            return
        if zlib.crc32(data[at + 8 : end]) != checksum:
            if end == len(data):
                return
            raise IntegrityError(
                f"{path}: the record at byte {at} was altered: restore the file from a copy, "
                "or agree with the counterparty on a reset and move it away"
            )
        yield kind, number, _Place(at + _RECORD.size, size)
        at = end
