"""Prices and sizes as vendors write them: '$1,234.50', '56.3M', '1234,5'. Readers of CSV call it.

'1,234' alone may be a thousand or a little more than one. What a comma means is decided by the first rows of a file:
it groups thousands where cells are divided by commas (and these therefore in quotes) or where a point follows one; it
is a decimal comma where every price is digits, at most one comma and digits, and one of them cannot be a grouped whole
number. Otherwise such cells are refused.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import ColumnLayout
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, RowRefused

_PRICES = ("price", "bid", "ask", "open", "high", "low", "close")
_SIZES = ("size", "bid_size", "ask_size", "volume")
_COMMA_NUMBER = re.compile(r"[0-9]+(,[0-9]+)?")
_MAYBE_GROUPED = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})?")  # also a whole number without a comma
_GROUPED = re.compile(
    r"[$€£¥]? ?(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+(?:\.[0-9]*)?) ?(?P<unit>[KMBkmb]?)"
)
_EXPONENTS = {"": "", "K": "e3", "M": "e6", "B": "e9"}
_NO_SIZE = frozenset({"-", "--", "—", "n/a", "N/A"})


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """Which columns hold numbers that are not written as Python's, and what a comma means in them."""

    commas: Literal["grouped", "decimal"] = "grouped"
    columns: frozenset[str] = frozenset()
    sizes: frozenset[str] = field(
        default_factory=frozenset[str]
    )  # those of `columns` in which none may be stated

    def plain(self, row: Row) -> Row:
        """The row with these cells as plain numbers; others as they are.

        Raises: RowRefused where a cell of decimal commas has a point already: there it may group thousands.
        """
        cells = dict(row)
        for name in self.columns:
            cell = str(cells[name]).strip()
            if self.commas == "decimal":
                cells[name] = _with_point(cell, name)
            elif name in self.sizes and cell in _NO_SIZE:
                cells[name] = "0"
            elif found := _GROUPED.fullmatch(cell):
                cells[name] = found["number"].replace(",", "") + _EXPONENTS[found["unit"].upper()]
        return cells


PLAIN = NumberStyle()


def number_style(layout: ColumnLayout, sample: Iterable[Row], delimiter: str) -> NumberStyle:
    """How a file writes its numbers. `sample` holds its first rows, of text cells."""
    if layout.kind not in ("trade", "quote", "bar"):
        return PLAIN
    prices = _columns(layout.fields, _PRICES)
    sizes = _columns(layout.fields, _SIZES)
    rows = list(sample)
    cells = [cell for row in rows for name in prices if (cell := str(row[name]).strip())]
    if delimiter != "," and _are_decimal_commas(cells):
        return NumberStyle("decimal", frozenset((*prices, *sizes)))
    with_commas = [cell for cell in cells if "," in cell]
    if with_commas and not _are_grouped(with_commas, delimiter):
        return PLAIN
    written = [
        name
        for name in (*prices, *sizes)
        if any(_is_written(str(row[name]).strip(), is_size=name in sizes) for row in rows)
    ]
    return NumberStyle("grouped", frozenset(written), frozenset(sizes) & frozenset(written))


def _columns(fields: Mapping[str, str], names: Iterable[str]) -> list[str]:
    return [fields[name] for name in names if name in fields]


def _are_decimal_commas(cells: list[str]) -> bool:
    return all(_COMMA_NUMBER.fullmatch(cell) for cell in cells) and any(
        "," in cell and not _MAYBE_GROUPED.fullmatch(cell) for cell in cells
    )


def _are_grouped(cells: list[str], delimiter: str) -> bool:
    """Whether commas in these cells can only group thousands."""
    sure = delimiter == "," or any("." in cell or cell.count(",") > 1 for cell in cells)
    return sure and all(_GROUPED.fullmatch(cell) for cell in cells)


def _is_written(cell: str, *, is_size: bool) -> bool:
    """Whether a cell holds a number that has to be made plain, or of a size that there is none."""
    if is_size and cell in _NO_SIZE:
        return True
    found = _GROUPED.fullmatch(cell)
    return found is not None and (found["number"] != cell or "," in cell)


def _with_point(cell: str, name: str) -> str:
    if "." in cell:
        raise RowRefused(
            QuarantineReason.BAD_NUMBER,
            f"{name} '{cell[:40]}' has a point, but prices of this file have decimal commas",
        )
    return cell.replace(",", ".") if _COMMA_NUMBER.fullmatch(cell) else cell
