"""Columns of texts as what each of them says: times, numbers, flags; else as they are."""

import numpy as np
from arro3.core import Array, DataType
from numpy.typing import NDArray

from htfi.arrow.buffers import Column, Mask, text_data, text_offsets, valid
from htfi.arrow.columns import (
    DATE,
    FLOAT,
    INT,
    UTC_NS,
    Kind,
    cast_whole,
    codes,
    encoded,
    is_large,
    null_mask,
    number_column,
    text_column,
    with_nulls,
    words,
)
from htfi.domain.time import NS_PER_S

NO_VALUE = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}
)  # as CSV files say that a cell is empty
_FLAGS = {"1": True, "True": True, "TRUE": True, "true": True, "0": False, "False": False, "FALSE": False, "false": False}  # fmt: skip # noqa: E501
_NAIVE_NS = DataType.timestamp("ns")
_DATE_CHARS, _HOUR_CHARS, _MINUTE_CHARS = len("2020-01-01"), len("2020-01-01 10"), len("2020-01-01 10:00")
_MAX_S = (1 << 63) // NS_PER_S - 1


def parsed_times(column: Column) -> Column:
    """Texts as dates, times or instants where each of them is one; else as they are, to be read one by one."""
    chars, has_zone, ends_well = _shape(column)
    if len(chars) == 0 or chars.min() < _DATE_CHARS or not ends_well:
        return column
    made: Column | None = None
    if has_zone.all():
        made = cast_whole(column, UTC_NS)
    elif not has_zone.any():
        if chars.max() == _DATE_CHARS:
            made = cast_whole(column, DATE)
        if made is None:
            made = cast_whole(column, _NAIVE_NS)
        if made is None and chars.max() <= _MINUTE_CHARS:
            made = _minutes(column)
    return column if made is None else made


def parsed_cells(column: Column) -> Column:
    """Texts of a CSV file as whole numbers, flags, times or numbers where each is one or says that there is none."""
    coded = encoded(column)
    is_empty = [word in NO_VALUE for word in words(coded)]
    cleaned = with_nulls(column, np.array([*is_empty, True], bool)[codes(coded)]) if any(is_empty) else column
    if cleaned.null_count == len(cleaned):
        return cleaned.cast(FLOAT)
    for parse in (_as_whole_numbers, _as_flags, _as_times, _as_numbers):
        made = parse(cleaned)
        if made is not None:
            return made
    return column


def _shape(column: Column) -> tuple[NDArray[np.int64], Mask, bool]:
    """Of the texts that are there: how long each is, which end in a zone, and whether all end as times do."""
    offsets = text_offsets(column, is_large=is_large(column.type))
    there = valid(column)
    chars, ends = np.diff(offsets)[there], offsets[1:][there]
    if len(chars) == 0 or chars.min() < _DATE_CHARS:
        return chars, np.zeros(len(chars), bool), False
    data = text_data(column, int(offsets[-1]))
    last = data[ends - 1]
    is_utc = (last == ord("Z")) | (last == ord("z"))
    signs = [data[ends - place] for place in (3, 5, 6)]  # of +01, +0100 and +01:00
    has_sign = np.logical_or.reduce([(sign == ord("+")) | (sign == ord("-")) for sign in signs])
    is_digit = (last >= ord("0")) & (last <= ord("9"))
    return chars, is_utc | (has_sign & (chars > _DATE_CHARS)), bool((is_utc | is_digit).all())


def _minutes(column: Column) -> Column | None:
    """Times without seconds."""
    cells = column.to_pylist()
    absent = null_mask(column)
    try:
        seconds = np.array(["1970-01-01" if cell is None else cell for cell in cells], "M8[s]").view(np.int64)
    except ValueError:
        return None
    if np.abs(seconds).max() > _MAX_S:
        return None
    return number_column(seconds * NS_PER_S, absent).cast(_NAIVE_NS)


def _as_whole_numbers(column: Column) -> Column | None:
    return _cast_stripped(column, INT)


def _as_numbers(column: Column) -> Column | None:
    return _cast_stripped(column, FLOAT)


def _cast_stripped(column: Column, kind: Kind) -> Column | None:
    """Numbers, with blanks around them or without."""
    made = column.cast(kind)
    if made.null_count == column.null_count:
        return made
    lost = column.take(number_column(np.flatnonzero(null_mask(made) & valid(column)))).to_pylist()
    if all(cell.strip() == cell for cell in lost):
        return None
    return cast_whole(
        text_column([None if cell is None else cell.strip() for cell in column.to_pylist()]), kind
    )


def _as_flags(column: Column) -> Column | None:
    if not set(words(encoded(column))) <= _FLAGS.keys():
        return None
    return Array([None if cell is None else _FLAGS[cell] for cell in column.to_pylist()], DataType.bool())


def _as_times(column: Column) -> Column | None:
    made = parsed_times(column)
    return None if made is column else made
