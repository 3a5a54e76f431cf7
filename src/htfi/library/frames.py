"""Frames of pandas, polars, DuckDB and pyarrow: columns in as Arrow, tables out as the kind that was put in."""

from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any

import pyarrow

from htfi.domain.errors import InvalidInput

pa: Any = pyarrow  # ships no types
Frame = Any  # pandas.DataFrame, polars.DataFrame, duckdb.DuckDBPyRelation or pyarrow.Table


class FrameKind(StrEnum):
    """Whose frames a result comes back in."""

    PANDAS = "pandas"
    POLARS = "polars"
    DUCKDB = "duckdb"
    PYARROW = "pyarrow"


def frame_kind(native: object) -> FrameKind:
    """That of a frame; Arrow for paths and for whatever has no frame that holds a result."""
    library = type(native).__module__.partition(".")[0].lstrip("_")
    return FrameKind(library) if library in tuple(FrameKind) else FrameKind.PYARROW


def make_frame(columns: Mapping[str, Any], kind: FrameKind) -> Frame:
    """A frame of these columns: arrays, lists or Arrow arrays. A relation is of DuckDB's default connection."""
    table = pa.table(dict(columns))
    if kind is FrameKind.PYARROW:
        return table
    if kind is FrameKind.DUCKDB:
        return import_module("duckdb").from_arrow(table)
    import narwhals

    nw: Any = narwhals  # its types name frames of libraries that are not installed
    return nw.from_arrow(table, backend=kind.value).to_native()


def instants(times_ns: Any) -> Any:
    """UTC nanoseconds as an Arrow column of instants."""
    return pa.array(times_ns, pa.int64()).cast(pa.timestamp("ns", "UTC"))


def read_columns(native: Any) -> dict[Any, Any]:
    """The columns of any frame as Arrow arrays, by name, the index of pandas first. Raises: InvalidInput."""
    if isinstance(native, pa.Table | pa.RecordBatch):
        return dict(zip(native.schema.names, native.columns, strict=True))
    library = type(native).__module__.partition(".")[0]
    if library == "pandas":
        native = _periods_as_times(_with_index(native))
        if not native.columns.is_unique:
            twice = native.columns[native.columns.duplicated()][0]
            raise InvalidInput(f"two columns are named {twice!r}: give each a name of its own")
    elif library == "polars" and type(native).__name__ == "Series":
        raise InvalidInput("a polars Series has no times: give a DataFrame with a column of times")
    import narwhals as nw

    try:
        frame: Any = nw.from_native(native)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect(backend="pyarrow") if library != "polars" else frame.collect()
    except TypeError as error:
        raise InvalidInput(
            f"an object of type {type(native).__name__} is not a table: give a DataFrame of pandas or polars, an "
            "Arrow table, a DuckDB relation, or the path of a CSV, Parquet or Arrow file"
        ) from error
    return {name: _to_arrow(column) for name, column in zip(frame.columns, frame.iter_columns(), strict=True)}


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


def _to_arrow(series: Any) -> Any:
    """One column; values of several types become texts, which the intake reads or refuses one by one."""
    try:
        return series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        cells = series.to_list()
        return pa.array([None if cell is None or cell != cell else str(cell) for cell in cells], pa.string())
