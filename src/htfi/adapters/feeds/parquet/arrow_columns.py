"""Arrow columns as numpy arrays: numbers, instants, texts, and their nulls. The Parquet reader's tools."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
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
    null = column.is_null().to_numpy(zero_copy_only=False)
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return FloatColumn(values, null)


def timestamps(column: Column, zone: ZoneInfo | None, unit: str) -> TimestampColumn:
    """Raises: ColumnNeedsRowParser."""
    kind = column.type
    good = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        return TimestampColumn(days, good & (days >= _FIRST_DAY) & (days < _LAST_DAY), is_date=True)
    if pa.types.is_timestamp(kind):
        if kind.tz is None and (zone is None or zone.key != "UTC"):
            raise ColumnNeedsRowParser
        unit = kind.unit
    elif not pa.types.is_int64(kind) or not unit:
        raise ColumnNeedsRowParser
    counts = column.cast(pa.int64()).fill_null(0).to_numpy()
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
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
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
        lengths = pc.binary_length(values).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if coded:
            places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            lengths = np.append(lengths, 0)[places]
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
                bits = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL_HASH, bits)
            mixed = (mixed ^ bits) * _HASH_MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
    return mixed


def row_cells(batch: Batch) -> list[dict[str, Any]]:
    """Rows as the row parser takes them; timestamps keep their nanoseconds."""
    columns = {name: _values(batch.column(place)) for place, name in enumerate(batch.schema.names)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


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
    long = pc.greater(pc.binary_length(column), most_bytes)
    if not pc.any(long).as_py():
        return column
    binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    begin = (pc.binary_slice if binary else pc.utf8_slice_codeunits)(column, 0, kept_chars)
    return pc.if_else(long, begin, column)


def _bits(column: Column) -> NDArray[np.uint64]:
    kind = column.type
    if pa.types.is_floating(kind):
        return column.cast(pa.float64()).fill_null(0.0).to_numpy().view(np.uint64)
    if pa.types.is_integer(kind):
        return column.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
    if pa.types.is_boolean(kind):
        return column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).fill_null(0).to_numpy().view(np.uint64)
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
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
