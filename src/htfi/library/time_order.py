"""The times of a table of prices: what they are, and its rows in their order, each symbol's instant once."""

from typing import Any

import numpy as np
from arro3.core import DataType
from numpy.typing import NDArray

from htfi.arrow.columns import (
    DATE,
    LARGE_TEXT,
    Column,
    distinct_codes,
    encoded,
    is_dictionary,
    is_string,
    null_mask,
    one_chunk,
    take_rows,
    whole_numbers,
)
from htfi.arrow.texts import parsed_times
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.library.set_aside import SOURCE, SetAsideRow, more_rows
from htfi.pipeline.intake.spec import UNITS
from htfi.wiring.in_memory_run import MAX_KEPT_ROWS

_MIN_INSTANT = 10_000_000  # as seconds: April 1970. Prices are of later times, and counts of rows are fewer
_NO_TIME = np.iinfo(np.int64).max  # a missing time, so that it comes last


def times_in_utc(column: Column, *, may_be_dates: bool = True) -> tuple[Column, tuple[str, ...]]:
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


def refuse_counts(name: str, stamps: str, column: Column) -> None:
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


def in_order(
    table: Any, stamps: str, numbers: NDArray[np.int64] | None
) -> tuple[Any, NDArray[np.int64] | None]:
    """The rows in order of time, those without one last."""
    times = _counts(table.column(stamps))
    if not len(times) or (times[1:] >= times[:-1]).all():
        return table, numbers
    order = np.argsort(times, kind="stable")
    return take_rows(table, order), order + 1 if numbers is None else numbers[order]


def first_of_each(
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


def _counts(column: Column) -> NDArray[np.int64]:
    """Times as the integers that they are stored as; those that are missing come last."""
    return whole_numbers(one_chunk(column), null=_NO_TIME)
