"""One owner per ledger: an advisory lock on a file beside the database. Wiring takes it before it opens."""

import fcntl
import os
from pathlib import Path

from htfi.domain.errors import LedgerUnavailable
from htfi.domain.files import open_private


class OwnerLock:
    """The right to append, held through an advisory lock that ends with the process, however it ends."""

    def __init__(self, path: Path) -> None:
        """Raises: LedgerUnavailable where another process holds it, or the file cannot be written."""
        self._lock_path = _lock_path(path)
        try:
            self._descriptor = open_private(self._lock_path, os.O_RDWR)
        except OSError as error:
            raise LedgerUnavailable(f"cannot write to {path.parent}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())
        except BlockingIOError:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise LedgerUnavailable(
                f"{path} is in use by process {holder}: wait until it ends, or choose another folder"
            ) from None
        except OSError as error:
            os.close(self._descriptor)
            raise LedgerUnavailable(f"cannot write to {self._lock_path}: {error.strerror}") from error

    def release(self) -> None:
        os.close(self._descriptor)


def is_held(path: Path) -> bool:
    """Whether some process owns the ledger; without writing anything."""
    try:
        descriptor = os.open(_lock_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")
