"""Tables with a column of prices for each symbol, or one by field and symbol, as rows of every symbol."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from arro3.core import Array, DataType
from numpy.typing import NDArray

from htfi.arrow.columns import FLOAT, LARGE_TEXT, Column, coded_column, floats, is_string, number_column
from htfi.domain.errors import InvalidInput
from htfi.library.set_aside import SOURCE, SetAsideRow
from htfi.pipeline.intake.symbol_columns import FIELDS

Columns = dict[Any, Column]


def _time_column(columns: Columns) -> Any:
    """The name of the first column of times. Raises: InvalidInput."""
    for name, column in columns.items():
        if is_time(column.type):
            return name
    first = next(iter(columns))
    head = columns[first]
    if is_string(head.type):
        return first
    raise InvalidInput(
        f"the table of prices has no column of times: its columns are {names_of(columns)}; give a DatetimeIndex, or a "
        "first column of dates"
    )


def stack_symbols(columns: Columns) -> tuple[Columns, NDArray[np.int64], tuple[SetAsideRow, ...]]:
    """Long columns of a table with a column of closes for each symbol; an empty cell is no bar."""
    stamps = _time_column(columns)
    symbols = [name for name in columns if name != stamps]
    if not symbols:
        raise InvalidInput(
            f"the table of prices has a column of times, '{stamps}', and none of closes: add one"
        )
    return _stacked(columns[stamps], {name: {"close": columns[name]} for name in symbols})


def stack_fields(columns: Columns) -> tuple[Columns, NDArray[np.int64], tuple[SetAsideRow, ...]]:
    """Long columns of a table whose columns are named by field and symbol, in either order."""
    by_symbol: dict[str, Columns] = {}
    stamps: Any = None
    for name, column in columns.items():
        parts = [str(part) for part in cast("tuple[Any, ...]", name if isinstance(name, tuple) else (name,))]
        fields = [place for place, part in enumerate(parts) if part.strip().lower() in FIELDS]
        if fields and len(parts) > 1:
            place = fields[0]
            symbol = " ".join(part for other, part in enumerate(parts) if other != place and part)
            field = parts[place].strip().lower().replace(" ", "_")
            by_symbol.setdefault(symbol, {})[field] = column
        elif stamps is None and is_time(column.type):
            stamps = column
    if stamps is None or not any("close" in fields or "adj_close" in fields for fields in by_symbol.values()):
        raise InvalidInput(
            "the table of prices has columns of several levels, and none says times or closes: give a DatetimeIndex, "
            "and one level with Open, High, Low, Close and Volume"
        )
    for fields in by_symbol.values():
        adjusted = fields.pop("adj_close", None)
        fields.setdefault("close", adjusted)
    return _stacked(stamps, by_symbol)


def _stacked(
    stamps: Column, by_symbol: Mapping[str, Columns]
) -> tuple[Columns, NDArray[np.int64], tuple[SetAsideRow, ...]]:
    """Rows of every symbol, instant by instant, with the number of the row that each stood in."""
    names = list(by_symbol)
    fields = list(dict.fromkeys(field for of in by_symbol.values() for field in of))
    num, aside = len(stamps), list[SetAsideRow]()
    values = {
        field: np.column_stack(
            [_floats(by_symbol[name].get(field), num, name, aside) for name in names]
        ).ravel()
        for field in fields
    }
    is_bar = ~np.isnan(values["close"])
    bare = np.flatnonzero(~is_bar.reshape(num, len(names)).any(axis=0))
    kept = np.flatnonzero(is_bar)
    if not len(kept):
        raise InvalidInput("the table of prices holds no number: each cell of its closes is empty")
    aside += [
        SetAsideRow(SOURCE, 0, "empty", f"{names[place]}: none of its closes is a number", num=0)
        for place in bare
    ]
    rows, places = np.divmod(kept, len(names))
    columns: Columns = {
        "ts": stamps.take(Array(rows)),
        "symbol": coded_column(places, names),
    }
    columns |= {
        field: number_column(of[kept], np.isnan(of[kept]) if field != "close" else None)
        for field, of in values.items()
    }
    return columns, rows + 1, tuple(aside)


def _floats(column: Column, num: int, symbol: str, aside: list[SetAsideRow]) -> NDArray[np.float64]:
    """The numbers of a column, NaN where there is none; texts that are none are set aside."""
    if column is None:
        return np.full(num, np.nan)
    column = plain_column(column)
    if not (DataType.is_floating(column.type) or DataType.is_integer(column.type)):
        found = [_float(cell) for cell in column.to_pylist()]
        for place, (number, cell) in enumerate(zip(found, column.to_pylist(), strict=True)):
            if number is None and cell not in (None, ""):
                detail = f"{symbol}: '{str(cell)[:40]}' is not a number"
                aside.append(SetAsideRow(SOURCE, place + 1, "bad_number", detail, str(cell)[:200]))
        return np.array([np.nan if number is None else number for number in found], np.float64)
    return floats(column)


def _float(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def plain_column(column: Column) -> Column:
    """Decimals, and columns without any value, as floating numbers; texts in the form that can be put in order."""
    if DataType.is_decimal(column.type) or DataType.is_null(column.type):
        return column.cast(FLOAT)
    return column.cast(LARGE_TEXT) if DataType.is_string_view(column.type) else column


def is_time(kind: Any) -> bool:
    return DataType.is_timestamp(kind) or DataType.is_date(kind)


def names_of(columns: Mapping[Any, Column]) -> str:
    names = [str(name) for name in columns]
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
