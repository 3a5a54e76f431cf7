"""Packs rows of whole numbers: tables of quantiles in ticks, weights in millionths.

A table is bytes: for each row the mode, then its numbers. A number is stored as its difference from the one before (the
first from 0), in zigzag form (0, −1, 1, −2 … as 0, 1, 2, 3 …), in the bytes that the mode says, little end first. The
mode is the number of bytes, 0–8, plus 16 where the row is its own mirror image about 0: then those from the middle
on are stored, and the others are their negatives. Compiled where a compiler is at hand (ticks.pxd): the same bytes
either way. Numbers are below 2**61.
"""

import math
from array import array

COMPILED = not __file__.endswith(".py")
_MAX_SCALED = 2.0**53
_MIRRORED = 16


def pack_rows(values: "array[int]", width: int) -> bytes:
    """Pack rows of `width` numbers each, one after the other in `values` (array 'q')."""
    numbers = memoryview(values)
    num = len(numbers) // width
    packed = bytearray(num * (1 + 8 * width))
    out = memoryview(packed)
    at = 0
    for row in range(num):
        start = row * width
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
    return bytes(packed[:at])


def pack_scaled(values: "array[float]", scale: float, width: int) -> bytes | None:
    """Pack rows of numbers (array 'd') as whole ones of 1/`scale`; None where one is no such number exactly."""
    whole = array("q", bytes(8 * len(values)))
    numbers, found = memoryview(values), memoryview(whole)
    for place in range(len(numbers)):
        value = numbers[place]
        scaled = value * scale
        if not -_MAX_SCALED < scaled < _MAX_SCALED:
            return None
        size = int(scaled + 0.5 if scaled >= 0.0 else 0.5 - scaled)
        tick = size if scaled >= 0.0 else -size
        if tick / scale != value or (tick == 0 and math.copysign(1.0, value) < 0.0):
            return None
        found[place] = tick
    return pack_rows(whole, width)


def unpack_rows(packed: bytes, width: int) -> list[list[int]]:
    """The rows of a table whose rows hold `width` numbers. Raises: ValueError where the bytes are not such a table."""
    rows: list[list[int]] = []
    at = 0
    while at < len(packed):
        mode = packed[at]
        size, is_mirrored = mode & 15, bool(mode & _MIRRORED)
        num = (width + 1) // 2 if is_mirrored else width
        end = at + 1 + size * num
        if mode > _MIRRORED + 8 or size > 8 or end > len(packed):
            raise ValueError("a table of numbers is cut or not one")
        numbers: list[int] = []
        value = 0
        for start in range(at + 1, end, size) if size else [0] * num:
            coded = int.from_bytes(packed[start : start + size], "little")
            value += coded >> 1 if coded & 1 == 0 else -(coded >> 1) - 1
            numbers.append(value)
        rows.append(
            [*(-number for number in reversed(numbers[width % 2 :])), *numbers] if is_mirrored else numbers
        )
        at = end
    return rows
