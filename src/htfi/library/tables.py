"""Prices as people have them, as a source that the intake reads: long, wide, Nixtla's and yfinance's tables, files.

Rows come in order of time, whatever order they were in. What a cell means is judged by the intake, as for `htfi run`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from arro3.core import Array, DataType
from numpy.typing import NDArray

from htfi.arrow.cells import MixedTypes, column_of_cells
from htfi.arrow.columns import (
    DATE,
    FLOAT,
    LARGE_TEXT,
    Column,
    coded_column,
    distinct_codes,
    encoded,
    floats,
    is_dictionary,
    is_string,
    make_table,
    null_mask,
    number_column,
    one_chunk,
    take_rows,
    text_column,
    whole_numbers,
)
from htfi.arrow.failures import DamagedFile
from htfi.arrow.table_files import read_arrow_table, read_csv_table, read_parquet_table
from htfi.arrow.texts import parsed_times
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.library.frames import FrameKind, frame_kind, read_columns
from htfi.pipeline.intake.columns import recognise_layout
from htfi.pipeline.intake.spec import UNITS, SourceSpec
from htfi.wiring.feeds import resolve
from htfi.wiring.in_memory_run import MAX_KEPT_ROWS

Columns = dict[Any, Column]

SOURCE, NEWS = "prices", "news"  # names of tables' rows
TABLE = "the table of prices"  # in messages
_NIXTLA = {"unique_id": "symbol", "ds": "ts", "y": "close"}
_FIELDS = ("open", "high", "low", "close", "adj close", "adj_close", "volume")  # of yfinance's upper level
_ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
_PRICE_WORDS = frozenset(
    {"close", "adj_close", "adjclose", "adjusted_close", "price", "px", "last", "last_price", "trade_price"}
    | {"bid", "ask", "bid_price", "ask_price", "bid_px", "ask_px", "best_bid", "best_ask"}
)
_ONE_LETTER = frozenset("ohlc")


@dataclass(frozen=True, slots=True)
class SetAsideRow:
    """A row that was not used: where it stood (from 1), why, and what it held.

    `num` is how many rows it stands for: 0 for a whole series, several for those that are counted and not listed. Both
    have the row 0.
    """

    source: str
    row: int
    reason: str
    detail: str
    raw: str = ""
    num: int = 1


@dataclass(frozen=True, slots=True)
class TableSource:
    """Prices that can be read: a table in order of time, or a file. `row_numbers` are those of the rows as given."""

    spec: SourceSpec
    table: Any  # an arro3.core.Table; None where the file is read itself
    kind: FrameKind
    name: str = TABLE  # in messages
    row_numbers: NDArray[np.int64] | None = None
    set_aside: tuple[SetAsideRow, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> Mapping[str, Any]:
        return {} if self.table is None else {self.spec.name: self.table}

    def row_number(self, row: int) -> int:
        """The number, from 1, that a row of the source has in what was given."""
        return row if self.row_numbers is None else int(self.row_numbers[row - 1])


def read_prices(prices: Any, *, symbol: str | None = None, interval: str | None = None) -> TableSource:
    """The rows of a frame, a relation, dictionaries or a path. Raises: InvalidInput, DependencyUnavailable."""
    if isinstance(prices, str | Path):
        return _read_path(str(prices), symbol, interval)
    if _are_rows(prices):
        return _read_columns(_columns_of_rows(prices), FrameKind.ARROW, symbol, interval)
    kind, only = frame_kind(prices), symbol
    if symbol is not None and kind is FrameKind.PANDAS and prices.ndim == 1:
        prices, only = prices.to_frame(symbol), None
    return _read_columns(read_columns(prices), kind, only, interval)


def read_news(news: Any) -> list[TableSource]:
    """The items of a frame, a relation, a path or a list of dictionaries; nothing where there are none.

    Raises: InvalidInput.
    """
    name = "the table of news"
    if isinstance(news, str | Path):
        source = file_source(str(news), None, None, None)
        return [replace(source, spec=replace(source.spec, name=NEWS, zone="UTC", kind="news"))]
    if news is None:
        return []
    if isinstance(news, list | tuple):
        found = _columns_of_rows(cast("Sequence[Mapping[str, Any]]", news))
    else:
        found = read_columns(news)
    columns = {str(key): _plain(column) for key, column in found.items()}
    if not columns or not len(next(iter(columns.values()))):
        return []
    spec = SourceSpec(NEWS, kind="news", zone="UTC", order="sort")
    layout = recognise_layout(list(columns), spec)
    if layout is None or layout.missing_fields(spec):
        raise InvalidInput(
            f"{name} has no column of times or of headlines: its columns are {_named(columns)}; name them ts, "
            "headline and symbols"
        )
    stamps = layout.fields["ts"]
    columns[stamps], notes = _times(columns[stamps], may_be_dates=False)
    return [TableSource(spec, make_table(columns), frame_kind(cast(object, news)), name, notes=notes)]


def _read_path(path: str, symbol: str | None, interval: str | None) -> TableSource:
    if path.lower().endswith(_ARROW_ENDINGS):
        columns = _stored_columns(path, "Arrow")
    else:
        source = file_source(path, None, symbol, interval)
        if source.spec.format == "parquet":
            columns = _stored_columns(path, "Parquet")
        elif source.spec.format == "csv" and _is_wide(dict.fromkeys(_head(path))):
            columns = _stored_columns(path, "CSV")
        else:
            return replace(source, spec=replace(source.spec, zone="UTC", order="sort"))
    return replace(_read_columns(columns, FrameKind.ARROW, symbol, interval, path), name=path)


def _stored_columns(path: str, form: str) -> Columns:
    """The columns of a file. Raises: InvalidInput, DependencyUnavailable."""
    try:
        table = _READERS[form](Path(path))
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: {error.strerror or error}: check the path and its rights"
        ) from error
    except DamagedFile as error:
        raise InvalidInput(f"{path} is not a whole {form} file ({error}): fetch it again") from error
    names: list[str] = table.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{path}: two columns are named '{twice}': rename one")
    return dict(zip(names, map(one_chunk, table.columns), strict=True))


_READERS = {"Arrow": read_arrow_table, "Parquet": read_parquet_table, "CSV": read_csv_table}


def _are_rows(prices: Any) -> bool:
    return isinstance(prices, list | tuple) and all(
        isinstance(row, Mapping) for row in cast("Sequence[object]", prices)
    )


def _columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """The columns of dictionaries; what the first of them does not name is not read."""
    names = list(rows[0]) if rows else []
    return {name: _cells_column([row.get(name) for row in rows]) for name in names}


def _cells_column(cells: list[Any]) -> Column:
    try:
        return column_of_cells(cells)
    except MixedTypes:
        return text_column([None if cell is None else str(cell) for cell in cells])


def _head(path: str) -> list[str]:
    """The names of a CSV file's columns; none where it has no text."""
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            return [name.strip().strip('"') for name in next(lines, "").split(",")]
    except (OSError, UnicodeDecodeError):  # said by the intake, which reads it then
        return []


def file_source(path: str, mapping: Path | None, symbol: str | None, interval: str | None) -> TableSource:
    """A file that the intake reads, with the mapping of its columns. Raises: InvalidInput."""
    (spec,) = resolve([path], mapping, symbol=symbol or "", interval=interval or "")
    if spec.live:
        raise InvalidInput(f"{path} is a live source: `htfi run {path}` forecasts streams")
    return TableSource(replace(spec, only=(symbol,)) if symbol else spec, None, FrameKind.ARROW, path)


def _read_columns(
    columns: Columns, kind: FrameKind, symbol: str | None, interval: str | None, name: str = TABLE
) -> TableSource:
    if not columns or not len(next(iter(columns.values()))):
        raise InvalidInput(f"{name} is empty: give times and closes of one symbol at least")
    if any(isinstance(name, tuple) for name in columns):
        columns, numbers, empty = _stack_fields(columns)
    else:
        columns = {str(name): column for name, column in columns.items()}
        names = {name.lower(): name for name in columns}
        if _NIXTLA.keys() <= names.keys():
            columns = {_NIXTLA.get(name.lower(), name): column for name, column in columns.items()}
        numbers, empty = None, ()
        if _is_wide(columns):
            columns, numbers, empty = _stack_symbols(columns)
    spec = SourceSpec(SOURCE, symbol=symbol or "price", interval=interval or "", zone="UTC", order="time")
    columns = _price_is_close(columns)
    layout = recognise_layout(list(columns), spec)
    if layout is None or "ts" not in layout.fields:
        missing = "prices" if layout is None else "times"
        raise InvalidInput(
            f"the table of prices has no column of {missing}: its columns are {_named(columns)}; name them ts, symbol "
            "and close, or give one column of closes for each symbol beside one of times"
        )
    used = [*layout.fields.values(), *([layout.clock] if layout.clock else [])]
    columns = {name: _plain(column) for name, column in columns.items() if name in used}
    stamps = layout.fields["ts"]
    columns[stamps], notes = _times(columns[stamps])
    _refuse_counts(name, stamps, columns[stamps])
    table = make_table(columns)
    if symbol is not None and "symbol" in layout.fields:
        spec = replace(spec, only=(symbol,), symbol="")
    if layout.clock or not (_is_time(columns[stamps].type) or DataType.is_integer(columns[stamps].type)):
        return TableSource(
            replace(spec, order="sort"), table, kind, row_numbers=numbers, set_aside=empty, notes=notes
        )
    table, numbers = _in_order(table, stamps, numbers)
    aside: Sequence[SetAsideRow] = ()
    if layout.kind == "bar":
        table, numbers, aside = _first_of_each(table, stamps, layout.fields.get("symbol"), numbers)
    return TableSource(spec, table, kind, row_numbers=numbers, set_aside=(*empty, *aside), notes=notes)


def _is_wide(columns: Mapping[Any, Column | None]) -> bool:
    """Whether each column but that of times is a symbol: none has the name of a field of rows."""
    if len(columns) < 2:
        return False
    plain = {str(name).strip().lower().replace(" ", "_") for name in columns}
    layout = recognise_layout(list(columns), SourceSpec(SOURCE))
    if layout is not None and "symbol" in layout.fields:
        return False
    if layout is not None and layout.kind in ("news", "macro"):
        return False
    return not (plain & _PRICE_WORDS or plain >= _ONE_LETTER)


def _price_is_close(columns: Columns) -> Columns:
    """A table of nothing but times and a price, and perhaps symbols, holds closes; with sizes they are trades."""
    layout = recognise_layout(list(columns), SourceSpec(SOURCE))
    if layout is None or layout.kind != "trade" or layout.fields.keys() & {"size", "venue", "id"}:
        return columns
    price = layout.fields["price"]
    return {"close" if name == price else name: column for name, column in columns.items()}


def _time_column(columns: Columns) -> Any:
    """The name of the first column of times. Raises: InvalidInput."""
    for name, column in columns.items():
        if _is_time(column.type):
            return name
    first = next(iter(columns))
    head = columns[first]
    if is_string(head.type):
        return first
    raise InvalidInput(
        f"the table of prices has no column of times: its columns are {_named(columns)}; give a DatetimeIndex, or a "
        "first column of dates"
    )


def _stack_symbols(columns: Columns) -> tuple[Columns, NDArray[np.int64], tuple[SetAsideRow, ...]]:
    """Long columns of a table with a column of closes for each symbol; an empty cell is no bar."""
    stamps = _time_column(columns)
    symbols = [name for name in columns if name != stamps]
    if not symbols:
        raise InvalidInput(
            f"the table of prices has a column of times, '{stamps}', and none of closes: add one"
        )
    return _stacked(columns[stamps], {name: {"close": columns[name]} for name in symbols})


def _stack_fields(columns: Columns) -> tuple[Columns, NDArray[np.int64], tuple[SetAsideRow, ...]]:
    """Long columns of a table whose columns are named by field and symbol, in either order."""
    by_symbol: dict[str, Columns] = {}
    stamps: Any = None
    for name, column in columns.items():
        parts = [str(part) for part in cast("tuple[Any, ...]", name if isinstance(name, tuple) else (name,))]
        fields = [place for place, part in enumerate(parts) if part.strip().lower() in _FIELDS]
        if fields and len(parts) > 1:
            place = fields[0]
            symbol = " ".join(part for other, part in enumerate(parts) if other != place and part)
            field = parts[place].strip().lower().replace(" ", "_")
            by_symbol.setdefault(symbol, {})[field] = column
        elif stamps is None and _is_time(column.type):
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
    column = _plain(column)
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


def _plain(column: Column) -> Column:
    """Decimals, and columns without any value, as floating numbers; texts in the form that can be put in order."""
    if DataType.is_decimal(column.type) or DataType.is_null(column.type):
        return column.cast(FLOAT)
    return column.cast(LARGE_TEXT) if DataType.is_string_view(column.type) else column


def _times(column: Column, *, may_be_dates: bool = True) -> tuple[Column, tuple[str, ...]]:
    """Times in UTC, and what was taken for granted about them: dates where all lack a zone and stand at midnight."""
    if is_string(column.type):
        column = parsed_times(column)
    kind = column.type
    if DataType.is_date(kind):
        return column.cast(DATE), ()
    if not DataType.is_timestamp(kind) or kind.tz is not None:
        return column, ()
    per_day = NS_PER_DAY // UNITS[kind.time_unit]
    if may_be_dates and not (whole_numbers(column) % per_day).any():
        return column.cast(DATE), ()
    return column, ("times without a zone are taken as UTC",)


_MIN_INSTANT = 10_000_000  # as seconds: April 1970. Prices are of later times, and counts of rows are fewer


def _refuse_counts(name: str, stamps: str, column: Column) -> None:
    """Raises: InvalidInput where whole numbers count rows instead of stating times."""
    if not DataType.is_integer(column.type) or column.null_count == len(column):
        return
    stated = whole_numbers(column)[~null_mask(column)]
    first, last = int(stated.min()), int(stated.max())
    if -_MIN_INSTANT < first <= last < _MIN_INSTANT:
        raise InvalidInput(
            f"{name}: '{stamps}' holds the whole numbers {first} to {last}, which are no times: give "
            "dates, such as pandas.bdate_range('2020-01-01', periods=len(frame))"
        )


def _is_time(kind: Any) -> bool:
    return DataType.is_timestamp(kind) or DataType.is_date(kind)


def _in_order(
    table: Any, stamps: str, numbers: NDArray[np.int64] | None
) -> tuple[Any, NDArray[np.int64] | None]:
    """The rows in order of time, those without one last."""
    times = _counts(table.column(stamps))
    if not len(times) or (times[1:] >= times[:-1]).all():
        return table, numbers
    order = np.argsort(times, kind="stable")
    return take_rows(table, order), order + 1 if numbers is None else numbers[order]


def _first_of_each(
    table: Any, stamps: str, symbol: str | None, numbers: NDArray[np.int64] | None
) -> tuple[Any, NDArray[np.int64] | None, list[SetAsideRow]]:
    """The first row of each symbol and instant; the others are set aside."""
    times = _counts(table.column(stamps))
    series = np.zeros(len(times), np.int64)
    if symbol is not None:
        coded = one_chunk(table.column(symbol))
        series = distinct_codes(
            encoded(coded if is_dictionary(coded.type) or is_string(coded.type) else coded.cast(LARGE_TEXT))
        )
    starts = np.flatnonzero(np.diff(times, prepend=times[0] - 1))
    if len(starts) == len(times):
        return table, numbers, []
    order = np.lexsort((np.arange(len(times)), series, times))
    again = (np.diff(times[order]) == 0) & (np.diff(series[order]) == 0) & (series[order][1:] >= 0)
    again &= times[order][1:] != _NO_TIME
    places = np.sort(order[1:][again])
    if not len(places):
        return table, numbers, []
    kept = np.ones(len(times), bool)
    kept[places] = False
    numbers = np.arange(1, len(times) + 1) if numbers is None else numbers
    listed = places[:MAX_KEPT_ROWS]
    detail = "the symbol has an earlier row of this time"
    aside = [
        SetAsideRow(SOURCE, int(numbers[place]), "duplicate", detail, str(row))
        for place, row in zip(listed.tolist(), _rows(take_rows(table, listed)), strict=True)
    ]
    if len(places) > len(listed):
        aside.append(more_rows(SOURCE, "duplicate", len(places) - len(listed)))
    return take_rows(table, np.flatnonzero(kept)), numbers[kept], aside


def _rows(table: Any) -> list[dict[str, Any]]:
    """Rows by name, as Python has them."""
    cells = [column.to_pylist() for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*cells, strict=True)]


def more_rows(source: str, reason: str, num: int) -> SetAsideRow:
    """What stands for rows that are counted and not listed."""
    return SetAsideRow(source, 0, reason, f"{num:,} more rows", num=num)


_NO_TIME = np.iinfo(np.int64).max


def _counts(column: Column) -> NDArray[np.int64]:
    """Times as the integers that they are stored as; those that are missing come last."""
    return whole_numbers(one_chunk(column), null=_NO_TIME)


def _named(columns: Mapping[Any, Column]) -> str:
    names = [str(name) for name in columns]
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
