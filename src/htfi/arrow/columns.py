"""Arrow columns made and changed: texts, numbers and nulls from Python and numpy, and casts that lose nothing."""

from collections.abc import Sequence
from typing import Any

import arro3.core
import numpy as np
from arro3.core import DataType
from numpy.typing import NDArray

from htfi.arrow.buffers import Column, Mask, stored, text_offsets, valid

arrow: Any = arro3.core  # whose types are not complete

Kind = Any  # an arro3.core.DataType
Table = Any  # an arro3.core.Table
FLOAT, INT, INT32, DATE = DataType.float64(), DataType.int64(), DataType.int32(), DataType.date32()
TEXT, LARGE_TEXT = DataType.string(), DataType.large_string()
NAMES = DataType.dictionary(INT32, TEXT)
UTC_NS = DataType.timestamp("ns", tz="UTC")


def is_string(kind: Kind) -> bool:
    """Text in one piece of memory."""
    return DataType.is_string(kind) or DataType.is_large_string(kind)


def is_text(kind: Kind) -> bool:
    """The same, or bytes."""
    return is_string(kind) or DataType.is_binary(kind) or DataType.is_large_binary(kind)


def is_large(kind: Kind) -> bool:
    return DataType.is_large_string(kind) or DataType.is_large_binary(kind)


def is_dictionary(kind: Kind) -> bool:
    return DataType.is_dictionary(kind)


def text_lengths(column: Column) -> NDArray[np.int64]:
    """In bytes; 0 where null. For strings and bytes."""
    lengths = np.diff(text_offsets(column, is_large=is_large(column.type)))
    return np.where(valid(column), lengths, 0) if column.null_count else lengths


def encoded(column: Column) -> Column:
    """A column of strings with each different one once, in a dictionary."""
    return column if is_dictionary(column.type) else column.cast(DataType.dictionary(INT32, column.type))


def words(column: Column) -> list[Any]:
    """The values in a column's dictionary."""
    return arrow.dictionary_dictionary(column).to_pylist()


def codes(column: Column) -> NDArray[np.int64]:
    """The places of a dictionary column's values in the dictionary; -1 where null."""
    indices: Column = arrow.dictionary_indices(column)
    found = stored(indices.cast(INT), np.int64)
    return np.where(valid(indices), found, -1) if indices.null_count else found


def distinct_codes(column: Column) -> NDArray[np.int64]:
    """A number for each different value of a dictionary column, -1 where null: a dictionary may repeat a value."""
    first: dict[Any, int] = {}
    numbers = [first.setdefault(word, len(first)) for word in words(column)]
    return np.array([*numbers, -1], np.int64)[codes(column)]


def plain(column: Column) -> Column:
    """A dictionary column as its values, one for each row."""
    if not is_dictionary(column.type):
        return column
    return column.cast(column.type.value_type)


def floats(column: Column) -> NDArray[np.float64]:
    """Numbers as float64; NaN where null."""
    column = column.cast(FLOAT)
    values = stored(column, np.float64)
    return np.where(valid(column), values, np.nan) if column.null_count else values


def whole_numbers(column: Column, null: int = 0) -> NDArray[np.int64]:
    """Whole numbers and instants as they are stored, `null` where there is none."""
    if DataType.is_date32(column.type):
        column = column.cast(INT32)
    column = column.cast(INT)
    values = stored(column, np.int64)
    return np.where(valid(column), values, null) if column.null_count else values


def null_mask(column: Column) -> Mask:
    if DataType.is_null(column.type):
        return np.ones(len(column), bool)
    return ~valid(column)


def one_chunk(column: Column) -> Column:
    """A column in one array, of whatever library has Arrow's interface."""
    if isinstance(column, arrow.Array):
        return column
    if not hasattr(column, "__arrow_c_stream__"):
        return arrow.Array(column)
    chunked: Any = column if isinstance(column, arrow.ChunkedArray) else arrow.ChunkedArray(column)
    if chunked.num_chunks == 0:
        return arrow.Array([], TEXT).cast(chunked.type)
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def number_column(values: NDArray[Any], absent: Mask | None = None) -> Column:
    """Numbers of any width as Arrow has them, null where `absent`."""
    column = arrow.Array(np.ascontiguousarray(values))
    return column if absent is None or not absent.any() else with_nulls(column, absent)


def with_nulls(column: Column, absent: Mask) -> Column:
    """A column that is null where `absent` besides. A cast makes null of NaN, and so do places that are null."""
    places = np.where(absent, np.nan, np.arange(len(absent)))
    return column.take(arrow.Array(places).cast(INT))


def text_column(values: Sequence[str | None]) -> Column:
    return arrow.Array(list(values), TEXT)


def instant_column(times_ns: NDArray[np.int64] | Sequence[int | None]) -> Column:
    """UTC nanoseconds as instants."""
    if isinstance(times_ns, np.ndarray):
        return number_column(times_ns).cast(UTC_NS)
    return arrow.Array(times_ns, INT).cast(UTC_NS)


def coded_column(places: NDArray[np.int64], names: Sequence[str]) -> Column:
    """Names by their places, as a dictionary column."""
    return arrow.Array(names, TEXT).cast(NAMES).take(arrow.Array(places))


def cast_whole(column: Column, kind: Kind) -> Column | None:
    """A column as another type; nothing where a value has no place in it."""
    made = column.cast(kind)
    return made if made.null_count == column.null_count else None


def take_rows(table: Table, places: NDArray[np.int64]) -> Table:
    """The rows of a table at these places, in their order, as one batch."""
    batches = table.combine_chunks().to_batches()
    if not batches:
        return table
    return arrow.Table.from_batches([batches[0].take(arrow.Array(np.ascontiguousarray(places)))])


def make_table(columns: dict[str, Column]) -> Table:
    """A table of columns by name, each in one array."""
    arrays = [one_chunk(column) for column in columns.values()]
    return arrow.Table.from_arrays(arrays, names=list(columns))
