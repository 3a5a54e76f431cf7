"""Saves a run's state at an event boundary and restores it, so that a run can stop anywhere and resume.

A saved state is never a source of truth: what was decided after it is decided again and must equal the ledger. Its
bytes stand behind their SHA-256; where they differ, the run begins again with its inputs, and all that it decides must
equal the ledger.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.ports import Position, RowQuarantine, SnapshotStore

STATE_FORMAT = 5
_HEADER = b"htfi state %d\n" % STATE_FORMAT
_COMPRESSED_HEADER = b"htfi state %d zlib\n" % STATE_FORMAT
_DIGEST_BYTES = 32
_ARRAY = 1  # MessagePack extension code: dtype, shape and raw bytes of an array


class _EncodedArray(msgspec.Struct, array_like=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def encode_state(state: dict[str, Any], *, compress: bool = False) -> bytes:
    """The format's mark, the SHA-256 of mark and content, then MessagePack of nested plain values and numpy arrays.

    Compressed it has half the size and takes ten times as long.
    """
    header, content = _HEADER, _ENCODER.encode(state)
    if compress:
        header, content = _COMPRESSED_HEADER, zlib.compress(content, 1)
    return b"".join((header, _digest(header, content), content))


def decode_state(data: bytes) -> dict[str, Any]:
    """The inverse of `encode_state`; arrays come back writable.

    Raises: IntegrityError where it is not what was saved, or was saved in another format.
    """
    header = next((one for one in (_HEADER, _COMPRESSED_HEADER) if data.startswith(one)), None)
    if header is None:
        raise IntegrityError("the saved state is damaged, or of another version")
    content = memoryview(data)[len(header) + _DIGEST_BYTES :]
    if data[len(header) : len(header) + _DIGEST_BYTES] != _digest(header, content):
        raise IntegrityError("the saved state is not what was saved: its digest does not match")
    return _DECODER.decode(content if header == _HEADER else zlib.decompress(content))


def _digest(header: bytes, content: bytes | memoryview) -> bytes:
    """SHA-256 of both, without a copy of what may be tens of MB."""
    whole = sha256(header)
    whole.update(content)
    return whole.digest()


def _to_ext(value: object) -> object:
    if isinstance(value, np.ndarray):
        value = cast("NDArray[Any]", value)
        packed = _EncodedArray(value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
        return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(packed))
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    raise TypeError(f"a {type(value).__name__} cannot be part of a snapshot")


def _from_ext(code: int, data: memoryview) -> object:
    if code != _ARRAY:
        raise ValueError(f"unknown extension {code}")
    packed = msgspec.msgpack.decode(data, type=_EncodedArray)
    return np.frombuffer(packed.data, np.dtype(packed.dtype)).reshape(packed.shape).copy()


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_to_ext)
_DECODER = msgspec.msgpack.Decoder(ext_hook=_from_ext)


def check_ledger_size(state: dict[str, Any], folder: str, size: int, root: Callable[[int], str]) -> int:
    """How many entries the ledger held when the state was saved.

    Raises: LedgerTruncated where it holds fewer, IntegrityError where it is another.
    """
    num_recorded: int = state["ledger"]["size"]
    if num_recorded > size:
        raise LedgerTruncated(
            f"{folder}: the ledger holds {size:,} entries, but held {num_recorded:,} when the state was saved: it was "
            "replaced or cut; restore it, or use a new folder"
        )
    if root(num_recorded) != state["ledger"]["root"]:
        raise IntegrityError("the saved state belongs to another ledger")
    return num_recorded


class LedgerTruncated(IntegrityError):
    """Entries are gone from the ledger: to decide again would hide it."""


@dataclass(frozen=True, slots=True)
class SavedRun:
    """One saved state: the loop's, the positions of its feed and its quarantine, and how many entries were released."""

    num_released: int
    loop: dict[str, Any]
    feed: Position
    quarantine: Position
    held: Position


class RunStateStore:
    """Keeps the newest state of one run; `identity` (plain values) distinguishes runs.

    `root` gives the ledger's root (hex) over its first entries: a state belongs to the ledger that it was saved with.
    """

    def __init__(
        self, store: SnapshotStore, identity: dict[str, Any], folder: str, root: Callable[[int], str]
    ) -> None:
        self._store = store
        self._identity: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(identity))
        self._folder = folder
        self._root = root

    def load(self, ledger_size: int) -> SavedRun | None:
        """The newest saved state, if any.

        Raises: InvalidInput where it belongs to another run, IntegrityError where it is not what was saved, or the
        ledger has lost entries since.
        """
        data = self._store.load()
        if data is None:
            return None
        state = decode_state(data)
        num_recorded = check_ledger_size(state, self._folder, ledger_size, self._root)
        for key, value in self._identity.items():
            if state["identity"].get(key) != value:
                raise InvalidInput(
                    f"{self._folder} holds a run with other {key}: use the same, or choose another --out"
                )
        return SavedRun(num_recorded, state["loop"], state["feed"], state["quarantine"], state["held"])

    def save(self, loop: DecisionLoop, quarantine: RowQuarantine, *, is_last: bool = False) -> None:
        """Commit what is open and save the state after the item in hand; the last one is kept small."""
        loop.recorder.commit(now=True)
        num_recorded = loop.recorder.num_recorded
        state = {
            "identity": self._identity,
            "ledger": {"size": num_recorded, "root": self._root(num_recorded)},
            "loop": loop.state(),
            "feed": loop.feed.position(),
            "quarantine": quarantine.position(),
            "held": loop.held_news.position(),
        }
        self._store.save(encode_state(state, compress=is_last))
