"""Files that only their owner may read, made without following links. All writers of a run's files use it.

A temporary file beside the file replaces it, so a reader finds the old content or the new one, whole. Its name cannot
be guessed and it is made exclusively: a planted link is neither followed nor overwritten. Modes are set on the open
file and do not depend on the umask. Every function raises OSError; callers translate it.

Files that a run appends to and reads back have a checksum in each line, so that a line that is not as written is found.
It stands last in the line's JSON object, `"sum":"16 hexadecimal digits"`, and covers what stands before it and the
line's place in the file, so that lines that were lost, repeated or swapped are found too. It shows damage and careless
edits; who edits on purpose can make new sums. Lines from before there were sums have none and pass.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_GROUP_AND_OTHERS = 0o077  # what a group and everybody else may do
_TEMPORARY_SUFFIX = ".new"


def write_atomically(path: Path, data: bytes | memoryview, *, private: bool = True) -> None:
    """Replace the file atomically and durably. Where it is not `private` it gets the rights that the umask leaves."""
    with atomic_writer(path, private=private) as file:
        file.write(data)


@contextmanager
def atomic_writer(path: Path, *, private: bool = True, over: bool = True) -> Generator[BinaryIO]:
    """A file to write; it replaces `path` at the end of the block, and is removed where the block fails.

    Unless `over`, a file that is there stays, and FileExistsError is raised.
    """
    draft = temporary_path(path)
    descriptor = open_new(draft, private=private)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if over:
            draft.replace(path)
        else:
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def temporary_path(path: Path) -> Path:
    """A name beside the file that cannot be guessed."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}{_TEMPORARY_SUFFIX}")


def open_new(path: Path, *, private: bool = True) -> int:
    """A descriptor to write a file that did not exist. Raises: FileExistsError, also for a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE if private else 0o666)
    if private:
        os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a plain file that only its owner may read, made where it is missing.

    Raises: OSError where the name is a link or no plain file.
    """
    try:
        # Without waiting: opening a foreign pipe for writing would hang.
        descriptor = os.open(
            path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, PRIVATE_FILE
        )
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a link to another place: remove it", str(path)) from error
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file: remove it", str(path))
    if found.st_mode & _GROUP_AND_OTHERS and found.st_uid == os.geteuid():
        os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor


def check_plain(path: Path) -> None:
    """Raise OSError where a pipe, a socket, a device or a folder is in a file's place: opening it could wait for ever.

    What is missing passes, and a link, which is refused or replaced where it is opened.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise OSError(errno.EINVAL, "is not a regular file: remove it", str(path))


def make_private(folder: Path) -> None:
    """Make the folder, and those above it that are missing, for their owner alone; one that exists stays as it is."""
    missing: list[Path] = []
    place = folder
    while not place.exists() and not place.is_symlink():
        missing.append(place)
        place = place.parent
    for place in reversed(missing):
        try:
            place.mkdir(PRIVATE_FOLDER)
            place.chmod(PRIVATE_FOLDER)
        except FileExistsError:
            continue
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def restrict_to_owner(place: Path) -> bool:
    """Remove the rights of all but its owner from a file or folder; whether there were any. A link is left alone.

    Raises: OSError, also where it has another owner.
    """
    found = place.lstat()
    if stat.S_ISLNK(found.st_mode) or not found.st_mode & _GROUP_AND_OTHERS:
        return False
    place.chmod(stat.S_IMODE(found.st_mode) & ~_GROUP_AND_OTHERS)
    return True


def remove_temporary_files(folder: Path, names: Iterable[str]) -> None:
    """Remove what a killed process had begun to write. Only where no other process writes these files."""
    for name in names:
        for draft in (
            folder / f"{name}{_TEMPORARY_SUFFIX}",
            *folder.glob(f"{name}.*{_TEMPORARY_SUFFIX}*"),
        ):  # the first of earlier versions
            draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that new and renamed files in it survive the loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_CHECKSUM_KEY = b',"sum":"'
_CHECKSUM_BYTES = 8
_TAIL_BYTES = len(_CHECKSUM_KEY) + 2 * _CHECKSUM_BYTES + 2


def add_checksum(line: bytes, place: int) -> bytes:
    """A JSON object, without a line's end, with its sum. `place` is where the line begins, or its number."""
    return b'%s%s%s"}' % (line[:-1], _CHECKSUM_KEY, _checksum(line, place))


def checksum_holds(line: bytes, place: int) -> bool:
    """Whether a line, with or without its end, is as it was written there."""
    line = line.removesuffix(b"\n")
    at = len(line) - _TAIL_BYTES
    if at < 0 or not line.startswith(_CHECKSUM_KEY, at):
        return True
    return line[at + len(_CHECKSUM_KEY) : -2] == _checksum(line[:at] + b"}", place)


def altered_lines(path: Path, num_bytes: int) -> Iterator[int]:
    """The numbers, from 1, of the lines in the file's first bytes that are not as written; the next if it is shorter.

    Places are byte offsets. Raises: OSError.
    """
    offset = number = 0
    with path.open("rb") as file:
        while offset < num_bytes:
            line = file.readline(num_bytes - offset)
            number += 1
            if not line.endswith(b"\n") or not checksum_holds(line, offset):
                yield number
            if not line:
                return
            offset += len(line)


def _checksum(line: bytes, place: int) -> bytes:
    return blake2b(place.to_bytes(8, "little") + line, digest_size=_CHECKSUM_BYTES).hexdigest().encode()
