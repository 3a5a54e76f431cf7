"""What a backup of a service holds: each file with its length and SHA-256, the ledgers, the rows of the database."""

import hashlib
import os
import stat
from pathlib import Path, PurePosixPath

import msgspec

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput

MANIFEST = "manifest.json"
CONTENT = "service"  # in a backup: the files of the service's folder
ROWS = "database.jsonl"  # in a backup: the rows of the service's database
FORMAT = 1
_CHUNK_BYTES = 1 << 20


class BackupFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the backup, named from its folder."""

    path: str
    num_bytes: int
    sha256: str


class BackupLedger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A log as it was copied: its database, named from the service's folder, its size and its signed checkpoint."""

    path: str
    size: int
    checkpoint: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a restore checks, and what is not there. Paths of `keys_left_out` are of the service's folder."""

    format: int
    version: str
    made: str
    num_steps: int  # of the database
    num_rows: dict[str, int]
    has_keys: bool
    keys_left_out: tuple[str, ...]
    left_out: tuple[str, ...]
    remarks: tuple[str, ...]
    ledgers: tuple[BackupLedger, ...]
    files: tuple[BackupFile, ...]


def encode_manifest(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a backup, with safe names. Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
    path = backup / MANIFEST
    try:
        if path.is_symlink() or not path.is_file():
            raise InvalidInput(f"{backup} is no backup of a service: it has no {MANIFEST}")
        data = path.read_bytes()
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror}") from error
    try:
        head = msgspec.json.decode(data, type=_ManifestHead)
        if head.format > FORMAT:
            raise InvalidInput(
                f"{backup} was made by a newer version ({head.version}): restore it with that one"
            )
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{path}: is damaged: {error}") from error
    names = [one.path for one in found.files]
    for name in (*names, *(f"{CONTENT}/{one.path}" for one in found.ledgers)):
        if not _is_safe(name):
            raise IntegrityError(f"{path}: {name[:80]!r} is no name of a file in a backup: it was altered")
    if len(set(names)) != len(names):
        raise IntegrityError(f"{path}: a file is there twice: it was altered")
    return found


def files_below(folder: Path) -> list[Path]:
    """Every plain file below a folder, in order. Raises: IntegrityError for anything else, DependencyUnavailable."""
    found: list[Path] = []
    try:
        for place in sorted(folder.rglob("*")):
            mode = place.lstat().st_mode
            if stat.S_ISREG(mode):
                found.append(place)
            elif not stat.S_ISDIR(mode):
                raise IntegrityError(f"{place}: is neither a file nor a folder: the backup was altered")
    except OSError as error:
        raise DependencyUnavailable(f"{folder}: cannot be read: {error.strerror}") from error
    return found


def digest_of(path: Path) -> tuple[int, str]:
    """Length and SHA-256 of a file, which is synced. Raises: OSError."""
    digest, num_bytes = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(_CHUNK_BYTES):
            digest.update(data)
            num_bytes += len(data)
        os.fsync(file.fileno())
    return num_bytes, digest.hexdigest()


class _ManifestHead(msgspec.Struct):
    format: int
    version: str = "unknown"


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    parts = path.parts
    is_plain = path.as_posix() == name and not path.is_absolute() and ".." not in parts and "\0" not in name
    return is_plain and (name == ROWS or (len(parts) > 1 and parts[0] == CONTENT))
