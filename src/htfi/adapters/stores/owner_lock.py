"""The right to append to a ledger, as an advisory lock on a file beside its database. Wiring takes it."""

import fcntl
import os
import time
from pathlib import Path

from htfi.domain.errors import LedgerUnavailable
from htfi.domain.files import open_private

_LOCK_STEP_S = 0.005  # between two looks at a lock that another process holds


class OwnerLock:
    """The right to append, held through an advisory lock that ends with the process, however it ends."""

    def __init__(self, path: Path, wait_s: float = 0.0) -> None:
        """Wait at most `wait_s` for another process that holds it to let go.

        Raises: LedgerUnavailable where it does not, or the file cannot be written.
        """
        self._lock_file_of = _lock_file_of(path)
        try:
            self._descriptor = open_private(self._lock_file_of, os.O_RDWR)
        except OSError as error:
            raise LedgerUnavailable(f"cannot write to {path.parent}: {error.strerror}") from error
        try:
            _lock(self._descriptor, wait_s)
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())
        except BlockingIOError:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            waited = f" and was for {wait_s:g} s" if wait_s else ""
            advice = (
                "run this command again once it has ended"
                if wait_s
                else "wait until it ends, or choose another folder"
            )
            raise LedgerUnavailable(f"{path} is in use by process {holder}{waited}: {advice}") from None
        except OSError as error:
            os.close(self._descriptor)
            raise LedgerUnavailable(f"cannot write to {self._lock_file_of}: {error.strerror}") from error

    def release(self) -> None:
        os.close(self._descriptor)


def _lock(descriptor: int, wait_s: float) -> None:
    """Raises: BlockingIOError where another process holds the lock for longer than `wait_s`."""
    until_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                raise
            time.sleep(_LOCK_STEP_S)
        else:
            return


def is_owned(path: Path) -> bool:
    """Whether some process owns the ledger; without writing anything."""
    try:
        descriptor = os.open(_lock_file_of(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
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


def _lock_file_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")
