"""A portfolio read from a table of symbols and sizes, or one unit shared by all series. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.joint.portfolio import Portfolio, make_portfolio
from htfi.forecasting.scenarios.requests import find_series, require_series

Array = NDArray[np.float64]

SIZES = ("notional", "quantity", "weight")
MAX_ROWS = 100_000
_COLUMN_ALIASES = {"qty": "quantity", "shares": "quantity", "value": "notional", "ticker": "symbol"}
_MAX_POSITION_SIZE = 1e15


@dataclass(frozen=True, slots=True)
class Positions:
    """A book over all series in view, some perhaps of size zero.

    Sizes are money, or shares of the book where `in_money` is false.
    """

    portfolio: Portfolio
    in_money: bool

    @property
    def gross(self) -> float:
        return float(np.abs(self.portfolio.notionals).sum())

    @property
    def net(self) -> float:
        return float(self.portfolio.notionals.sum())


def equal_positions(series: Sequence[str], held: Sequence[bool]) -> Positions:
    """One unit, long, shared evenly by the series that can be held; by all where none can."""
    shares = np.array(held if any(held) else [True] * len(series), np.float64)
    return Positions(Portfolio(tuple(series), shares / shares.sum()), in_money=False)


def read_positions(
    rows: Sequence[Sequence[str]],
    series: Sequence[str],
    prices: Sequence[float],
    *,
    origin: str,
    skip_unknown: bool = False,
) -> Positions:
    """The positions of a table whose first row names columns: symbol, and one of notional, quantity or weight.

    A quantity counts at the newest price, a size below zero is short, rows of one symbol add up. With `skip_unknown`
    symbols that no series stands for are left out. Raises: InvalidInput, naming the row.
    """
    at_symbol, at_size, kind = _columns(rows, origin)
    sizes = np.zeros(len(series))
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        where = f"{origin} row {number}"
        if len(row) <= max(at_symbol, at_size):
            raise InvalidInput(f"{where}: {len(row)} columns, {max(at_symbol, at_size) + 1} are needed")
        symbol, size = row[at_symbol].strip(), _number(row[at_size], kind, where)
        if skip_unknown and find_series(symbol, series) is None:
            continue
        place = require_series(symbol, series, where)
        sizes[place] += size * prices[place] if kind == "quantity" else size
    if not np.abs(sizes).sum() > 0.0:
        raise InvalidInput(f"{origin} holds no position of any size in a known symbol: a book needs one")
    portfolio = make_portfolio(dict(zip(series, sizes.tolist(), strict=True)))
    return Positions(portfolio, kind != "weight")


def _columns(rows: Sequence[Sequence[str]], origin: str) -> tuple[int, int, str]:
    """The columns of symbol and size, and the kind of size."""
    if len(rows) < 2:
        raise InvalidInput(f"{origin} holds no position: a header and a row for each position are needed")
    if len(rows) > MAX_ROWS:
        raise InvalidInput(f"{origin} holds {len(rows):,} rows: at most {MAX_ROWS:,} positions")
    names = [cell.strip().lstrip("\ufeff").casefold() for cell in rows[0]]
    header = [_COLUMN_ALIASES.get(name, name) for name in names]
    sizes = [name for name in header if name in SIZES]
    if header.count("symbol") != 1 or len(sizes) != 1:
        raise InvalidInput(
            f"{origin}: its columns are '{', '.join(names)[:80]}': name one symbol and one of {', '.join(SIZES)}"
        )
    return header.index("symbol"), header.index(sizes[0]), sizes[0]


def _number(text: str, kind: str, where: str) -> float:
    digits = text.strip().replace("\u2212", "-")
    try:
        value = float(digits.removesuffix("%")) / (100.0 if digits.endswith("%") else 1.0)
    except ValueError:
        raise InvalidInput(f"{where}: {kind} '{digits[:40]}' is not a number") from None
    if not math.isfinite(value) or abs(value) > _MAX_POSITION_SIZE:
        raise InvalidInput(f"{where}: {kind} '{digits[:40]}' is not a possible size of a position")
    return value
