"""Arrow columns as numpy arrays: numbers, instants, texts, and their nulls. The Parquet reader's tools."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import arro3.core
import numpy as np
from arro3.core import Array, DataType
from numpy.typing import NDArray

from htfi.arrow.buffers import Column, Mask, filled, valid
from htfi.arrow.columns import (
    DATE,
    FLOAT,
    INT,
    INT32,
    LARGE_TEXT,
    TEXT,
    codes,
    encoded,
    floats,
    is_dictionary,
    is_string,
    is_text,
    null_mask,
    text_lengths,
    words,
)
from htfi.pipeline.intake.spec import UNITS
from htfi.pipeline.intake.times import MAX_TIME_NS, MIN_TIME_NS, FileTimestamp

arrow: Any = arro3.core  # whose types are not complete

Batch = Any  # an arro3.core.RecordBatch
_FIRST_DAY, _LAST_DAY = (date(1900, 1, 1) - date(1970, 1, 1)).days, (date(2200, 1, 1) - date(1970, 1, 1)).days
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_NULL_HASH = np.uint64(0xD1B54A32D192ED03)


class ColumnNeedsRowParser(Exception):
    """The column's type needs the row parser."""


@dataclass(slots=True)
class FloatColumn:
    """Numbers of one column; where `null`, the value means nothing."""

    values: NDArray[np.float64]
    null: Mask

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "FloatColumn":
        return cls(values, np.zeros(len(values), bool))

    def objects(self, absent: Mask | None = None) -> NDArray[np.object_]:
        """Python floats, None where null or `absent`."""
        null = self.null if absent is None else self.null | absent
        found = self.values.astype(object)
        if null.any():
            found[null] = None
        return found


@dataclass(slots=True)
class TimestampColumn:
    """UTC nanoseconds of one column, or days since 1970 where it is `dated`; right where `good`."""

    ns: NDArray[np.int64]
    is_valid: Mask
    is_date: bool = False


@dataclass(slots=True)
class TextColumn:
    """Stripped texts of one column, '' for null. `words` are its distinct texts, unstripped; -1 is null."""

    values: NDArray[np.object_]
    distinct: list[str]
    codes: NDArray[np.int64]

    def where(self, test: Callable[[str], bool]) -> Mask:
        """Where a text passes; null never does."""
        passed = np.array([*(test(word) for word in self.distinct), False], bool)
        return passed[self.codes]


def numbers(column: Column) -> FloatColumn:
    """Raises: ColumnNeedsRowParser."""
    kind = column.type
    if not (DataType.is_floating(kind) or DataType.is_integer(kind)):
        raise ColumnNeedsRowParser
    return FloatColumn(floats(column), null_mask(column))


def timestamps(column: Column, zone: ZoneInfo | None, unit: str) -> TimestampColumn:
    """Raises: ColumnNeedsRowParser."""
    kind = column.type
    good = valid(column)
    if DataType.is_date32(kind):
        days = filled(column, np.int32).astype(np.int64)
        return TimestampColumn(days, good & (days >= _FIRST_DAY) & (days < _LAST_DAY), is_date=True)
    if DataType.is_timestamp(kind):
        if kind.tz is None and (zone is None or zone.key != "UTC"):
            raise ColumnNeedsRowParser
        unit = kind.time_unit
    elif not DataType.is_int64(kind) or not unit:
        raise ColumnNeedsRowParser
    counts = filled(column, np.int64)
    factor = UNITS[unit]
    good = good & (counts >= -(-MIN_TIME_NS // factor)) & (counts < MAX_TIME_NS // factor)
    return TimestampColumn(np.where(good, counts, 0) * factor, good)


def texts(column: Column) -> TextColumn:
    """Raises: ColumnNeedsRowParser."""
    kind = column.type
    if not is_dictionary(kind):
        if not is_string(kind):
            if not DataType.is_integer(kind):
                raise ColumnNeedsRowParser
            column = column.cast(TEXT)
        column = encoded(column)
    distinct = words(column)
    if not is_string(column.type.value_type) or None in distinct:
        raise ColumnNeedsRowParser
    places = codes(column)
    stripped = np.array([*(word.strip() for word in distinct), ""], object)
    return TextColumn(stripped[places], distinct, places)


def text_bytes(batch: Batch) -> NDArray[np.int64]:
    """How much text each row holds."""
    total = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        coded = is_dictionary(column.type)
        values: Column = arrow.dictionary_dictionary(column) if coded else column
        if not is_text(values.type):
            continue
        lengths = text_lengths(values)
        if coded:
            lengths = np.append(lengths, 0)[codes(column)]
        total += lengths
    return total


def truncate_texts(batch: Batch, most_bytes: int, kept_chars: int) -> Batch:
    """The same rows with each text over `most_bytes` cut to its beginning."""
    columns = [_truncate(column, most_bytes, kept_chars) for column in batch.columns]
    return arrow.RecordBatch.from_arrays(columns, names=batch.column_names)


def row_hashes(batch: Batch) -> NDArray[np.uint64]:
    """64 bits for each row over all its columns, equal for equal rows; other processes get others."""
    mixed = np.zeros(batch.num_rows, np.uint64)
    with np.errstate(over="ignore"):
        for column in batch.columns:
            bits = _bits(column)
            if column.null_count:
                bits = np.where(valid(column), bits, _NULL_HASH)
            mixed = (mixed ^ bits) * _HASH_MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
    return mixed


def take_rows(batch: Batch, places: NDArray[np.int64]) -> Batch:
    """The rows at these places, in their order."""
    return batch.take(Array(np.ascontiguousarray(places)))


def is_one_of(column: Column, names: Collection[str]) -> Mask:
    """Where a cell is one of these names but for blanks around it; null is none."""
    column = column if is_dictionary(column.type) else encoded(column.cast(LARGE_TEXT))
    is_named = [word is not None and str(word).strip() in names for word in words(column)]
    return np.array([*is_named, False], bool)[codes(column)]


def row_cells(batch: Batch) -> list[dict[str, Any]]:
    """Rows as the row parser takes them; timestamps keep their nanoseconds."""
    columns = {name: _values(batch.column(place)) for place, name in enumerate(batch.column_names)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _truncate(column: Column, most_bytes: int, kept_chars: int) -> Column:
    if is_dictionary(column.type):
        values: Column = arrow.dictionary_dictionary(column)
        cut = _truncate(values, most_bytes, kept_chars)
        return column if cut is values else cut.take(arrow.dictionary_indices(column))
    if not is_text(column.type) or not (text_lengths(column) > most_bytes).any():
        return column
    long = (text_lengths(column) > most_bytes).tolist()
    cells = [
        cell[:kept_chars] if is_long else cell for cell, is_long in zip(column.to_pylist(), long, strict=True)
    ]
    return Array(cells, column.type)


def _bits(column: Column) -> NDArray[np.uint64]:
    kind = column.type
    if DataType.is_floating(kind):
        return filled(column.cast(FLOAT), np.float64).view(np.uint64)
    if DataType.is_uint64(kind):
        return filled(column, np.uint64)
    if DataType.is_integer(kind):
        return filled(column.cast(INT), np.int64).view(np.uint64)
    if DataType.is_boolean(kind):
        return filled(column.cast(DataType.uint8()), np.uint8).astype(np.uint64)
    if DataType.is_timestamp(kind):
        return filled(column, np.int64).view(np.uint64)
    if DataType.is_date32(kind):
        return filled(column, np.int32).astype(np.int64).view(np.uint64)
    try:
        found = texts(column)
    except ColumnNeedsRowParser:
        return np.array([hash(str(value)) & (2**64 - 1) for value in column.to_pylist()], np.uint64)
    return np.array([*(hash(word) & (2**64 - 1) for word in found.distinct), 0], np.uint64)[found.codes]


def _values(column: Column) -> list[Any]:
    kind = column.type
    if DataType.is_timestamp(kind):
        factor, zoned = UNITS[kind.time_unit], kind.tz is not None
        counts = column.cast(INT).to_pylist()
        return [None if count is None else FileTimestamp(count * factor, zoned) for count in counts]
    if DataType.is_date(kind):
        days = column.cast(DATE).cast(INT32).to_pylist()
        return [None if day is None else _day(day) for day in days]
    return column.to_pylist()


def _day(days: int) -> date | FileTimestamp:
    if _FIRST_DAY <= days < _LAST_DAY:
        return date(1970, 1, 1) + timedelta(days=days)
    return FileTimestamp(days * 86_400 * UNITS["s"], True)
