"""Cells of a row as prices, sizes, symbols and text, each checked on the way in. The row parser calls it."""

import math
from collections.abc import Mapping
from typing import Any, cast

from htfi.domain.bounds import (
    MAX_PRICE,
    MAX_SIZE,
    MAX_VALUE,
    MIN_PRICE,
    MIN_SIZE,
    MIN_VALUE,
    is_price,
    is_size,
    is_value,
)
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.spec import TAG_RULE, is_tag

LONGEST_SYMBOL = 64
LONGEST_SERIES = 128

Row = Mapping[str, Any]


def positive(value: Any, name: str) -> float:
    """A price. Raises: Refusal."""
    price = value if type(value) is float else number_of(value, name, Reason.BAD_PRICE)
    if is_price(price):
        return price
    raise Refusal(Reason.BAD_PRICE, f"{name} {price} is not between {MIN_PRICE:g} and {MAX_PRICE:g}")


def amount(value: Any, name: str) -> float:
    """A size or a volume. Raises: Refusal."""
    size = value if type(value) is float else number_of(value, name, Reason.BAD_SIZE)
    if is_size(size):
        return size
    raise Refusal(Reason.BAD_SIZE, f"{name} {size} is neither 0 nor between {MIN_SIZE:g} and {MAX_SIZE:g}")


def reading(value: Any, name: str) -> float:
    """A macro value. Raises: Refusal."""
    number = number_of(value, name, Reason.BAD_NUMBER)
    if is_value(number):
        return number
    raise Refusal(
        Reason.BAD_NUMBER,
        f"{name} {number} is neither 0 nor of a size between {MIN_VALUE:g} and {MAX_VALUE:g}",
    )


def number_of(value: Any, name: str, not_finite: Reason) -> float:
    """A finite number from a cell of any type. Raises: Refusal."""
    if value is None or value == "":
        raise Refusal(Reason.MISSING_FIELD, f"{name} is empty")
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError(value)
        number = float(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise Refusal(Reason.BAD_NUMBER, f"{name} '{str(value)[:40]}' is no number") from error
    if not math.isfinite(number):
        raise Refusal(not_finite, f"{name} {number} is not finite")
    return number


def text(row: Row, column: str | None) -> str:
    """A cell as text; '' where there is none."""
    if column is None:
        return ""
    value = row.get(column)
    if type(value) is str:
        return value.strip()
    return "" if value is None else str(value)


def flag(row: Row, column: str | None) -> bool:
    """Whether a cell says yes: true, 1, yes."""
    value = row.get(column) if column is not None else None
    return value is True or str(value).strip().lower() in ("true", "1", "yes")


def show_row(row: Row) -> str:
    """A row of cells as a person would note it down."""
    return ", ".join(f"{name}={value}" for name, value in row.items())


def read_symbol(value: Any) -> str:
    """An instrument's name. Raises: Refusal."""
    symbol = value.strip() if type(value) is str else str(value) if type(value) is int else ""
    if not 0 < len(symbol) <= LONGEST_SYMBOL or not symbol.isprintable():
        raise Refusal(Reason.BAD_SYMBOL, f"a symbol has 1 to {LONGEST_SYMBOL} printable characters")
    return symbol


def read_symbols(value: Any) -> tuple[str, ...]:
    """The symbols of a news item: a list, or a text with commas, semicolons, bars or spaces between them."""
    return tuple(dict.fromkeys(read_symbol(part) for part in _parts(value)))


def read_tags(value: Any) -> tuple[str, ...]:
    """The residency of a news item, told as symbols are. What cannot be read could not be kept: Raises: Refusal."""
    tags = [part.strip() if isinstance(part, str) else "" for part in _parts(value)]
    if not all(map(is_tag, tags)):
        raise Refusal(Reason.BAD_TAG, f"residency '{str(value)[:40]}': {TAG_RULE}")
    return tuple(dict.fromkeys(tags))


def _parts(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        for mark in ",;|":
            value = value.replace(mark, " ")
        value = value.split()
    return cast("list[Any]", value) if isinstance(value, list) else [value]
