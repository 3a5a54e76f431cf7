"""Prices written with a decimal comma, as in '1234,5': where a file's can mean nothing else. Readers of CSV call it.

'1,234' alone may be a thousand or a little more than one. So a file has decimal commas only where every price among
its first rows is digits, at most one comma and digits, and one of them at least cannot be a grouped whole number.
"""

import re
from collections.abc import Iterable

from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import ColumnLayout
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, RowRefused

_PRICES = ("price", "bid", "ask", "open", "high", "low", "close")
_SIZES = ("size", "bid_size", "ask_size", "volume")
_COMMA_NUMBER = re.compile(r"[0-9]+(,[0-9]+)?")
_MAYBE_GROUPED = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})?")  # also a whole number without a comma


def decimal_comma_columns(layout: ColumnLayout, sample: Iterable[Row]) -> frozenset[str]:
    """The columns of prices and sizes of a file whose prices have decimal commas; none of any other file.

    `sample` holds its first rows, of text cells; the separator of cells must not be the comma.
    """
    if layout.kind not in ("trade", "quote", "bar"):
        return frozenset()
    prices = [layout.fields[name] for name in _PRICES if name in layout.fields]
    cells = [cell for row in sample for name in prices if (cell := str(row[name]).strip())]
    are_commas = all(_COMMA_NUMBER.fullmatch(cell) for cell in cells)
    if not are_commas or all("," not in cell or _MAYBE_GROUPED.fullmatch(cell) for cell in cells):
        return frozenset()
    return frozenset(layout.fields[name] for name in (*_PRICES, *_SIZES) if name in layout.fields)


def with_decimal_points(row: Row, columns: Iterable[str]) -> Row:
    """The row with points for the commas in these columns.

    Raises: RowRefused where a cell has a point already: in such a file it may group thousands.
    """
    cells = dict(row)
    for name in columns:
        cell = str(cells[name]).strip()
        if "." in cell:
            raise RowRefused(
                QuarantineReason.BAD_NUMBER,
                f"{name} '{cell[:40]}' has a point, but prices of this file have decimal commas",
            )
        if _COMMA_NUMBER.fullmatch(cell):
            cells[name] = cell.replace(",", ".")
    return cells
