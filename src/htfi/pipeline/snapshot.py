"""The state of a run at one event boundary, as bytes. The loop takes and restores it; a store keeps it.

A snapshot is an optimisation of replay and never a source of truth: decisions made after it are made again
after a crash and must equal what the ledger holds. So that it cannot be a false one either, its bytes stand behind
their SHA-256: what is not what was saved is no state at all.
"""

from hashlib import sha256
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError

FORMAT = 4
_MARK = b"htfi state %d\n" % FORMAT
_DIGEST_BYTES = 32
_ARRAY = 1  # MessagePack extension code: dtype, shape and raw bytes of an array


class _Array(msgspec.Struct, array_like=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def encode_state(state: dict[str, Any]) -> bytes:
    """The format's mark, the SHA-256 of mark and content, then MessagePack of nested plain values and numpy arrays."""
    content = _ENCODER.encode(state)
    return b"".join((_MARK, sha256(_MARK + content).digest(), content))


def decode_state(data: bytes) -> dict[str, Any]:
    """The inverse of `encode_state`; arrays come back writable.

    Raises: IntegrityError where it is not what was saved, or was saved in another format.
    """
    if not data.startswith(_MARK):
        raise IntegrityError("the saved state is damaged, or of another version")
    content = data[len(_MARK) + _DIGEST_BYTES :]
    if data[len(_MARK) : len(_MARK) + _DIGEST_BYTES] != sha256(_MARK + content).digest():
        raise IntegrityError("the saved state is not what was saved: its digest does not match")
    return _DECODER.decode(content)


def _to_ext(value: object) -> object:
    if isinstance(value, np.ndarray):
        value = cast("NDArray[Any]", value)
        packed = _Array(value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
        return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(packed))
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    raise TypeError(f"a {type(value).__name__} cannot be part of a snapshot")


def _from_ext(code: int, data: memoryview) -> object:
    if code != _ARRAY:
        raise ValueError(f"unknown extension {code}")
    packed = msgspec.msgpack.decode(data, type=_Array)
    return np.frombuffer(packed.data, np.dtype(packed.dtype)).reshape(packed.shape).copy()


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_to_ext)
_DECODER = msgspec.msgpack.Decoder(ext_hook=_from_ext)
