"""A witness's memory in one file: the key and the newest checkpoint of every log it vouched for, and their digest.

Wiring opens it for `htfi ledger cosign`. Implements governance's WitnessMemory.
"""

import fcntl
import os
from hashlib import sha256
from pathlib import Path

import msgspec

from htfi.domain.errors import IntegrityError, LedgerUnavailable
from htfi.domain.files import make_private, open_private, write_atomically
from htfi.governance.ports import WitnessedLog

_DIGEST_PREFIX = b"sha256 "
_DECODER = msgspec.json.Decoder(dict[str, WitnessedLog])


class WitnessMemoryFile:
    """The memory in `path`, held by this process until `close`; waits where another one holds it."""

    def __init__(self, path: Path) -> None:
        """Raises: LedgerUnavailable, IntegrityError."""
        self._path = path
        try:
            make_private(path.parent)
            self._lock = open_private(path.with_name(path.name + ".lock"), os.O_RDWR)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            content = path.read_bytes() if path.exists() else b"{}"
        except OSError as error:
            raise LedgerUnavailable(f"cannot use the witness's memory {path}: {error.strerror}") from error
        try:
            self._seen = _DECODER.decode(_verified_content(content))
        except (msgspec.DecodeError, ValueError) as error:
            self.close()
            raise IntegrityError(f"the witness's memory {path} is damaged ({error}): restore it") from error

    def recall(self, origin: str) -> WitnessedLog | None:
        return self._seen.get(origin)

    def remember(self, origin: str, seen: WitnessedLog) -> None:
        self._seen[origin] = seen
        content = msgspec.json.format(msgspec.json.encode(self._seen)) + b"\n"
        try:
            write_atomically(
                self._path, content + _DIGEST_PREFIX + sha256(content).hexdigest().encode() + b"\n"
            )
        except OSError as error:
            raise LedgerUnavailable(
                f"cannot write the witness's memory {self._path}: {error.strerror}"
            ) from error

    def close(self) -> None:
        os.close(self._lock)


def _verified_content(content: bytes) -> bytes:
    """What stands before the digest. A memory from before there was one has none. Raises: ValueError."""
    body, found, digest = content.rpartition(_DIGEST_PREFIX)
    if not found:
        return content
    if digest.strip() != sha256(body).hexdigest().encode():
        raise ValueError("its digest does not match")
    return body
