"""Which draft is the current one: distilling promotes, a running service picks up between requests.

A folder of drafts holds each under its digest's name and one small pointer, replaced as a whole. Whoever follows the
pointer sees the old draft or the new one, never half of one.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from htfi.adapters.stores.snapshot import read_whole, write_whole
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput
from htfi.wiring.open_folder import OpenFolder, open_folder

POINTER = "promoted.json"


class Promoted(msgspec.Struct, frozen=True):
    """The pointer: a folder's name beside it and that folder's digest, whose draft it replaced, and by how much.

    `acceptance` holds the shares before and after on held-back questions.
    """

    folder: str
    digest: str
    replaced: str
    acceptance: tuple[float, float]


def promote(drafts: Path, candidate: Path, replaced: str, acceptance: tuple[float, float]) -> Path:
    """Move a whole model folder into `drafts` and point at it; where it lies now. Raises: DependencyUnavailable."""
    digest = ModelFolder.open(candidate).digest
    folder = drafts / f"draft-{digest[:12]}"
    try:
        if _is_whole(folder, digest):  # promoted before: who reads it now is not disturbed
            shutil.rmtree(candidate)
        else:
            if folder.exists():
                shutil.rmtree(folder)
            candidate.rename(folder)
    except OSError as error:
        raise DependencyUnavailable(f"{folder} cannot be written: {error.strerror}") from error
    pointer = Promoted(folder.name, digest, replaced, acceptance)
    write_whole(drafts / POINTER, msgspec.json.encode(pointer) + b"\n")
    return folder


def _is_whole(folder: Path, digest: str) -> bool:
    try:
        return ModelFolder.open(folder).digest == digest
    except HtfiError:
        return False


def read_promoted(drafts: Path) -> Promoted | None:
    """What `drafts` points at, None where nothing was promoted yet. Raises: InvalidInput, DependencyUnavailable."""
    content = read_whole(drafts / POINTER)
    if content is None:
        return None
    try:
        found = msgspec.json.decode(content, type=Promoted)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{drafts / POINTER} is damaged ({error}): promote a draft again") from error
    if Path(found.folder).name != found.folder or found.folder in ("", ".", ".."):
        raise InvalidInput(f"{drafts / POINTER} names {found.folder!r}, which is not a folder beside it")
    return found


class PromotedDraft:
    """The current draft of a running service: `first`, until another is promoted in `drafts`.

    What was promoted but is not whole, or has another vocabulary, is told once to `report` and passed over.
    """

    def __init__(self, drafts: Path, first: OpenFolder, report: Callable[[str], None]) -> None:
        self._pointer = drafts / POINTER
        self._drafts = drafts
        self._opened = first
        self._report = report
        self._seen: tuple[int, int, int] | None = None

    def current(self) -> OpenFolder:
        """One look at the pointer's stamp, unless that has changed. Ask between requests; never raises."""
        try:
            found = os.stat(self._pointer)  # noqa: PTH116 (a third of the time of Path.stat, at every request)
        except OSError:
            return self._opened
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._opened = self._open()
            except HtfiError as error:
                self._report(f"promoted draft passed over, {self._opened.folder.path.name} stays: {error}")
        return self._opened

    def _open(self) -> OpenFolder:
        promoted = read_promoted(self._drafts)
        if promoted is None or promoted.digest == self._opened.folder.digest:
            return self._opened
        opened = open_folder(self._drafts / promoted.folder, self._opened.precision, self._opened.engine)
        if opened.folder.digest != promoted.digest:
            raise InvalidInput(f"{opened.folder.path} is not as it was when it was promoted")
        if opened.tokenizer.digest != self._opened.tokenizer.digest:
            raise InvalidInput(f"{opened.folder.path} has another tokenizer")
        return opened
