"""Frames of pandas, polars, DuckDB and Arrow: columns in as Arrow, tables out as the kind that was put in."""

from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import arro3.core as arrow

from htfi.arrow.cells import column_of
from htfi.arrow.columns import (
    LARGE_TEXT,
    NAMES,
    Column,
    Table,
    instant_column,
    is_dictionary,
    make_table,
    one_chunk,
)
from htfi.arrow.failures import DamagedFile, failures_as_damage
from htfi.domain.errors import InvalidInput
from htfi.library.arrow_table import ArrowTable
from htfi.library.pandas_columns import column_of_series, pandas_frame

Frame = Any  # pandas.DataFrame, polars.DataFrame, duckdb.DuckDBPyRelation, or a table of Arrow


class FrameKind(StrEnum):
    """Whose frames a result comes back in."""

    PANDAS = "pandas"
    POLARS = "polars"
    DUCKDB = "duckdb"
    ARROW = "pyarrow"


def frame_kind(native: object) -> FrameKind:
    """That of a frame; Arrow for paths and for whatever has no frame that holds a result."""
    library = type(native).__module__.partition(".")[0].lstrip("_")
    return FrameKind(library) if library in tuple(FrameKind) else FrameKind.ARROW


def make_frame(columns: Mapping[str, Any], kind: FrameKind) -> Frame:
    """A frame of these columns: arrays, lists or Arrow arrays. A relation is of DuckDB's default connection."""
    arrays = {name: column_of(column) for name, column in columns.items()}
    if kind is FrameKind.PANDAS:
        return pandas_frame(arrays)
    table = make_table(arrays)
    if kind is FrameKind.DUCKDB:
        return import_module("duckdb").from_arrow(table)
    return import_module("polars").DataFrame(table) if kind is FrameKind.POLARS else arrow_frame(table)


def arrow_frame(table: Table) -> Frame:
    """A table of Arrow as people have it: of pyarrow where that is installed, with the same names of methods else."""
    return import_module("pyarrow").table(table) if find_spec("pyarrow") else ArrowTable(table)


def instants(times_ns: Any) -> Column:
    """UTC nanoseconds as an Arrow column of instants."""
    return instant_column(times_ns)


def read_columns(native: Any) -> dict[Any, Column]:
    """The columns of any frame as Arrow arrays, by name, the index of pandas first. Raises: InvalidInput."""
    library = type(native).__module__.partition(".")[0]
    if library == "pandas" and hasattr(native, "ndim"):
        native = _periods_as_times(_with_index(native))
        if not native.columns.is_unique:
            twice = native.columns[native.columns.duplicated()][0]
            raise InvalidInput(f"two columns are named {twice!r}: give each a name of its own")
        return {name: column_of_series(native.iloc[:, place]) for place, name in enumerate(native.columns)}
    if library == "polars" and type(native).__name__ == "Series":
        raise InvalidInput("a polars Series has no times: give a DataFrame with a column of times")
    if library == "polars" and hasattr(native, "collect"):
        native = native.collect()
    if not (hasattr(native, "__arrow_c_stream__") or hasattr(native, "__arrow_c_array__")):
        native = _collected(native)
    try:
        with failures_as_damage():
            table = native if isinstance(native, arrow.Table) else arrow.Table.from_arrow(native)
    except DamagedFile as error:
        raise InvalidInput(
            f"a column of the {type(native).__name__} is of a type that Arrow does not have ({error}): cast it to "
            "numbers, times or texts"
        ) from error
    return dict(zip(table.column_names, map(_in_one_piece, table.columns), strict=True))


def _collected(native: Any) -> Any:
    """A frame of a library that narwhals knows, as a table of pyarrow. Raises: InvalidInput."""
    import narwhals as nw

    try:
        frame: Any = nw.from_native(native)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect(backend="pyarrow")
        return frame.to_arrow()
    except TypeError as error:
        raise InvalidInput(
            f"an object of type {type(native).__name__} is not a table: give a DataFrame of pandas or polars, an "
            "Arrow table, a DuckDB relation, or the path of a CSV, Parquet or Arrow file"
        ) from error
    except ImportError as error:
        raise InvalidInput(
            f"a {type(native).__name__} is read by pyarrow, which is not installed: pip install pyarrow, or give a "
            "DataFrame of pandas or polars"
        ) from error


def _in_one_piece(column: Any) -> Column:
    """A column in one array; texts that lie in views, as polars has them, in one piece of memory."""
    kind = column.type
    if is_dictionary(kind) and arrow.DataType.is_string_view(kind.value_type):
        column = column.cast(NAMES)
    elif arrow.DataType.is_string_view(kind):
        column = column.cast(LARGE_TEXT)
    return one_chunk(column)


def _with_index(native: Any) -> Any:
    """A pandas frame or series with what its index says as its first columns; a plain count of rows says nothing."""
    if native.ndim == 1:
        native = native.to_frame("price" if native.name is None else native.name)
    index = native.index
    is_count = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    if is_count or (not len(index) and index.nlevels == 1 and index.dtype.kind != "M"):
        return native
    names = [name if name is not None else "ts" for name in index.names]
    if index.nlevels > 1:
        times = [level.dtype.kind == "M" for level in index.levels]
        names = [
            name if name is not None else "ts" if is_time else "symbol"
            for name, is_time in zip(index.names, times, strict=True)
        ]
    clash = [name for name in names if name in native.columns]
    if clash:
        raise InvalidInput(f"'{clash[0]}' is both a column and the index: drop or rename one of them")
    return native.reset_index(names=names)


def _periods_as_times(native: Any) -> Any:
    """A pandas frame whose periods (such as months) are the times at which they begin."""
    for place, kind in enumerate(native.dtypes):
        if str(kind).startswith("period["):
            begins = native.iloc[:, place].dt.to_timestamp()
            native = native.assign(**{native.columns[place]: begins})
    return native
