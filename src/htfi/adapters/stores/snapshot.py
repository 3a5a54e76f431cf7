"""Small files that are replaced as a whole: the saved state of a run, its settings. Wiring and the loop use them."""

from pathlib import Path

from htfi.domain import files
from htfi.domain.errors import DependencyUnavailable


class SnapshotFile:
    """`path` holds a whole snapshot or does not exist; a crash while saving leaves the one before."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> bytes | None:
        return read_whole(self._path)

    def save(self, data: bytes) -> None:
        write_whole(self._path, data)


def read_whole(path: Path) -> bytes | None:
    """The file's bytes; None where there is none. Raises: DependencyUnavailable."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be read: {error.strerror}; check its permissions"
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file atomically and durably, for its owner alone. Raises: DependencyUnavailable."""
    try:
        files.write_atomically(path, data)
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be written: {error.strerror}; what is recorded is safe, free some disk space and run again"
        ) from error
