"""What the readers of a calendar's file give: names of columns, and rows with their places."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class CalendarTable(NamedTuple):
    """Column names, and the rows with their places ('line 7'); of one that cannot be read, what is wrong with it."""

    names: Sequence[str]
    rows: Iterable[tuple[str, Mapping[str, Any] | str]]
