"""A book of positions under joint scenarios: profit, value at risk, expected shortfall, and whose they are.

Portfolio evaluation and `htfi scenario` call it. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Book:
    """Notional by series, in one currency, negative where sold short."""

    series: tuple[str, ...]
    notionals: Array  # [n]


@dataclass(frozen=True, slots=True)
class Risk:
    """Value at risk and expected shortfall of the loss at `level`, both in the book's currency, a loss positive.

    Shapes: all arrays [n]. Components add up to the whole (Euler); marginals are per unit of notional added.
    """

    level: float
    value_at_risk: float
    expected_shortfall: float
    component_var: Array
    component_es: Array
    marginal_var: Array
    marginal_es: Array


def make_book(positions: Mapping[str, float]) -> Book:
    """Raises: InvalidInput for no position or a notional that is not finite."""
    if not positions or not all(np.isfinite(value) for value in positions.values()):
        raise InvalidInput("a book needs one position or more, each with a finite notional")
    return Book(tuple(positions), np.array(list(positions.values()), np.float64))


def profits(book: Book, returns: Array) -> Array:
    """Profit [..., S] of the book under log returns [..., S, n]: Σ notional·(eʳ − 1)."""
    return np.expm1(returns) @ book.notionals


def risk(book: Book, returns: Array, level: float = 0.99) -> Risk:
    """Raises: InvalidInput for a level outside (0.5, 1)."""
    raise NotImplementedError
