"""The saved state of a run as one file, replaced atomically. The loop saves and loads it."""

import os
from pathlib import Path

from htfi.domain.errors import DependencyUnavailable


class SnapshotFile:
    """`path` holds a whole snapshot or does not exist; a crash while saving leaves the one before."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DependencyUnavailable(f"{self._path}: {error.strerror}: check the file's permissions") from error

    def save(self, data: bytes) -> None:
        fresh = self._path.with_suffix(".new")
        try:
            with fresh.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
        except OSError as error:
            raise DependencyUnavailable(
                f"{self._path}: {error.strerror}: nothing recorded is lost; free space and start again"
            ) from error
