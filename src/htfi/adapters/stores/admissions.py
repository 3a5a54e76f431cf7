"""Two files of a run: releases.jsonl, people's words on quarantine and suspicion; released.jsonl, where they took
effect, and where news entered that was posted (`posted_news`).

`htfi quarantine admit` and `htfi suspicion clear` append to the first, also while a run continues; the run alone
appends to the second. Both are safe on the disk before it is reported.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from htfi.adapters.stores.posted_news import PostedNewsReader, copy_entered
from htfi.domain.errors import AccessDenied, DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import add_checksum, checksum_holds, open_private, sync_folder
from htfi.pipeline.operator_actions import (
    AppliedAction,
    NewsAdmission,
    OperatorAction,
    PostedEntry,
    PostedNews,
    ResetOrder,
)

REQUESTED_FILE = "releases.jsonl"
ADMITTED_FILE = "released.jsonl"
_ENCODER = msgspec.json.Encoder()
_Line = TypeVar("_Line")


class AdmissionsFile:
    """Implements the port `OperatorActions` for a run's folder; the run holds the ledger's lock, so no other process
    does.

    `again` is the released.jsonl of another folder: what entered there enters here at the same places.
    """

    def __init__(self, folder: Path, again: Path | None = None) -> None:
        """Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
        self._asked, self._path = folder / REQUESTED_FILE, folder / ADMITTED_FILE
        self._entered = list(_read_lines(self._path, AppliedAction, mend=True))
        self._seen: tuple[int, int] | None = None
        if again is not None:
            copy_entered(again.parent, folder, _num_posted(_read_lines(again, AppliedAction)))
        self._posted = PostedNewsReader(folder)
        self._items: dict[int, PostedNews] = {}  # posted, and not taken out by the feed
        self._num_posted = _num_posted(self._entered)
        if again is None:
            return
        if not again.is_file():
            raise InvalidInput(f"there is no {again}: name the released.jsonl of a run")
        applied = list(_read_lines(again, AppliedAction))
        num = len(self._entered)
        if applied[:num] != self._entered[: len(applied)]:
            raise InvalidInput(f"{self._path} holds other admissions than {again}: use a new folder")
        for entered in applied[num:]:
            self.record_applied(entered)

    def applied(self) -> Sequence[AppliedAction]:
        return self._entered

    def requested(self) -> Sequence[OperatorAction]:
        self._read_posted()
        posted = [one.entry for number, one in self._items.items() if number > self._num_posted]
        return [*posted, *self._requested_by_people()]

    def find_posted(self, number: int) -> PostedNews | None:
        self._read_posted()
        for earlier in [one for one in self._items if one < number]:
            del self._items[earlier]
        return self._items.get(number)

    def _read_posted(self) -> None:
        for posted in self._posted.read_new():
            self._items[posted.number] = posted

    def _requested_by_people(self) -> Sequence[OperatorAction]:
        try:
            about = self._asked.stat()
        except OSError:
            return ()
        now = (about.st_size, about.st_mtime_ns)
        if now == self._seen:
            return ()
        waiting = not_yet_effective(_read_requests(self._asked), self._entered)
        self._seen = now if not waiting else None
        return waiting

    def record_applied(self, applied: AppliedAction) -> None:
        _append_line(self._path, add_checksum(_ENCODER.encode(applied), len(self._entered)))
        self._entered.append(applied)
        if isinstance(applied.release, PostedEntry):
            self._num_posted = applied.release.number


def _num_posted(applied: Sequence[AppliedAction]) -> int:
    """How many posted items have entered; they do in order."""
    return max((one.release.number for one in applied if isinstance(one.release, PostedEntry)), default=0)


def not_yet_effective(
    asked: Sequence[OperatorAction], applied: Sequence[AppliedAction]
) -> list[OperatorAction]:
    """Those that have not taken effect."""
    done = {(type(action.release), action.release.number) for action in applied}
    return [release for release in asked if (type(release), release.number) not in done]


def read_admissions(folder: Path) -> tuple[list[OperatorAction], list[AppliedAction]]:
    """What people asked for in a run's folder, and what took effect. Raises: IntegrityError, DependencyUnavailable."""
    return _read_requests(folder / REQUESTED_FILE), list(_read_lines(folder / ADMITTED_FILE, AppliedAction))


def request_admission(folder: Path, release: NewsAdmission) -> None:
    """Write a person's word down for good; the same word again changes nothing.

    Raises: InvalidInput where the item is released already, on another word.
    """
    with _appending_request(folder) as (requests, place):
        admissions = (request for request in requests if isinstance(request, NewsAdmission))
        earlier = next((request for request in admissions if request.number == release.number), None)
        if earlier == release:
            return
        if earlier is not None:
            raise InvalidInput(f"item {release.number} ({release.id}) was already admitted by {earlier.by}")
        _append_line(folder / REQUESTED_FILE, add_checksum(_ENCODER.encode(release), place))


def request_suspicion_reset(
    folder: Path,
    by: str,
    why: str,
    symbol: str,
    signed: str | msgspec.UnsetType = msgspec.UNSET,
    request: str | msgspec.UnsetType = msgspec.UNSET,
) -> ResetOrder:
    """Write down for good a person's word that suspicion is to end; it is given a number of its own.

    A `request` that was written down before is returned as it is. Raises: AccessDenied where another one is signed
    by the same note.
    """
    with _appending_request(folder) as (requests, place):
        for earlier in requests:
            if isinstance(earlier, PostedEntry):
                continue
            if (
                request is not msgspec.UNSET
                and isinstance(earlier, ResetOrder)
                and earlier.request == request
            ):
                return earlier
            if signed is not msgspec.UNSET and earlier.signed == signed:
                raise AccessDenied("what was signed was asked for before: sign it again")
        clearing = ResetOrder(
            min((one.number for one in requests if one.number < 0), default=0) - 1,
            by,
            why,
            symbol,
            signed,
            request,
        )
        _append_line(folder / REQUESTED_FILE, add_checksum(_ENCODER.encode(clearing), place))
    return clearing


@contextmanager
def _appending_request(folder: Path) -> Generator[tuple[list[OperatorAction], int]]:
    """All that was said so far and the next line's place, while no other process appends.

    Raises: DependencyUnavailable.
    """
    path = folder / REQUESTED_FILE
    try:
        lock = open_private(path, os.O_RDWR)
    except OSError as error:
        raise _unavailable(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # held for one append: no process waits long
        asked = _read_requests(path, mend=True)
        yield (
            [*(action.release for action in _read_lines(folder / ADMITTED_FILE, AppliedAction)), *asked],
            len(asked),
        )
    finally:
        os.close(lock)


def _read_requests(path: Path, *, mend: bool = False) -> list[OperatorAction]:
    return _read_lines(path, cast("type[OperatorAction]", OperatorAction), mend=mend)


def _read_lines(path: Path, kind: type[_Line], *, mend: bool = False) -> list[_Line]:
    """The whole lines of a file; what a crash left of one is cut off where its writer may `mend` it."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unavailable(path, error) from error
    end = content.rfind(b"\n") + 1
    if mend and end < len(content):
        try:
            os.truncate(path, end)
        except OSError as error:
            raise _unavailable(path, error) from error
    decode: Callable[[bytes], _Line] = msgspec.json.Decoder(kind).decode
    lines: list[_Line] = []
    for number, line in enumerate(content[:end].splitlines(), 1):
        try:
            if not checksum_holds(line, number - 1):
                raise IntegrityError(
                    f"{path}, line {number}: is not as it was written: restore it from a copy"
                )
            lines.append(decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise IntegrityError(
                f"{path}, line {number}: is not an admission: restore it from a copy"
            ) from error
    return lines


def _append_line(path: Path, line: bytes) -> None:
    try:
        is_new = not path.exists()
        file = open_private(path, os.O_WRONLY | os.O_APPEND)
        try:
            rest = memoryview(line + b"\n")
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        finally:
            os.close(file)
        if is_new:
            sync_folder(path.parent)
    except OSError as error:
        raise _unavailable(path, error) from error


def _unavailable(path: Path, error: OSError) -> DependencyUnavailable:
    return DependencyUnavailable(
        f"{path}: {error.strerror or error}: free some disk space, or check its permissions"
    )
