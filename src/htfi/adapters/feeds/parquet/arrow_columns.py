"""Arrow columns as numpy arrays: numbers, instants, texts, and their nulls. The Parquet reader's tools."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from htfi.pipeline.intake.spec import UNITS
from htfi.pipeline.intake.times import MAX_TIME_NS, MIN_TIME_NS, FileTimestamp

pa: Any = pyarrow  # ships no types
pc: Any = pyarrow.compute
Column = Any  # a pyarrow.Array
Batch = Any  # a pyarrow.RecordBatch
Mask = NDArray[np.bool_]
_Number = TypeVar("_Number", np.float64, np.int64, np.int32, np.uint64, np.uint8)
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
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise ColumnNeedsRowParser
    null = ~_valid(column)
    values = _stored(column.cast(pa.float64(), safe=False), np.float64)
    return FloatColumn(np.where(null, np.nan, values) if column.null_count else values, null)


def timestamps(column: Column, zone: ZoneInfo | None, unit: str) -> TimestampColumn:
    """Raises: ColumnNeedsRowParser."""
    kind = column.type
    good = _valid(column)
    if pa.types.is_date32(kind):
        days = _filled(column, np.int32).astype(np.int64)
        return TimestampColumn(days, good & (days >= _FIRST_DAY) & (days < _LAST_DAY), is_date=True)
    if pa.types.is_timestamp(kind):
        if kind.tz is None and (zone is None or zone.key != "UTC"):
            raise ColumnNeedsRowParser
        unit = kind.unit
    elif not pa.types.is_int64(kind) or not unit:
        raise ColumnNeedsRowParser
    counts = _filled(column, np.int64)
    factor = UNITS[unit]
    good = good & (counts >= -(-MIN_TIME_NS // factor)) & (counts < MAX_TIME_NS // factor)
    return TimestampColumn(np.where(good, counts, 0) * factor, good)


def texts(column: Column) -> TextColumn:
    """Raises: ColumnNeedsRowParser."""
    if not isinstance(column, pa.DictionaryArray):
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            if not pa.types.is_integer(column.type):
                raise ColumnNeedsRowParser
            column = column.cast(pa.string())
        column = column.dictionary_encode()
    kind = column.dictionary.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or column.dictionary.null_count:
        raise ColumnNeedsRowParser
    words = column.dictionary.to_pylist()
    codes = _codes(column)
    stripped = np.array([*(word.strip() for word in words), ""], object)
    return TextColumn(stripped[codes], words, codes)


def text_bytes(batch: Batch) -> NDArray[np.int64]:
    """How much text each row holds."""
    total = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        coded = isinstance(column, pa.DictionaryArray)
        values = column.dictionary if coded else column
        if not _is_text(values.type):
            continue
        lengths = _text_lengths(values)
        if coded:
            lengths = np.append(lengths, 0)[_codes(column)]
        total += lengths
    return total


def truncate_texts(batch: Batch, most_bytes: int, kept_chars: int) -> Batch:
    """The same rows with each text over `most_bytes` cut to its beginning."""
    columns = [_truncate(column, most_bytes, kept_chars) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def row_hashes(batch: Batch) -> NDArray[np.uint64]:
    """64 bits for each row over all its columns, equal for equal rows; other processes get others."""
    mixed = np.zeros(batch.num_rows, np.uint64)
    with np.errstate(over="ignore"):
        for column in batch.columns:
            bits = _bits(column)
            if column.null_count:
                bits = np.where(_valid(column), bits, _NULL_HASH)
            mixed = (mixed ^ bits) * _HASH_MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
    return mixed


def take_rows(batch: Batch, places: NDArray[np.int64]) -> Batch:
    """The rows at these places, in their order."""
    return batch.take(pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)]))


def row_cells(batch: Batch) -> list[dict[str, Any]]:
    """Rows as the row parser takes them; timestamps keep their nanoseconds."""
    columns = {name: _values(batch.column(place)) for place, name in enumerate(batch.schema.names)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# `Array.to_numpy`, `fill_null` and `pyarrow.array` import pandas where it is installed, which takes longer than the
# rest of a short run's start; buffers are read without it.


def _stored(column: Column, kind: type[_Number]) -> NDArray[_Number]:
    """The stored numbers of a column of that width; a null's is arbitrary. Read-only where the file's."""
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.zeros(len(column), kind)
    return np.frombuffer(data, kind, len(column), column.offset * np.dtype(kind).itemsize)


def _filled(column: Column, kind: type[_Number]) -> NDArray[_Number]:
    """The same, 0 where null."""
    values = _stored(column, kind)
    return np.where(_valid(column), values, kind(0)) if column.null_count else values


def _valid(column: Column) -> Mask:
    bits = column.buffers()[0]
    if not column.null_count or bits is None:
        return np.full(len(column), column.null_count == 0)
    ends = column.offset + len(column)
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=ends, bitorder="little")[column.offset :].view(
        bool
    )


def _text_lengths(column: Column) -> NDArray[np.int64]:
    """In bytes; 0 where null."""
    return _filled(pc.binary_length(column).cast(pa.int64()), np.int64)


def _codes(column: Column) -> NDArray[np.int64]:
    """The places of a dictionary column's texts; -1 where null."""
    codes = _stored(column.indices.cast(pa.int64()), np.int64)
    return np.where(_valid(column.indices), codes, -1) if column.indices.null_count else codes


def _is_text(kind: Any) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _truncate(column: Column, most_bytes: int, kept_chars: int) -> Column:
    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(
            column.indices, _truncate(column.dictionary, most_bytes, kept_chars)
        )
    if not _is_text(column.type):
        return column
    if not (_text_lengths(column) > most_bytes).any():
        return column
    long = pc.greater(pc.binary_length(column), most_bytes)
    binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    begin = (pc.binary_slice if binary else pc.utf8_slice_codeunits)(column, 0, kept_chars)
    return pc.if_else(long, begin, column)


def _bits(column: Column) -> NDArray[np.uint64]:
    kind = column.type
    if pa.types.is_floating(kind):
        return _filled(column.cast(pa.float64()), np.float64).view(np.uint64)
    if pa.types.is_uint64(kind):
        return _filled(column, np.uint64)
    if pa.types.is_integer(kind):
        return _filled(column.cast(pa.int64()), np.int64).view(np.uint64)
    if pa.types.is_boolean(kind):
        return _filled(column.cast(pa.uint8()), np.uint8).astype(np.uint64)
    if pa.types.is_timestamp(kind):
        return _filled(column, np.int64).view(np.uint64)
    if pa.types.is_date32(kind):
        return _filled(column, np.int32).astype(np.int64).view(np.uint64)
    try:
        found = texts(column)
    except ColumnNeedsRowParser:
        return np.array([hash(str(value)) & (2**64 - 1) for value in column.to_pylist()], np.uint64)
    return np.array([*(hash(word) & (2**64 - 1) for word in found.distinct), 0], np.uint64)[found.codes]


def _values(column: Column) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        factor, zoned = UNITS[kind.unit], kind.tz is not None
        counts = column.cast(pa.int64()).to_pylist()
        return [None if count is None else FileTimestamp(count * factor, zoned) for count in counts]
    if pa.types.is_date(kind):
        days = column.cast(pa.date32(), safe=False).cast(pa.int32()).to_pylist()
        return [None if day is None else _day(day) for day in days]
    return column.to_pylist()


def _day(days: int) -> date | FileTimestamp:
    if _FIRST_DAY <= days < _LAST_DAY:
        return date(1970, 1, 1) + timedelta(days=days)
    return FileTimestamp(days * 86_400 * UNITS["s"], True)
