"""The buffers of Arrow arrays as numpy arrays, through Arrow's C data interface: nothing is copied.

arro3 gives numbers of arrays without nulls alone, and copies them. The interface is the same for arrays of every
library: https://arrow.apache.org/docs/format/CDataInterface.html
"""

import ctypes
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Column = Any  # an arro3.core.Array, or the array of another library that has __arrow_c_array__
Mask = NDArray[np.bool_]
_Number = TypeVar("_Number", np.float64, np.int64, np.int32, np.uint64, np.uint8)

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _ArrowArray(ctypes.Structure):
    """`struct ArrowArray` of the interface, as far as it is read."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Memory:
    """Memory that numpy reads in place; `owner` keeps it."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, num: int, kind: "np.dtype[Any]", owner: object) -> None:
        self.__array_interface__ = {
            "data": (address, True),
            "shape": (num,),
            "typestr": kind.str,
            "version": 3,
        }
        self.owner = owner


def stored(column: Column, kind: type[_Number]) -> NDArray[_Number]:
    """The stored numbers of a column of that width, read-only [N]; a null's is arbitrary."""
    array, capsule = _exported(column)
    return _buffer(array, capsule, 1, np.dtype(kind), array.offset, array.length)


def filled(column: Column, kind: type[_Number]) -> NDArray[_Number]:
    """The same, 0 where null."""
    values = stored(column, kind)
    return np.where(valid(column), values, kind(0)) if column.null_count else values


def valid(column: Column) -> Mask:
    """Which values are there [N]."""
    array, capsule = _exported(column)
    if not array.null_count or not array.buffers or not array.buffers[0]:
        return np.full(int(array.length), bool(array.null_count == 0))
    ends = array.offset + array.length
    bits = _buffer(array, capsule, 0, np.dtype(np.uint8), 0, (ends + 7) // 8)
    found: Mask = np.unpackbits(bits, count=ends, bitorder="little")[array.offset :].view(bool)
    return found


def text_offsets(column: Column, *, is_large: bool) -> NDArray[np.int64]:
    """Where each text of a string or binary column begins in its bytes, and where the last one ends [N+1]."""
    array, capsule = _exported(column)
    if not array.length:
        return np.zeros(1, np.int64)
    kind = np.dtype(np.int64 if is_large else np.int32)
    return _buffer(array, capsule, 1, kind, array.offset, array.length + 1).astype(np.int64)


def text_data(column: Column, num_bytes: int) -> NDArray[np.uint8]:
    """The bytes that `text_offsets` counts in."""
    array, capsule = _exported(column)
    return _buffer(array, capsule, 2, np.dtype(np.uint8), 0, num_bytes)


def _exported(column: Column) -> tuple[Any, object]:
    _, capsule = column.__arrow_c_array__()
    address = _get_pointer(capsule, b"arrow_array")
    array: Any = cast(Any, _ArrowArray).from_address(address or 0)
    return array, capsule


def _buffer(
    array: Any, capsule: object, place: int, kind: "np.dtype[Any]", first: int, num: int
) -> NDArray[Any]:
    address = array.buffers[place] if num else None
    if not address:
        return np.zeros(num, kind)
    memory: Any = _Memory(address + first * kind.itemsize, num, kind, capsule)
    return np.asarray(memory)
