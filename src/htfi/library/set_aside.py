"""Rows of a user's table that were not used."""

from dataclasses import dataclass

SOURCE = "prices"  # the name of the rows of a table of prices


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


def more_rows(source: str, reason: str, num: int) -> SetAsideRow:
    """What stands for rows that are counted and not listed."""
    return SetAsideRow(source, 0, reason, f"{num:,} more rows", num=num)
