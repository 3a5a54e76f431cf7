"""News that was handed to a run from outside, posted_news.jsonl: written by who takes it, read by the run.

A line is an item with its number, safe on the disk before its sender is answered. Several processes may append; the run
reads on from where it has read to, and records in released.jsonl where each item entered.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import add_checksum, checksum_holds, open_private, sync_folder, write_atomically
from htfi.pipeline.operator_actions import PostedNews

POSTED_FILE = "posted_news.jsonl"
MAX_WAITING = 10_000  # items that a run has not taken yet

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(PostedNews)


class PostedNewsReader:
    """Reads each item once, in order."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / POSTED_FILE
        self._num_bytes = self._num_lines = 0

    def read_new(self) -> list[PostedNews]:
        """Those that came since. Raises: IntegrityError, DependencyUnavailable."""
        try:
            if self._path.stat().st_size <= self._num_bytes:
                return []
            with self._path.open("rb") as file:
                file.seek(self._num_bytes)
                content = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unavailable(self._path, error) from error
        content = content[: content.rfind(b"\n") + 1]
        found = [
            self._decoded(line, self._num_lines + place) for place, line in enumerate(content.splitlines())
        ]
        self._num_bytes += len(content)
        self._num_lines += len(found)
        return found

    @property
    def num_bytes(self) -> int:
        """Of the whole lines that were read."""
        return self._num_bytes

    def _decoded(self, line: bytes, place: int) -> PostedNews:
        where = f"{self._path}, line {place + 1}"
        if not checksum_holds(line, place):
            raise IntegrityError(f"{where}: is not as it was written: restore it from a copy")
        try:
            posted = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise IntegrityError(f"{where}: is no item of news: restore it from a copy") from error
        if posted.number != place + 1:
            raise IntegrityError(f"{where}: holds item {posted.number}: restore it from a copy")
        return posted


class PostedNewsFile:
    """What was posted to a run, by id, and where more is appended. For several threads and processes."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / POSTED_FILE
        self._reader = PostedNewsReader(folder)
        self._lock = threading.Lock()
        self._by_id: dict[str, PostedNews] = {}

    def read(self) -> dict[str, PostedNews]:
        """Items by id, in order. Raises: IntegrityError, DependencyUnavailable."""
        with self._lock:
            self._read_on()
            return dict(self._by_id)

    def append(self, items: Sequence[PostedNews], num_taken: Callable[[], int]) -> list[PostedNews]:
        """Write items down for good, under the next numbers; those whose id is known are not written again.
        `num_taken` says how many the run has taken.

        Returns the items as they stand in the file. Raises: InvalidInput where an id is that of another item,
        RunIsBehind, IntegrityError, DependencyUnavailable.
        """
        with self._lock:
            try:
                lock = open_private(self._path, os.O_RDWR | os.O_APPEND)
            except OSError as error:
                raise _unavailable(self._path, error) from error
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)  # held for one append: no process waits long
                return self._append(lock, items, num_taken)
            except OSError as error:
                raise _unavailable(self._path, error) from error
            finally:
                os.close(lock)

    def _append(
        self, file: int, items: Sequence[PostedNews], num_taken: Callable[[], int]
    ) -> list[PostedNews]:
        self._read_on()
        os.ftruncate(file, self._reader.num_bytes)  # what a crash left of a line; nothing has read it
        is_first = not self._by_id
        known = dict(self._by_id)
        lines: list[bytes] = []
        standing: list[PostedNews] = []
        for posted in items:
            posted = msgspec.structs.replace(
                posted, number=len(known) + 1, item=msgspec.structs.replace(posted.item, row=len(known) + 1)
            )
            earlier = known.setdefault(posted.item.id, posted)
            if not _is_same(earlier, posted):
                raise InvalidInput(
                    f"{posted.item.id[:80]!r} is the id of another item: give this one its own, and state `corrects`"
                )
            if earlier is posted:
                lines.append(add_checksum(_ENCODER.encode(posted), posted.number - 1) + b"\n")
            standing.append(earlier)
        if lines and len(known) - num_taken() > MAX_WAITING:
            raise RunIsBehind(f"{MAX_WAITING:,} items wait for the run: post them later")
        rest = memoryview(b"".join(lines))
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, self._reader.num_bytes)
            raise
        if is_first:
            sync_folder(self._folder)
        return standing

    def _read_on(self) -> None:
        for posted in self._reader.read_new():
            self._by_id[posted.item.id] = posted


class RunIsBehind(DependencyUnavailable):
    """A run has not taken what was posted before."""


def copy_entered(source: Path, folder: Path, num_entered: int) -> None:
    """Give a run that repeats another one the items that entered that one, unless it has some already.

    Raises: DependencyUnavailable, IntegrityError.
    """
    path = folder / POSTED_FILE
    if not num_entered or path.exists():
        return
    PostedNewsReader(source).read_new()  # so that what is damaged is not copied
    try:
        lines = (source / POSTED_FILE).read_bytes().splitlines(keepends=True)
        write_atomically(path, b"".join(lines[:num_entered]))
    except OSError as error:
        raise _unavailable(source / POSTED_FILE, error) from error


def _is_same(one: PostedNews, other: PostedNews) -> bool:
    """Whether two are the same item, whenever and by whomever they were posted."""
    return one is other or msgspec.structs.replace(one.item, row=0) == msgspec.structs.replace(
        other.item, row=0
    )


def _unavailable(path: Path, error: OSError) -> DependencyUnavailable:
    return DependencyUnavailable(
        f"{path}: {error.strerror or error}: free some disk space, or check its permissions"
    )
