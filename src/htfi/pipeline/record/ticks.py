"""Packs rows of whole numbers: tables of quantiles in ticks, weights in millionths.

A number is stored as its difference from the one before (the first from 0), in zigzag form (0, −1, 1, −2 … as 0, 1, 2,
3 …). A row that is its own mirror image about its middle number stores those from there on; the others follow. Before
version 4, and in a row without a middle number, only one that is its own mirror image about 0 does.

In bits, as entries have tables since version 3: each row is one bit, whether it is mirrored, one, whether no number is
less than the one before, then the width of the first number and that of the others in six bits each, then the numbers
in so many; of a row that rises the others are differences as they are. The first bit is the lowest of the first byte.

In bytes, as entries of version 2 have them: each row is its mode, then its numbers in the bytes that the mode says,
little end first. The mode is the number of bytes, 0–8, plus 16 where the row is mirrored.

Compiled where a compiler is at hand (ticks.pxd): the same bytes either way. Numbers are below 2**61.
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
_WIDTH_BITS, _HEAD_BITS = 6, 14  # of a width, of what comes before a row's numbers
_MAX_WIDTH = 63
_LOW = 0xFFFFFFFF  # bits are written by 32 at most
_IN_BYTES, _ABOUT_ZERO = (
    2,
    3,
)  # the last version whose tables are in bytes, and whose rows are mirrored about 0 only

Numbers = Any  # contiguous numbers of one type: an array, or a numpy array of one axis


def pack_rows(values: "array[int]", width: int, version: int) -> bytes:
    """Pack rows of `width` numbers each, one after the other in `values` (array 'q'), as entries of a version."""
    numbers = memoryview(values)
    num = len(numbers) // width
    packed = bytearray(num * (2 + 8 * width))
    out = memoryview(packed)
    if version > _IN_BYTES:
        at = write_bits(numbers, 0, num, width, out, 0, version)
    else:
        at = _write_rows(numbers, num, width, out)
    return bytes(packed[:at])


def write_bits(
    numbers: Numbers, begin: int, num: int, width: int, out: "memoryview[int]", at: int, version: int
) -> int:
    """Pack `num` rows in bits from a place of `numbers` on into `out` from a place on; where they end there."""
    waiting = 0  # bits that do not fill a byte yet
    num_waiting = 0
    for row in range(num):
        start = begin + row * width
        last = start + width - 1
        middle = numbers[start + width // 2] if width & 1 and version > _ABOUT_ZERO else 0
        is_mirrored = _is_mirrored(numbers, start, last, middle)
        first = start + width // 2 if is_mirrored else start
        is_rising = True
        largest = 0
        falling = 0
        for place in range(first + 1, last + 1):
            step = numbers[place] - numbers[place - 1]
            if step < 0:
                is_rising = False
                falling |= -2 * step - 1
            else:
                largest |= step
        if not is_rising:
            largest = falling | largest << 1
        step = numbers[first]
        head = 2 * step if step >= 0 else -2 * step - 1
        first_size = 0
        while head > 0:
            head >>= 1
            first_size += 1
        size = 0
        while largest > 0:
            largest >>= 1
            size += 1
        for place in range(first - 1, last + 1):
            if place < first:
                coded = (size << _WIDTH_BITS | first_size) << 2 | (2 if is_rising else 0) | is_mirrored
                left = _HEAD_BITS
            else:
                step = numbers[place] if place == first else numbers[place] - numbers[place - 1]
                if is_rising and place > first:
                    coded = step
                elif step >= 0:
                    coded = 2 * step
                else:
                    coded = -2 * step - 1
                left = first_size if place == first else size
            while left > 0:
                taken = 32 if left > 32 else left
                waiting |= (coded & _LOW) << num_waiting
                num_waiting += taken
                coded >>= taken
                left -= taken
                while num_waiting >= 8:
                    out[at] = waiting & 255
                    waiting >>= 8
                    num_waiting -= 8
                    at += 1
    if num_waiting > 0:
        out[at] = waiting
        at += 1
    return at


def _is_mirrored(numbers: Numbers, start: int, last: int, middle: int) -> bool:
    """Whether a row from one place to another lies about a number as it does read backwards."""
    place = start
    while place <= last and numbers[place] - middle == middle - numbers[start + last - place]:
        place += 1
    return place > last


def _write_rows(numbers: Numbers, num: int, width: int, out: "memoryview[int]") -> int:
    """Pack `num` rows in bytes; where they end in `out`."""
    at = 0
    for row in range(num):
        start = row * width
        last = start + width - 1
        mirrored = _is_mirrored(numbers, start, last, 0)
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


def pack_scaled(values: "array[float]", scale: float, width: int, version: int) -> bytes | None:
    """Pack rows of numbers (array 'd') as whole ones of 1/`scale`; None where one is no such number exactly."""
    read, whole = memoryview(values), array("q", bytes(8 * len(values)))
    if not scale_numbers(read, 0, len(values), scale, memoryview(whole)):
        return None
    return pack_rows(whole, width, version)


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


def unpack_rows(packed: bytes, width: int, version: int) -> list[list[int]]:
    """The rows of a table whose rows hold `width` numbers. Raises: ValueError where the bytes are not such a table."""
    numbers = array("q", bytes(8 * width))
    read, row = memoryview(packed), memoryview(numbers)
    rows: list[list[int]] = []
    at = 0
    while _has_row(read, at, version):
        at = _unpack_next(read, at, width, row, version)
        rows.append(numbers.tolist())
    return rows


def unpack_scaled(packed: bytes, scale: float, width: int, version: int) -> list[list[float]]:
    """The rows of a table of whole numbers of 1/`scale`. Raises: ValueError as `unpack_rows`."""
    numbers = array("q", bytes(8 * width))
    read, row = memoryview(packed), memoryview(numbers)
    rows: list[list[float]] = []
    at = 0
    while _has_row(read, at, version):
        at = _unpack_next(read, at, width, row, version)
        values: list[float] = []
        for place in range(width):
            values.append(row[place] / scale)  # noqa: PERF401 - compiled as a loop
        rows.append(values)
    return rows


def _has_row(read: Numbers, at: int, version: int) -> bool:
    """Whether a row begins at a bit, or at a byte. Raises: ValueError where bits are left that are no row."""
    if version <= _IN_BYTES:
        return at < len(read)
    left = 8 * len(read) - at
    if left >= _HEAD_BITS:
        return True
    if left >= 8 or (left > 0 and read[len(read) - 1] >> 8 - left != 0):
        raise ValueError("a table of numbers is cut or not one")
    return False


def _unpack_next(read: Numbers, at: int, width: int, row: "memoryview[int]", version: int) -> int:
    """Write the row that begins at a bit, or at a byte; where the next one begins. Raises: ValueError."""
    if version <= _IN_BYTES:
        return _unpack_row(read, at, width, row)
    return _unpack_bits(read, at, width, row, version)


def _bits(read: Numbers, at: int, num: int) -> int:
    """The number in `num` bits from a bit on."""
    value = 0
    got = 0
    while got < num:
        skipped = at & 7
        taken = 8 - skipped if 8 - skipped < num - got else num - got
        byte = read[at >> 3] >> skipped & (1 << taken) - 1
        value |= byte << got
        got += taken
        at += taken
    return value


def _unpack_bits(read: Numbers, at: int, width: int, row: "memoryview[int]", version: int) -> int:
    """Write the numbers of the row that begins at a bit; where the next one begins. Raises: ValueError."""
    head = _bits(read, at, _HEAD_BITS)
    is_mirrored, is_rising = (head & 1) != 0, (head & 2) != 0
    first_size, size = head >> 2 & _MAX_WIDTH, head >> 2 + _WIDTH_BITS
    num = (width + 1) // 2 if is_mirrored else width
    at += _HEAD_BITS
    if at + first_size + size * (num - 1) > 8 * len(read):
        raise ValueError("a table of numbers is cut or not one")
    first = width - num
    value = 0
    for place in range(first, width):
        coded = _bits(read, at, first_size if place == first else size)
        at += first_size if place == first else size
        if is_rising and place > first:
            step = coded
        elif coded & 1 == 0:
            step = coded >> 1
        else:
            step = -(coded >> 1) - 1
        if not -_MAX_NUMBER < step < _MAX_NUMBER or not -_MAX_NUMBER < value + step < _MAX_NUMBER:
            raise ValueError("a number of a table is too large")
        value += step
        row[place] = value
    middle = row[first] if width & 1 and version > _ABOUT_ZERO else 0
    for place in range(first):
        step = middle - row[width - 1 - place]
        if not -_MAX_NUMBER < step < _MAX_NUMBER or not -_MAX_NUMBER < middle + step < _MAX_NUMBER:
            raise ValueError("a number of a table is too large")
        row[place] = middle + step
    return at


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
