"""SHA-256 of whole files, and a cache of the digests of files that stay as they are.

A run names in its ledger the models that it reads with, by digest, and large models take seconds to read whole. What
verifies, replays, promotes or serves computes every digest anew.
"""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from htfi.domain.files import make_private, write_atomically

DigestFile = Callable[[Path], str]
"""SHA-256 (hex) of a file. Raises: OSError."""

_SETTLED_NS = 60 * 10**9
_HAS_CHANGE_TIME = os.name == "posix"  # elsewhere st_ctime is when the file was made


def file_digest(file: Path) -> str:
    """SHA-256 (hex) of what the file holds now. Raises: OSError."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _FileIdentity(msgspec.Struct, frozen=True):
    path_digest: str  # of its bytes: entries name no path
    device: int
    inode: int
    num_bytes: int
    modified_ns: int
    changed_ns: int


class _Entry(msgspec.Struct, frozen=True):
    identity: _FileIdentity
    digest: str
    check: str  # of the two above, so that a damaged entry is none


class FileDigestCache:
    """Digests in a folder, an entry a file, found again only while path, device, inode, size and times are the same.

    The system sets the time of the last change (ctime) at every write, rename and change of the other times, and lets
    no program choose it: a file whose content was replaced and its time restored is read anew. A file that changed
    within the last minute is not kept: a later change could bear the same time, and pages that a program writes through
    a memory map count as changed when they are first touched. Where there is no such time nothing is kept.
    """

    def __init__(self, folder: Path, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder, self._now_ns = folder, now_ns

    def digest(self, file: Path) -> str:
        """SHA-256 (hex). Raises: OSError."""
        before = _identity(file)
        place = self._folder / f"{before.path_digest}.json"
        known = _read(place)
        if _HAS_CHANGE_TIME and known is not None and known.identity == before:
            return known.digest
        found = file_digest(file)
        settled = self._now_ns() - max(before.modified_ns, before.changed_ns) > _SETTLED_NS
        if _HAS_CHANGE_TIME and settled and _identity(file) == before:
            with suppress(OSError):  # read-only or full: it is computed again
                make_private(self._folder)
                write_atomically(place, msgspec.json.encode(_Entry(before, found, _check(before, found))))
        return found


def _identity(file: Path) -> _FileIdentity:
    found = file.stat()
    path = os.fsencode(file.absolute())
    return _FileIdentity(
        hashlib.sha256(path).hexdigest(),
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _read(place: Path) -> _Entry | None:
    try:
        entry = msgspec.json.decode(place.read_bytes(), type=_Entry)
    except (OSError, msgspec.MsgspecError):
        return None
    return entry if entry.check == _check(entry.identity, entry.digest) else None


def _check(identity: _FileIdentity, digest: str) -> str:
    return hashlib.sha256(msgspec.json.encode((identity, digest))).hexdigest()
