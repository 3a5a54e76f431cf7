"""The state of a run at one event boundary, as bytes. The loop takes and restores it; a store keeps it.

A snapshot is an optimisation of replay and never a source of truth: decisions made after it are made again
after a crash and must equal what the ledger holds.
"""

from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError

FORMAT = 2
_ARRAY = 1  # MessagePack extension code: dtype, shape and raw bytes of an array


class _Array(msgspec.Struct, array_like=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def encode_state(state: dict[str, Any]) -> bytes:
    """MessagePack of nested plain values and numpy arrays, headed by the format's number."""
    return _ENCODER.encode({"format": FORMAT, "state": state})


def decode_state(data: bytes) -> dict[str, Any]:
    """The inverse of `encode_state`; arrays come back writable. Raises: IntegrityError."""
    try:
        body: dict[str, Any] = _DECODER.decode(data)
        known = body["format"] == FORMAT
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise IntegrityError(
            f"the saved state cannot be read ({error}): delete state.bin to replay from the start"
        ) from error
    if not known:
        raise IntegrityError(
            "the saved state is of another version: delete state.bin to replay from the start"
        )
    return body["state"]


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
