"""Packs rows of whole numbers: tables of quantiles in ticks, weights in millionths.

A table is bytes: for each row the mode, then its numbers. A number is stored as its difference from the one before (the
first from 0), in zigzag form (0, −1, 1, −2 … as 0, 1, 2, 3 …), in the bytes that the mode says, little end first. The
mode is the number of bytes, 0–8, plus 16 where the row is its own mirror image about 0: then those from the middle
on are stored, and the others are their negatives. Compiled where a compiler is at hand (ticks.pxd): the same bytes
either way. Numbers are below 2**61.
"""

import math
from array import array
from typing import Any

from htfi.pipeline.record import casts

COMPILED = not __file__.endswith(".py")
WEIGHT_SCALE = 1e6  # weights are recorded in millionths
_MAX_SCALED = 2.0**53
_MIRRORED = 16
_MAX_NUMBER = 1 << 62
_MAX_CODED = (1 << 63) - 1

Numbers = Any  # contiguous numbers of one type: an array, or a numpy array of one axis


def pack_rows(values: "array[int]", width: int) -> bytes:
    """Pack rows of `width` numbers each, one after the other in `values` (array 'q')."""
    numbers = memoryview(values)
    num = len(numbers) // width
    packed = bytearray(num * (1 + 8 * width))
    at = write_rows(numbers, 0, num, width, memoryview(packed), 0)
    return bytes(packed[:at])


def write_rows(numbers: Numbers, begin: int, num: int, width: int, out: "memoryview[int]", at: int) -> int:
    """Pack `num` rows from a place of `numbers` on into `out` from a place on; where they end there."""
    for row in range(num):
        start = begin + row * width
        last = start + width - 1
        mirrored = True
        for place in range(width):
            if numbers[start + place] != -numbers[last - place]:
                mirrored = False
                break
        first = start + width // 2 if mirrored else start
        largest = 0
        before = 0
        for place in range(first, last + 1):
            step = numbers[place] - before
            before = numbers[place]
            coded = 2 * step if step >= 0 else -2 * step - 1
            largest |= coded
        size = 0
        while largest > 0:
            largest >>= 8
            size += 1
        out[at] = size + _MIRRORED if mirrored else size
        at += 1
        before = 0
        for place in range(first, last + 1):
            step = numbers[place] - before
            before = numbers[place]
            coded = 2 * step if step >= 0 else -2 * step - 1
            for _ in range(size):
                out[at] = coded & 255
                coded >>= 8
                at += 1
    return at


def pack_scaled(values: "array[float]", scale: float, width: int) -> bytes | None:
    """Pack rows of numbers (array 'd') as whole ones of 1/`scale`; None where one is no such number exactly."""
    read, whole = memoryview(values), array("q", bytes(8 * len(values)))
    return pack_rows(whole, width) if scale_numbers(read, 0, len(values), scale, memoryview(whole)) else None


def scale_numbers(values: Numbers, begin: int, num: int, scale: float, found: "memoryview[int]") -> bool:
    """Write `num` numbers as whole ones of 1/`scale`; False where one is no such number exactly."""
    for place in range(num):
        value = values[begin + place]
        scaled = value * scale
        if not -_MAX_SCALED < scaled < _MAX_SCALED:
            return False
        size = casts.to_whole(scaled + 0.5 if scaled >= 0.0 else 0.5 - scaled)
        tick = size if scaled >= 0.0 else -size
        if tick / scale != value or (tick == 0 and math.copysign(1.0, value) < 0.0):
            return False
        found[place] = tick
    return True


def unpack_rows(packed: bytes, width: int) -> list[list[int]]:
    """The rows of a table whose rows hold `width` numbers. Raises: ValueError where the bytes are not such a table."""
    numbers = array("q", bytes(8 * width))
    read, row = memoryview(packed), memoryview(numbers)
    rows: list[list[int]] = []
    at = 0
    while at < len(packed):
        at = _unpack_row(read, at, width, row)
        rows.append(numbers.tolist())
    return rows


def unpack_scaled(packed: bytes, scale: float, width: int) -> list[list[float]]:
    """The rows of a table of whole numbers of 1/`scale`. Raises: ValueError as `unpack_rows`."""
    numbers = array("q", bytes(8 * width))
    read, row = memoryview(packed), memoryview(numbers)
    rows: list[list[float]] = []
    at = 0
    while at < len(packed):
        at = _unpack_row(read, at, width, row)
        values: list[float] = []
        for place in range(width):
            values.append(row[place] / scale)  # noqa: PERF401 - compiled as a loop
        rows.append(values)
    return rows


def _unpack_row(read: Numbers, at: int, width: int, row: "memoryview[int]") -> int:
    """Write the numbers of the row that begins at a byte; where the next one begins. Raises: ValueError."""
    mode = read[at]
    size, is_mirrored = mode & 15, (mode & _MIRRORED) != 0
    num = (width + 1) // 2 if is_mirrored else width
    at += 1
    if mode > _MIRRORED + 8 or size > 8 or at + size * num > len(read):
        raise ValueError("a table of numbers is cut or not one")
    first = width - num
    value = 0
    for place in range(first, width):
        coded = 0
        for byte in range(size - 1, -1, -1):
            coded = coded << 8 | read[at + byte]
        at += size
        if coded > _MAX_CODED:
            raise ValueError("a number of a table is too large")
        value += coded >> 1 if coded & 1 == 0 else -(coded >> 1) - 1
        if not -_MAX_NUMBER < value < _MAX_NUMBER:
            raise ValueError("a number of a table is too large")
        row[place] = value
    for place in range(first):
        row[place] = -row[width - 1 - place]
    return at
