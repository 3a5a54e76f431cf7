"""Cells of a row as prices, sizes, symbols and text, each checked on the way in. The row parser calls it.

Open, high and low are compared with the close of their bar; what disagrees is repaired and noted.
Forecasting reads ln(high / low) as the bar's range, and the open only where a session begins. So high and low are
widened to hold an open or a close beside them, and a figure that is out of all proportion is left out, as where the
source has no such column: it must not be read as a range. A close that nothing supports makes no bar.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from htfi.domain.errors import InvalidInput
from htfi.domain.events import (
    MAX_PRICE,
    MAX_SIZE,
    MAX_VALUE,
    MIN_PRICE,
    MIN_SIZE,
    MIN_VALUE,
    Bar,
    FieldRepair,
    QuarantinedRow,
    is_price,
    is_size,
    is_value,
)
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, RowRefused
from htfi.pipeline.intake.spec import TAG_RULE, is_residency_tag

MAX_SYMBOL_CHARS = 64
MAX_SERIES_CHARS = 128

Row = Mapping[str, Any]
_WRITTEN = re.compile(r"[%KMBTkmbt/,$€£<>]")  # signs that a number of Python's does not have


def read_price(value: Any, name: str) -> float:
    """A price. Raises: RowRefused."""
    price = value if type(value) is float else read_number(value, name, QuarantineReason.BAD_PRICE)
    if is_price(price):
        return price
    raise RowRefused(
        QuarantineReason.BAD_PRICE, f"{name} {price} is not between {MIN_PRICE:g} and {MAX_PRICE:g}"
    )


def read_size(value: Any, name: str) -> float:
    """A size or a volume. Raises: RowRefused."""
    size = value if type(value) is float else read_number(value, name, QuarantineReason.BAD_SIZE)
    if is_size(size):
        return size
    raise RowRefused(
        QuarantineReason.BAD_SIZE, f"{name} {size} is neither 0 nor between {MIN_SIZE:g} and {MAX_SIZE:g}"
    )


def read_value(value: Any, name: str) -> float:
    """A macro value, with its unit as calendars write it: '225K', '0.3%', '4-1/4'. Raises: RowRefused."""
    if isinstance(value, str) and _WRITTEN.search(value):
        from htfi.calendar.figures import read_figure

        with suppress(InvalidInput):
            found = read_figure(value)
            value = value if found is None else found.value
    number = read_number(value, name, QuarantineReason.BAD_NUMBER)
    if is_value(number):
        return number
    raise RowRefused(
        QuarantineReason.BAD_NUMBER,
        f"{name} {number} is neither 0 nor of a size between {MIN_VALUE:g} and {MAX_VALUE:g}",
    )


def read_number(value: Any, name: str, not_finite: QuarantineReason) -> float:
    """A finite number from a cell of any type. Raises: RowRefused."""
    if value is None or value == "":
        raise RowRefused(QuarantineReason.MISSING_FIELD, f"{name} is empty")
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError(value)
        number = float(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise RowRefused(
            QuarantineReason.BAD_NUMBER, f"{name} '{str(value)[:40]}' is not a number"
        ) from error
    if not math.isfinite(number):
        raise RowRefused(not_finite, f"{name} {number} is not finite")
    return number


def read_text(row: Row, column: str | None) -> str:
    """A cell as text; '' where there is none."""
    if column is None:
        return ""
    value = row.get(column)
    if type(value) is str:
        return value.strip()
    return "" if value is None else str(value)


def read_flag(row: Row, column: str | None) -> bool:
    """Whether a cell is true, 1 or yes."""
    value = row.get(column) if column is not None else None
    return value is True or str(value).strip().lower() in ("true", "1", "yes")


def show_row(row: Row) -> str:
    """A row of cells as a person would note it down."""
    return ", ".join(f"{name}={value}" for name, value in row.items())


def read_symbol(value: Any) -> str:
    """An instrument's name. Raises: RowRefused."""
    symbol = value.strip() if type(value) is str else str(value) if type(value) is int else ""
    if not 0 < len(symbol) <= MAX_SYMBOL_CHARS or not symbol.isprintable():
        raise RowRefused(
            QuarantineReason.BAD_SYMBOL, f"a symbol has 1 to {MAX_SYMBOL_CHARS} printable characters"
        )
    return symbol


def read_symbols(value: Any) -> tuple[str, ...]:
    """The symbols of a news item: a list, or a text with commas, semicolons, bars or spaces between them."""
    return tuple(dict.fromkeys(read_symbol(part) for part in _parts(value)))


def read_tags(value: Any) -> tuple[str, ...]:
    """The residency tags of a news item, separated as symbols are. Raises: RowRefused."""
    tags = [part.strip() if isinstance(part, str) else "" for part in _parts(value)]
    if not all(map(is_residency_tag, tags)):
        raise RowRefused(QuarantineReason.BAD_TAG, f"residency '{str(value)[:40]}': {TAG_RULE}")
    return tuple(dict.fromkeys(tags))


def _parts(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        for mark in ",;|":
            value = value.replace(mark, " ")
        value = value.split()
    return cast("list[Any]", value) if isinstance(value, list) else [value]


OTHER_PRICES = ("open", "high", "low")
MAX_PRICE_RATIO = 5.0  # times another price of the bar: a digit or a point too many, not a move
_NEAR_SHARE = (
    0.1  # of the price: an open so little outside high and low widens them, a farther one is left out
)
_ROUNDING_SHARE = 1e-4  # of the price: how far a close may lie outside of all others
_UNUSABLE = (QuarantineReason.BAD_PRICE, QuarantineReason.MISSING_FIELD)
_MAX_OLD_CHARS = 40

Prices = tuple[float, float, float]  # open, high, low


class RepairedBar(Bar, frozen=True, gc=False, tag="bar", kw_only=True):
    """A bar on its way into the stream, with the note for the quarantine on its repairs."""

    note: QuarantinedRow

    @property
    def bar(self) -> Bar:
        return Bar(*(getattr(self, name) for name in Bar.__struct_fields__))


def read_prices(cells: Sequence[Any]) -> tuple[float | None, float | None, float | None]:
    """Open, high and low; None where a cell is empty or holds no price. Raises: RowRefused for text."""
    opened, high, low = map(_price, cells, OTHER_PRICES)
    return opened, high, low


def consistent_prices(opened: float | None, high: float | None, low: float | None, closed: float) -> Prices:
    """Open, high and low that agree with the close. Raises: RowRefused where the close itself is in doubt."""
    if opened is not None and high is not None and low is not None:
        top, bottom = (opened, closed) if opened > closed else (closed, opened)
        if low <= bottom and top <= high:
            return (
                opened,
                top if high > MAX_PRICE_RATIO * top else high,
                bottom if low * MAX_PRICE_RATIO < bottom else low,
            )
    opened, high, low = _without_outlier(opened, high, low, closed)
    if high is not None and low is not None:
        low, high = min(low, high), max(low, high)
        if opened is not None and not low * (1.0 - _NEAR_SHARE) <= opened <= high * (1.0 + _NEAR_SHARE):
            opened = None
        others = [price for price in (opened, high, low) if price is not None]
        if not min(others) * (1.0 - _ROUNDING_SHARE) <= closed <= max(others) * (1.0 + _ROUNDING_SHARE):
            raise RowRefused(
                QuarantineReason.BAD_BAR, f"close {closed} lies outside of {_shown(opened, high, low)}"
            )
    opened = closed if opened is None else opened
    ends = (opened, closed)
    return opened, max(ends if high is None else (*ends, high)), min(ends if low is None else (*ends, low))


def list_repairs(cells: Sequence[Any], prices: Prices) -> tuple[FieldRepair, ...]:
    """What was changed between three cells as they came and the prices that they became."""
    changed: list[FieldRepair] = []
    for name, cell, price in zip(OTHER_PRICES, cells, prices, strict=True):
        try:
            was: float | str | None = None if cell is None or cell == "" else float(cell)
        except (TypeError, ValueError, OverflowError):
            was = str(cell)[:_MAX_OLD_CHARS]
        if was != price:
            shown = str(cell)[:_MAX_OLD_CHARS] if isinstance(was, float) and not math.isfinite(was) else was
            changed.append(FieldRepair(name, shown, price))
    return tuple(changed)


def _price(cell: Any, name: str) -> float | None:
    try:
        return read_price(cell, name)
    except RowRefused as refusal:
        if refusal.reason in _UNUSABLE:
            return None
        raise


def _without_outlier(
    opened: float | None, high: float | None, low: float | None, closed: float
) -> tuple[float | None, float | None, float | None]:
    """The prices without one that is wildly off; where most are, it is the close that is off."""
    kept = [
        price
        if price is not None and closed <= MAX_PRICE_RATIO * price and price <= MAX_PRICE_RATIO * closed
        else None
        for price in (opened, high, low)
    ]
    num_known = 3 - (opened, high, low).count(None)
    num_wild = num_known - (3 - kept.count(None))
    if num_wild > 1 or num_wild == num_known > 0:
        raise RowRefused(
            QuarantineReason.BAD_BAR, f"close {closed} is out of proportion to {_shown(opened, high, low)}"
        )
    return kept[0], kept[1], kept[2]


def _shown(opened: float | None, high: float | None, low: float | None) -> str:
    named = zip(OTHER_PRICES, (opened, high, low), strict=True)
    return ", ".join(f"{name} {price}" for name, price in named if price is not None)
