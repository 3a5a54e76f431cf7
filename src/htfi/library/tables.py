"""Prices as people have them, as a source that the intake reads: long, wide, Nixtla's and yfinance's tables, files.

Rows come in order of time, whatever order they were in. What a cell means is judged by the intake, as for `htfi run`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from arro3.core import DataType
from numpy.typing import NDArray

from htfi.arrow.cells import MixedTypes, column_of_cells
from htfi.arrow.columns import Column, make_table, one_chunk, text_column
from htfi.arrow.failures import DamagedFile
from htfi.arrow.table_files import read_arrow_table, read_parquet_table
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.library.frames import FrameKind, frame_kind, read_columns
from htfi.library.set_aside import SOURCE, SetAsideRow
from htfi.library.time_order import first_of_each, in_order, refuse_counts, times_in_utc
from htfi.library.wide_tables import (
    Columns,
    is_time,
    names_of,
    plain_column,
    stack_fields,
    stack_symbols,
)
from htfi.pipeline.intake.columns import recognise_layout
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.intake.symbol_columns import is_wide
from htfi.wiring.feeds import resolve

NEWS = "news"  # the name of its rows
TABLE = "the table of prices"  # in messages
_ARROW_ENDINGS = (".arrow", ".feather", ".ipc")


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
    columns = {str(key): plain_column(column) for key, column in found.items()}
    if not columns or not len(next(iter(columns.values()))):
        return []
    spec = SourceSpec(NEWS, kind="news", zone="UTC", order="sort")
    layout = recognise_layout(list(columns), spec)
    if layout is None or layout.missing_fields(spec):
        raise InvalidInput(
            f"{name} has no column of times or of headlines: its columns are {names_of(columns)}; name them ts, "
            "headline and symbols"
        )
    stamps = layout.fields["ts"]
    columns[stamps], notes = times_in_utc(columns[stamps], may_be_dates=False)
    return [TableSource(spec, make_table(columns), frame_kind(cast(object, news)), name, notes=notes)]


def _read_path(path: str, symbol: str | None, interval: str | None) -> TableSource:
    if path.lower().endswith(_ARROW_ENDINGS):
        columns = _stored_columns(path, "Arrow")
    else:
        source = file_source(path, None, symbol, interval)
        if source.spec.format == "parquet":
            columns = _stored_columns(path, "Parquet")
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


_READERS = {"Arrow": read_arrow_table, "Parquet": read_parquet_table}


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


def file_source(
    path: str, mapping: Path | None, symbol: str | None, interval: str | None, zone: str = ""
) -> TableSource:
    """A file that the intake reads, with the mapping of its columns. Raises: InvalidInput."""
    (spec,) = resolve([path], mapping, symbol=symbol or "", interval=interval or "", zone=zone)
    if spec.live:
        raise InvalidInput(f"{path} is a live source: `htfi run {path}` forecasts streams")
    return TableSource(replace(spec, only=(symbol,)) if symbol else spec, None, FrameKind.ARROW, path)


def _read_columns(
    columns: Columns, kind: FrameKind, symbol: str | None, interval: str | None, name: str = TABLE
) -> TableSource:
    if not columns or not len(next(iter(columns.values()))):
        raise InvalidInput(f"{name} is empty: give times and closes of one symbol at least")
    if any(isinstance(name, tuple) for name in columns):
        columns, numbers, empty = stack_fields(columns)
    else:
        columns = {str(name): column for name, column in columns.items()}
        numbers, empty = None, ()
        if is_wide(list(columns)):
            columns, numbers, empty = stack_symbols(columns)
    spec = SourceSpec(SOURCE, symbol=symbol or "price", interval=interval or "", zone="UTC", order="time")
    columns = _price_is_close(columns)
    layout = recognise_layout(list(columns), spec)
    if layout is None or "ts" not in layout.fields:
        missing = "prices" if layout is None else "times"
        raise InvalidInput(
            f"the table of prices has no column of {missing}: its columns are {names_of(columns)}; name them ts, "
            "symbol and close, or give one column of closes for each symbol beside one of times"
        )
    used = [*layout.fields.values(), *([layout.clock] if layout.clock else [])]
    columns = {name: plain_column(column) for name, column in columns.items() if name in used}
    stamps = layout.fields["ts"]
    columns[stamps], notes = times_in_utc(columns[stamps])
    refuse_counts(name, stamps, columns[stamps])
    table = make_table(columns)
    if symbol is not None and "symbol" in layout.fields:
        spec = replace(spec, only=(symbol,), symbol="")
    if layout.clock or not (is_time(columns[stamps].type) or DataType.is_integer(columns[stamps].type)):
        return TableSource(
            replace(spec, order="sort"), table, kind, row_numbers=numbers, set_aside=empty, notes=notes
        )
    table, numbers = in_order(table, stamps, numbers)
    aside: Sequence[SetAsideRow] = ()
    if layout.kind == "bar":
        table, numbers, aside = first_of_each(table, stamps, layout.fields.get("symbol"), numbers)
    return TableSource(spec, table, kind, row_numbers=numbers, set_aside=(*empty, *aside), notes=notes)


def _price_is_close(columns: Columns) -> Columns:
    """A table of nothing but times and a price, and perhaps symbols, holds closes; with sizes they are trades."""
    layout = recognise_layout(list(columns), SourceSpec(SOURCE))
    if layout is None or layout.kind != "trade" or layout.fields.keys() & {"size", "venue", "id"}:
        return columns
    price = layout.fields["price"]
    return {"close" if name == price else name: column for name, column in columns.items()}
