"""Files without a header: what their columns are by what stands in them. Readers of CSV call it.

Names are given only where the first rows leave no doubt: an instant (or a date and a clock), perhaps after a symbol,
and then one price, a price and a size, or four prices of which the second is the highest, the third the lowest, and
the first nearer to the fourth of the row before than the fourth to the first.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from zoneinfo import ZoneInfo

from htfi.domain.written_days import day_order_of
from htfi.pipeline.intake.bar_spacing import begin_ns
from htfi.pipeline.intake.quarantine_reasons import RowRefused
from htfi.pipeline.intake.times import read_time

_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?|\d{4}|\d{6}")
_DAY_DIGITS = re.compile(r"(19|20|21)\d{6}")
_UTC = ZoneInfo("UTC")
_NUM_SPAN = 4  # open, high, low, close
_MAX_ODD = 0.02  # share of rows whose high or low is off, as vendors have them


def is_data(cells: Sequence[str]) -> bool:
    """Whether the first line of a file is a row: one of its first two cells is a time, one of the others a number."""
    return any(map(is_time, cells[:2])) and any(map(is_number, cells[1:]))


def name_columns(rows: Sequence[Sequence[str]]) -> list[str] | None:
    """The names of the columns of these rows, all of one length; None where they could be something else."""
    first = rows[0]
    names: list[str] = []
    if len(first) > 2 and not is_number(first[0]) and not is_time(first[0]):
        names.append("symbol")
    place = len(names)
    if len(first) <= place or not is_time(first[place]):
        return None
    if len(first) > place + 2 and _CLOCK.fullmatch(first[place + 1]) and not _has_clock(first[place]):
        names += ["date", "time"]
    else:
        names.append("ts")
    numbers = [row[len(names) :] for row in rows]
    if not numbers[0] or not all(is_number(cell) for cell in numbers[0][:_NUM_SPAN]):
        return None
    if len(numbers[0]) >= _NUM_SPAN:
        if not _are_spans(numbers) or _closes_first(rows, numbers, place):
            return None
        fields = ["open", "high", "low", "close", "volume"]
    else:
        fields = {1: ["close"], 2: ["price", "size"]}.get(len(numbers[0]), [])
    if not fields:
        return None
    names += fields[: len(numbers[0])]
    return [*names, *(f"column {place + 1}" for place in range(len(names), len(first)))]


def _are_spans(rows: Sequence[Sequence[str]]) -> bool:
    """Whether four numbers of nearly each row are an open, a high, a low and a close."""
    num_odd = num_read = 0
    for row in rows:
        if all(is_number(cell) for cell in row[:_NUM_SPAN]):
            opened, high, low, closed = (float(cell) for cell in row[:_NUM_SPAN])
            num_read += 1
            num_odd += not (low <= min(opened, closed) and max(opened, closed) <= high and low > 0)
    return num_read > 0 and num_odd <= _MAX_ODD * num_read


def _closes_first(rows: Sequence[Sequence[str]], numbers: Sequence[Sequence[str]], place: int) -> bool:
    """Whether the last of four prices is the open: a bar opens near the close before it."""
    ends = [
        (float(row[0]), float(row[3])) for row in numbers if all(is_number(cell) for cell in row[:_NUM_SPAN])
    ]
    order = day_order_of(row[place] for row in rows) or "day_first"
    try:
        first, last = (begin_ns(read_time(row[place], _UTC, "", order)) for row in (rows[0], rows[-1]))
    except RowRefused:  # a line of words at the end of a short file
        return False
    if last < first:
        ends.reverse()
    opens_first = sum(abs(later[0] - earlier[1]) for earlier, later in pairwise(ends))
    opens_last = sum(abs(later[1] - earlier[0]) for earlier, later in pairwise(ends))
    return opens_last < opens_first


def is_number(cell: str) -> bool:
    """Whether a cell is a number as rows may hold one."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_time(cell: str) -> bool:
    """Whether a cell is an instant or a day, and no small number."""
    try:
        read_time(cell, None, "", "day_first")
    except RowRefused as refusal:
        return refusal.reason.value == "no_zone"
    return not is_number(cell) or _DAY_DIGITS.fullmatch(cell) is not None or float(cell) > 1e8


def _has_clock(cell: str) -> bool:
    return ":" in cell or " " in cell.strip() or (is_number(cell) and not _DAY_DIGITS.fullmatch(cell))
