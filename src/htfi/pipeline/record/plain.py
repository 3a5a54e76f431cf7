"""Plain values of an entry: its texts, each spelled once and referred to by its place after that, and its numbers.

Compiled where a compiler is at hand (plain.pxd): the same values either way.
"""

import math
import re
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from htfi.domain.errors import IntegrityError
from htfi.pipeline.record import casts

COMPILED = not __file__.endswith(".py")
MIN_TEXT_CHARS = 3  # of a text that later ones may refer to
_MAX_THOUSANDTHS = 2147483648.0
_HEX = re.compile(r"[0-9a-f]{64}")

Plain = Any  # nil, boolean, integer, float, text, bytes, or an array of such


class TextPlaces:
    """The texts of an entry that is packed, by their places: those `known` before, then as they are spelled."""

    def __init__(self, known: dict[str, int]) -> None:
        self.known = known  # shared: it is never changed
        self.spelled: dict[str, int] = {}

    def pack(self, text: str) -> Plain:
        """Its place where an equal text came before, else the text; 64 hexadecimal digits as their 32 bytes."""
        place = self.known.get(text)
        if place is None:
            place = self.spelled.get(text)
        if place is not None:
            return place
        if len(text) >= MIN_TEXT_CHARS:
            self.spelled[text] = len(self.known) + len(self.spelled)
        return bytes.fromhex(text) if len(text) == 64 and _HEX.fullmatch(text) else text

    def places(self) -> dict[str, int]:
        """All of them, to go on from."""
        return {**self.known, **self.spelled}


class SpelledTexts:
    """The texts of an entry that is unpacked: those `known` before, then as they were spelled."""

    def __init__(self, known: Iterable[str]) -> None:
        self.texts = list(known)

    def unpack(self, packed: Plain) -> str:
        """Raises: ValueError, TypeError, IndexError where it is neither a text nor the place of one."""
        if isinstance(packed, int) and not isinstance(packed, bool):
            if packed < 0:
                raise ValueError(f"no text has the place {packed}")
            return self.texts[packed]
        text = packed.hex() if isinstance(packed, bytes) else packed
        if not isinstance(text, str):
            raise TypeError(f"{type(packed).__name__} where a text belongs")
        if len(text) >= MIN_TEXT_CHARS:
            self.texts.append(text)
        return text


def pack_float(value: float) -> float | int:
    """Thousandths where they are exact. Raises: IntegrityError where it is not finite."""
    scaled = value * 1000.0
    if -_MAX_THOUSANDTHS < scaled < _MAX_THOUSANDTHS:
        size = casts.to_whole(scaled + 0.5 if scaled >= 0.0 else 0.5 - scaled)
        whole = size if scaled >= 0.0 else -size
        if whole / 1000.0 == value and (whole != 0 or math.copysign(1.0, value) > 0.0):
            return whole
    elif not math.isfinite(value):
        raise IntegrityError(str(value))
    return float(value)


def pack_floats(mapping: dict[str, float], texts: TextPlaces) -> list[Plain]:
    """A map of texts to floats: keys and values in turn."""
    found: list[Plain] = []
    for key, value in mapping.items():
        found.append(texts.pack(key))
        found.append(pack_float(value))
    return found


def unpack_float(packed: Plain) -> float:
    """Raises: TypeError where it is no number."""
    if isinstance(packed, float):
        return packed
    if isinstance(packed, int) and not isinstance(packed, bool):
        return packed / 1000.0
    raise TypeError(f"{type(packed).__name__} where a number belongs")


def unpack_floats(flat: list[Plain], texts: SpelledTexts) -> dict[str, float]:
    """The map of keys and values in turn. Raises: ValueError, TypeError, IndexError where it is none."""
    if len(flat) % 2:
        raise ValueError(f"a map of {len(flat)} keys and values")
    found: dict[str, float] = {}
    for place in range(0, len(flat), 2):
        key = texts.unpack(flat[place])
        found[key] = unpack_float(flat[place + 1])
    return found


def whole_numbers(tables: Iterable[Sequence[Sequence[int]]]) -> "array[int]":
    """The numbers of tables, row by row."""
    flat: list[int] = []
    for table in tables:
        for row in table:
            flat += row
    found = array("q", bytes(8 * len(flat)))
    numbers = memoryview(found)
    for place in range(len(flat)):
        numbers[place] = flat[place]
    return found


def floats(tables: Iterable[Sequence[Sequence[float]]]) -> "array[float]":
    """The numbers of tables, row by row."""
    flat: list[float] = []
    for table in tables:
        for row in table:
            flat += row
    found = array("d", bytes(8 * len(flat)))
    numbers: Any = memoryview(found)
    for place in range(len(flat)):
        numbers[place] = flat[place]
    return found
