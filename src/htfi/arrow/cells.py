"""Columns of Python's values: what type all of them are, as Arrow has it."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import arro3.core
import numpy as np
from arro3.core import Array, DataType, Field
from numpy.typing import NDArray

from htfi.arrow.buffers import Column
from htfi.arrow.columns import DATE, FLOAT, INT, TEXT, number_column, one_chunk, text_column

arrow: Any = arro3.core  # whose types are not complete

_UNITS = ("s", "ms", "us", "ns")
_MIN_INT, _MAX_INT = -(1 << 63), (1 << 63) - 1
_MAX_EXACT = 1 << 53  # whole numbers that float64 holds, all of them
_MAX_DIGITS = 38
_MICROSECOND = timedelta(microseconds=1)
_EPOCH, _UTC_EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)  # noqa: DTZ001
_DAY_0 = date(1970, 1, 1)
_TEXTS = DataType.list(Field("item", TEXT))


class MixedTypes(Exception):
    """Values of one column are of several types, or of one that Arrow has no place for."""


def column_of(values: Any) -> Column:
    """A column of an Arrow array, an array of numpy or a list; of a list, None is null and NaN is not.

    Raises: MixedTypes.
    """
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return one_chunk(values)
    if isinstance(values, np.ndarray):
        array = cast("NDArray[Any]", values)
        made = column_of_array(array)
        return column_of_cells(array.tolist()) if made is None else made
    return column_of_cells(list(values))


def column_of_array(values: NDArray[Any], *, nan_is_null: bool = False) -> Column | None:
    """Of numbers, flags and times; nothing of an array of others."""
    match values.dtype.kind:
        case "i" | "u":
            return number_column(values)
        case "f":
            numbers = values if values.dtype.itemsize in (4, 8) else values.astype(np.float64)
            return number_column(numbers, np.isnan(numbers) if nan_is_null else None)
        case "b":
            return Array.from_numpy(values)
        case "M":
            return instants_of_array(values, None)
        case _:
            return None


def instants_of_array(values: NDArray[Any], zone: str | None) -> Column:
    """Times of numpy, which count in UTC."""
    unit: Any = np.datetime_data(values.dtype)[0]
    if unit not in _UNITS:
        unit, values = "us", values.astype("M8[us]")
    return number_column(values.view(np.int64), np.isnat(values)).cast(DataType.timestamp(unit, tz=zone))


def column_of_cells(cells: Sequence[Any]) -> Column:
    """A column of values of one type, or of whole and other numbers; None is null. Raises: MixedTypes."""
    cells = [cast(Any, cell).item() if isinstance(cell, np.generic) else cell for cell in cells]
    kinds: set[type] = {type(cell) for cell in cells if cell is not None}
    for bases, make in _MAKERS:
        if all(issubclass(kind, bases) for kind in kinds):
            return make(cells)
    raise MixedTypes


def _whole_numbers(cells: Sequence[int | None]) -> Column:
    there = [cell for cell in cells if cell is not None]
    if min(there) >= _MIN_INT and max(there) <= _MAX_INT:
        return Array(cells, INT)
    if min(there) < 0 or max(there) >= 1 << 64:
        raise MixedTypes
    return Array(cells, DataType.uint64())


def _numbers(cells: Sequence[float | None]) -> Column:
    if any(isinstance(cell, int) and abs(cell) > _MAX_EXACT for cell in cells):
        raise MixedTypes
    return Array([None if cell is None else float(cell) for cell in cells], FLOAT)


def _decimals(cells: Sequence[Decimal | None]) -> Column:
    there = [cell for cell in cells if cell is not None]
    if not all(cell.is_finite() for cell in there):
        raise MixedTypes
    scale = max(max(-int(cell.as_tuple().exponent), 0) for cell in there)
    texts = [None if cell is None else f"{cell:f}" for cell in cells]
    made = text_column(texts).cast(DataType.decimal128(_MAX_DIGITS, scale))
    if made.null_count > len(cells) - len(there):
        raise MixedTypes
    return made


def _instants(cells: Sequence[datetime | None]) -> Column:
    """Microseconds, or nanoseconds where pandas counts some: UTC where all have a zone, without one where none has."""
    zoned = {cell.tzinfo is not None for cell in cells if cell is not None}
    if len(zoned) > 1:
        raise MixedTypes
    epoch, zone = (_UTC_EPOCH, "UTC") if True in zoned else (_EPOCH, None)
    has_ns = any(getattr(cell, "nanosecond", 0) for cell in cells)
    unit = "ns" if has_ns else "us"
    counts = [
        None if cell is None else int(cast(Any, cell).value) if has_ns else (cell - epoch) // _MICROSECOND
        for cell in cells
    ]
    return Array(counts, INT).cast(DataType.timestamp(unit, tz=zone))


def _dates(cells: Sequence[date | None]) -> Column:
    if any(isinstance(cell, datetime) for cell in cells):
        raise MixedTypes
    days = [None if cell is None else (cell - _DAY_0).days for cell in cells]
    return Array(days, DataType.int32()).cast(DATE)


def _lists(cells: Sequence[Sequence[Any] | None]) -> Column:
    """Lists of texts; one that is missing is empty."""
    texts = [list(cell) if cell is not None else [] for cell in cells]
    if not all(isinstance(text, str) for of in texts for text in of):
        raise MixedTypes
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return arrow.list_array(ends, text_column([text for of in texts for text in of]), type=_TEXTS)


_MAKERS: tuple[tuple[type | tuple[type, ...], Callable[[Sequence[Any]], Column]], ...] = (
    (str, text_column),  # and where nothing is there
    (bool, lambda cells: Array(cells, DataType.bool())),
    (int, _whole_numbers),
    ((int, float), _numbers),
    (Decimal, _decimals),
    (datetime, _instants),
    (date, _dates),
    (bytes, lambda cells: Array(cells, DataType.binary())),
    ((list, tuple), _lists),
)
