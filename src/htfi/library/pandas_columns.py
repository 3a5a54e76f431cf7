"""Columns of pandas as Arrow arrays and back, without pyarrow: pandas itself converts by pyarrow alone."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from arro3.core import Array, DataType

from htfi.arrow.cells import MixedTypes, column_of_array, column_of_cells, instants_of_array
from htfi.arrow.columns import (
    Column,
    coded_column,
    floats,
    number_column,
    one_chunk,
    plain,
    text_column,
    whole_numbers,
    with_nulls,
)

_NO_TIME = np.iinfo(np.int64).min


def column_of_series(series: Any) -> Column:
    """One column; NaN is null. Values of several types become texts, which the intake reads or refuses one by one."""
    kind: Any = series.dtype
    name = type(kind).__name__
    if name == "ArrowDtype" or getattr(kind, "storage", "") == "pyarrow":
        return one_chunk(import_module("pyarrow").Array.from_pandas(series))
    if name == "CategoricalDtype":
        return _of_categories(series)
    if name == "SparseDtype":
        return column_of_series(series.sparse.to_dense())
    if name == "DatetimeTZDtype":
        zone = getattr(kind.tz, "key", None) or getattr(kind.tz, "zone", None) or "UTC"
        return instants_of_array(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), zone)
    if type(kind).__module__.partition(".")[0] == "numpy":
        found = column_of_array(series.to_numpy(), nan_is_null=True)
        if found is not None:
            return found
    absent = series.isna().to_numpy()
    if kind.kind in "iu":  # numbers that pandas has nulls beside
        return number_column(series.to_numpy(kind.numpy_dtype, na_value=0), absent)
    if kind.kind == "f":
        return number_column(series.to_numpy(kind.numpy_dtype, na_value=np.nan), absent)
    cells = [None if is_absent else cell for cell, is_absent in zip(series, absent.tolist(), strict=True)]
    try:
        return column_of_cells(cells)
    except MixedTypes:
        return text_column([None if cell is None else str(cell) for cell in cells])


def pandas_frame(columns: Mapping[str, Column]) -> Any:
    """A DataFrame of these columns, of the types that pandas gives them from Arrow."""
    pandas = import_module("pandas")
    return pandas.DataFrame({name: _series_values(column, pandas) for name, column in columns.items()})


def _series_values(column: Column, pandas: Any) -> Any:
    kind = column.type
    if DataType.is_floating(kind) or (DataType.is_integer(kind) and column.null_count):
        return floats(column)
    if DataType.is_timestamp(kind):
        counts = whole_numbers(column, null=_NO_TIME)
        index = pandas.DatetimeIndex(counts.view(f"M8[{kind.time_unit}]"))
        return index if kind.tz is None else index.tz_localize("UTC").tz_convert(kind.tz)
    if DataType.is_integer(kind) or (DataType.is_boolean(kind) and not column.null_count):
        return column.to_numpy()
    return plain(column).to_pylist()


def _of_categories(series: Any) -> Column:
    codes = series.cat.codes.to_numpy()
    absent = codes < 0
    places = np.where(absent, 0, codes).astype(np.int64)
    names = series.cat.categories
    if not len(names):
        return text_column([None] * len(codes))
    if all(isinstance(name, str) for name in names):
        column = coded_column(places, list(names))
    else:
        column = column_of_series(names.to_series(index=range(len(names)))).take(Array(places))
    return with_nulls(column, absent) if absent.any() else column
