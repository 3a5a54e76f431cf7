"""A witness's memory in one JSON file: the key and the newest checkpoint of every log it vouched for.

Wiring opens it for `htfi ledger cosign`. Implements governance's WitnessMemory.
"""

import fcntl
import os
from pathlib import Path

import msgspec

from htfi.adapters.keys.durable import sync_folder
from htfi.domain.errors import IntegrityError, LedgerUnavailable
from htfi.governance.ports import Seen

_DECODER = msgspec.json.Decoder(dict[str, Seen])


class FileMemory:
    """The memory in `path`, held by this process until `close`; waits where another one holds it."""

    def __init__(self, path: Path) -> None:
        """Raises: LedgerUnavailable, IntegrityError."""
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(
                path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
            )
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            content = path.read_bytes() if path.exists() else b"{}"
        except OSError as error:
            raise LedgerUnavailable(f"cannot use the witness's memory {path}: {error.strerror}") from error
        try:
            self._seen = _DECODER.decode(content)
        except msgspec.DecodeError as error:
            self.close()
            raise IntegrityError(f"the witness's memory {path} is damaged ({error}): restore it") from error

    def recall(self, origin: str) -> Seen | None:
        return self._seen.get(origin)

    def remember(self, origin: str, seen: Seen) -> None:
        self._seen[origin] = seen
        draft = self._path.with_name(self._path.name + ".new")
        try:
            with draft.open("wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(self._seen)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise LedgerUnavailable(
                f"cannot write the witness's memory {self._path}: {error.strerror}"
            ) from error

    def close(self) -> None:
        os.close(self._lock)
