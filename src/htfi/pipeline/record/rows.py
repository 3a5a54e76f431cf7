"""Writes the entries of n decisions from arrays, byte by byte: what `entry.encode_entry` makes of each.

What they share comes packed (`EntryParts`); symbols, numbers and tables are written here, as MessagePack. A row that
has to be packed by itself is left out: an equal text came before in its entry, a number is not finite or has no whole
ticks. Compiled where a compiler is at hand (rows.pxd): the same bytes either way. `numeric` calls it.
"""

import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from htfi.domain.decision import TICKS_PER_UNIT
from htfi.domain.events import Bar
from htfi.narrative.rationale.drivers import MAX_DRIVERS
from htfi.pipeline.record import casts
from htfi.pipeline.record.ticks import WEIGHT_SCALE, scale_numbers, write_bits
from htfi.pipeline.record.words import VERSION

HASH_CHARS = 64  # texts of 64 hexadecimal digits have a form of their own
# rows.pxd hides its C names from Python
_TICKS_PER_UNIT, _WEIGHT_SCALE, _MAX_DRIVERS, _VERSION = TICKS_PER_UNIT, WEIGHT_SCALE, MAX_DRIVERS, VERSION
_MAX_THOUSANDTHS = 2147483648.0
_MAX_FLOAT_BYTES = 9
_MAX_HEAD_BYTES = 5
_IS_LITTLE = sys.byteorder == "little"
_NIL, _FLOAT, _MAP_PAIR = 0xC0, 0xCB, 2

Numbers = Any  # contiguous numbers of one type: an array, or a numpy array of one axis


class JudgedPart(NamedTuple):
    """What policy and governance say of a decision, packed: the head of its fields, and those from the verdict on.

    `texts` are those that it spells.
    """

    head: bytes
    fields: bytes
    texts: frozenset[str]


class EntryParts(NamedTuple):
    """What the entries of an instant share, packed; `texts` are those that it spells, `known` those that all know.

    `by_level` are inputs, digest of the settings, plan and regime by the regime's level; `features` the names of
    features; `forecast` what comes before its tables; `templates` by the number that `template_number` gives.
    """

    models: bytes
    instant: bytes
    by_level: Sequence[bytes]
    features: Sequence[bytes]
    forecast: bytes
    templates: Sequence[bytes]
    previous_width: bytes  # the slot's place
    known: dict[str, int]
    texts: frozenset[str]
    usual: JudgedPart
    judged: dict[
        int, JudgedPart | None
    ]  # of the rows that are judged otherwise; None: to be packed by itself


class RowColumns(NamedTuple):
    """What each decision is by itself.

    Shapes: features [n, F], NaN where undefined, flat; found and usual [n, 3] as `FeatureBaseline.find_drivers` gives
    them, flat; ticks and quantiles [n, K·H, Q] and [n, H, Q], weights [n, K·H, Z], calibration [n, H], all flat; the
    rest [n]. `quote_age_ns` is −1 and `quote_mid` NaN where there is none. `previous_widths` are the words of the
    slot, empty where the sentences have none; `choices` and `are_led` what `choice.first_sentences` goes by.
    """

    bars: Sequence[Bar]
    levels: Numbers
    features: Numbers
    quote_age_ns: Numbers
    quote_mid: Numbers
    quarantine_share: float  # of all
    num_drivers: Numbers
    found: Numbers
    usual: Numbers
    choices: Numbers
    are_led: Numbers
    previous_widths: Sequence[str]
    ticks: Numbers
    quantiles: Numbers
    weights: Numbers
    calibration: Numbers
    num_experts: int
    num_horizons: int
    num_levels: int
    num_zones: int


def template_number(choice: int, num_drivers: int, is_led: bool) -> int:
    """The number of the sentences that `choice.first_sentences` names."""
    return (choice * (_MAX_DRIVERS + 2) + num_drivers + 1) * 2 + is_led


def encode_rows(parts: EntryParts, columns: RowColumns) -> list[bytes | None]:
    """The entry of each row; None for one that has to be packed by itself."""
    writer = _RowWriter(parts, columns)
    return [writer.encode(row) for row in range(len(columns.bars))]


class _RowWriter:
    """The entry in hand. Every `_put` writes at the end of what is written so far."""

    def __init__(self, parts: EntryParts, columns: RowColumns) -> None:
        self.parts, self.columns = parts, columns
        self.bars, self.previous_widths = list(columns.bars), list(columns.previous_widths)
        self.names, self.by_level, self.known = list(parts.features), list(parts.by_level), parts.known
        self.quarantine_share = columns.quarantine_share
        self.levels, self.features = memoryview(columns.levels), memoryview(columns.features)
        self.quote_age_ns, self.quote_mid = memoryview(columns.quote_age_ns), memoryview(columns.quote_mid)
        self.num_drivers, self.found = memoryview(columns.num_drivers), memoryview(columns.found)
        self.usual, self.choices = memoryview(columns.usual), memoryview(columns.choices)
        self.are_led = memoryview(columns.are_led)
        self.ticks, self.quantiles = memoryview(columns.ticks), memoryview(columns.quantiles)
        self.weights, self.calibration = memoryview(columns.weights), memoryview(columns.calibration)
        self.num_features = len(parts.features)
        self.num_horizons, self.num_levels = columns.num_horizons, columns.num_levels
        self.num_rows, self.num_zones = columns.num_experts * columns.num_horizons, columns.num_zones
        largest = max(self.num_levels * max(self.num_rows, self.num_horizons), self.num_rows * self.num_zones)
        self.whole = memoryview(array("q", bytes(8 * largest)))
        self.places = memoryview(array("q", bytes(8 * (self.num_features + 1))))
        self.capacity = self._most_bytes()
        self.packed = bytearray()
        self.out: Numbers = memoryview(self.packed)
        self.at = 0
        self.is_sound = True  # whether all numbers so far are finite

    def _most_bytes(self) -> int:
        """Of an entry, without symbol, interval, the words of the width before and what a row is judged as."""
        parts = self.parts
        shared = len(parts.models) + len(parts.instant) + sum(map(len, parts.features)) + len(parts.forecast)
        shared += max(map(len, parts.by_level)) + max(map(len, parts.templates)) + len(parts.previous_width)
        rows = self.num_rows + self.num_horizons
        tables = 8 * (rows * self.num_levels + self.num_rows * self.num_zones) + 2 * rows
        num_floats = self.num_features + self.num_horizons + 2 * MAX_DRIVERS + 8
        return shared + tables + _MAX_FLOAT_BYTES * num_floats + 16 * _MAX_HEAD_BYTES

    def encode(self, row: int) -> bytes | None:
        """The entry of a row; None where it has to be packed by itself."""
        parts, bar, width = self.parts, self.bars[row], self.previous_widths[row]
        symbol, interval = bar.symbol, bar.interval
        judged = parts.judged.get(row, parts.usual)
        if judged is None or symbol == interval or width in (symbol, interval):
            return None
        for text in (symbol, interval, width):
            if len(text) == HASH_CHARS or text in parts.texts or text in judged.texts:
                return None
        num_texts = 4 * (len(symbol) + len(interval) + len(width))
        capacity = self.capacity + num_texts + len(judged.head) + len(judged.fields)
        if capacity > len(self.packed):
            self.packed = bytearray(capacity)
            self.out = memoryview(self.packed)
        self.at, self.is_sound = 0, True
        self._put(parts.models)
        self._put(judged.head)
        self._put_text(symbol)
        self._put_text(interval)
        self._put(parts.instant)
        self._put_float(bar.close)
        self._put(self.by_level[self.levels[row]])
        self._put_features(row)
        self._put_byte(_NIL)
        self._put_circumstances(row, bar)
        self._put(judged.fields)
        self._put(parts.forecast)
        if not (self._put_forecast(row) and self.is_sound):
            return None
        self._put_rationale(row, width)
        self._put_byte(_NIL)
        return bytes(self.packed[: self.at]) if self.is_sound else None

    def _put_features(self, row: int) -> None:
        """The features that are defined, by name; their places among them go to `places`."""
        num = 0
        first = row * self.num_features
        for column in range(self.num_features):
            value = self.features[first + column]
            self.places[column] = num
            if value == value:
                num += 1
        self._put_array(_MAP_PAIR * num)
        for column in range(self.num_features):
            value = self.features[first + column]
            if value == value:
                self._put(self.names[column])
                self._put_float(value)

    def _put_circumstances(self, row: int, bar: Bar) -> None:
        mid = self.quote_mid[row]
        self._put_array(5 if mid == mid else 4)
        self._put_int(bar.start_ns)
        self._put_int(bar.end_ns)
        if self.quote_age_ns[row] < 0:
            self._put_byte(_NIL)
        else:
            self._put_int(self.quote_age_ns[row])
        self._put_float(self.quarantine_share)
        if mid == mid:
            self._put_float(mid)

    def _put_forecast(self, row: int) -> bool:
        """The tables of a forecast, and its calibration; False where a table has no whole numbers."""
        size = self.num_rows * self.num_levels
        self._put_table(self.ticks, row * size, self.num_rows, self.num_levels)
        size = self.num_horizons * self.num_levels
        if not scale_numbers(self.quantiles, row * size, size, _TICKS_PER_UNIT, self.whole):
            return False
        self._put_table(self.whole, 0, self.num_horizons, self.num_levels)
        self._put_byte(_NIL)
        self._put_int(self.num_zones)
        size = self.num_rows * self.num_zones
        if not scale_numbers(self.weights, row * size, size, _WEIGHT_SCALE, self.whole):
            return False
        self._put_table(self.whole, 0, self.num_rows, self.num_zones)
        self._put_array(self.num_horizons)
        for horizon in range(self.num_horizons):
            self._put_float(self.calibration[row * self.num_horizons + horizon])
        self._put_byte(_NIL)
        return True

    def _put_rationale(self, row: int, width: str) -> None:
        num = self.num_drivers[row]
        self._put_array(4 if width else 2 if num > 0 else 1)
        self._put(self.parts.templates[template_number(self.choices[row], num, self.are_led[row] != 0)])
        if num > 0:
            self._put_array(num)
            for place in range(row * _MAX_DRIVERS, row * _MAX_DRIVERS + num):
                self._put_array(2)
                self._put_int(self.places[self.found[place]])
                self._put_float(self.usual[place])
        elif width:
            self._put_byte(_NIL)
        if width:
            self._put_byte(_NIL)
            self._put_array(2)
            self._put(self.parts.previous_width)
            self._put_text(width)

    def _put_table(self, numbers: Numbers, begin: int, num: int, width: int) -> None:
        """A table as bytes: its rows are written first, and moved to where the head ends."""
        out, first = self.out, self.at + _MAX_HEAD_BYTES
        size = write_bits(numbers, begin, num, width, out, first, _VERSION) - first
        self._put_head(size, 0xC4, 0xC4, 0)
        for place in range(size):
            out[self.at + place] = out[first + place]
        self.at += size

    def _put_text(self, text: str) -> None:
        """A text by its place among the known ones, else spelled."""
        place = self.known.get(text)
        if place is not None:
            self._put_int(place)
            return
        spelled = text.encode()
        self._put_head(len(spelled), 0xA0, 0xD9, 32)
        self._put(spelled)

    def _put_array(self, num: int) -> None:
        if num < 16:
            self._put_byte(0x90 | num)
        else:
            self._put_big(0xDC if num < 65536 else 0xDD, num, 2 if num < 65536 else 4)

    def _put_head(self, size: int, short: int, code: int, num_short: int) -> None:
        """The head of a text or of bytes: in one byte below `num_short`, else a code and the size."""
        if size < num_short:
            self._put_byte(short | size)
        elif size < 256:
            self._put_big(code, size, 1)
        elif size < 65536:
            self._put_big(code + 1, size, 2)
        else:
            self._put_big(code + 2, size, 4)

    def _put_int(self, value: int) -> None:
        """An integer in its shortest form."""
        if value >= 0:
            if value < 128:
                self._put_byte(value)
            elif value < 256:
                self._put_big(0xCC, value, 1)
            elif value < 65536:
                self._put_big(0xCD, value, 2)
            elif value < 4294967296:
                self._put_big(0xCE, value, 4)
            else:
                self._put_big(0xCF, value, 8)
        elif value >= -32:
            self._put_byte(value & 255)
        elif value >= -128:
            self._put_big(0xD0, value, 1)
        elif value >= -32768:
            self._put_big(0xD1, value, 2)
        elif value >= -2147483648:
            self._put_big(0xD2, value, 4)
        else:
            self._put_big(0xD3, value, 8)

    def _put_big(self, code: int, value: int, num_bytes: int) -> None:
        """A code and an integer, its most significant byte first."""
        self.out[self.at] = code
        for place in range(num_bytes):
            self.out[self.at + num_bytes - place] = value & 255
            value >>= 8
        self.at += num_bytes + 1

    def _put_float(self, value: float) -> None:
        """A number as `plain.pack_float` has it."""
        scaled = value * 1000.0
        if -_MAX_THOUSANDTHS < scaled < _MAX_THOUSANDTHS:
            size = casts.to_whole(scaled + 0.5 if scaled >= 0.0 else 0.5 - scaled)
            whole = size if scaled >= 0.0 else -size
            if whole / 1000.0 == value and (whole != 0 or math.copysign(1.0, value) > 0.0):
                self._put_int(whole)
                return
        elif not math.isfinite(value):
            self.is_sound = False
            return
        _number[0] = value
        self.out[self.at] = _FLOAT
        for place in range(8):
            self.out[self.at + 1 + place] = _octets[7 - place if _IS_LITTLE else place]
        self.at += _MAX_FLOAT_BYTES

    def _put(self, packed: bytes) -> None:
        """Bytes as they are."""
        out, at = self.out, self.at
        for place in range(len(packed)):
            out[at + place] = packed[place]
        self.at += len(packed)

    def _put_byte(self, byte: int) -> None:
        self.out[self.at] = byte
        self.at += 1


_one_number = array("d", [0.0])
_number: Any = memoryview(_one_number)
_octets: Any = memoryview(_one_number).cast("B")  # of the same memory
