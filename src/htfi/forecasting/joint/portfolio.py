"""A portfolio under joint scenarios: profit, value at risk, expected shortfall, and their components.

Portfolio evaluation and `htfi scenario` use it. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Notional by series, in one currency, negative where sold short."""

    series: tuple[str, ...]
    notionals: Array  # [n]


@dataclass(frozen=True, slots=True)
class PortfolioRisk:
    """Value at risk and expected shortfall of the loss at a level, both in the book's currency, a loss positive.

    Shape: component_es [n], the parts that positions have in the shortfall; they add up to it (Euler).
    """

    value_at_risk: float
    expected_shortfall: float
    component_es: Array


@dataclass(frozen=True, slots=True)
class TailRisk:
    """Both losses positive."""

    value_at_risk: float
    expected_shortfall: float


def make_portfolio(positions: Mapping[str, float]) -> Portfolio:
    """Raises: InvalidInput for no position or a notional that is not finite."""
    if not positions or not all(np.isfinite(value) for value in positions.values()):
        raise InvalidInput("a book needs one position or more, each with a finite notional")
    return Portfolio(tuple(positions), np.array(list(positions.values()), np.float64))


def portfolio_profits(book: Portfolio, returns: Array) -> Array:
    """Profit [..., S] of the book under log returns [..., S, n]: Σ notional·(eʳ − 1)."""
    return np.expm1(returns) @ book.notionals


def portfolio_risk(book: Portfolio, returns: Array, level: float = 0.99) -> PortfolioRisk:
    """Of scenarios [S, n] of log returns.

    Value at risk is the loss's quantile, linear between scenarios at (i − ½)/S; expected shortfall the mean of the
    worst (1 − level)·S scenarios, the last in part. Guarantees: shortfall ≥ value at risk; components add up.
    Raises: InvalidInput for a level outside [0.5, 1), or scenarios that are not finite or not of this book.
    """
    if not 0.5 <= level < 1.0:
        raise InvalidInput(f"a level of risk lies from 0.5 to below 1, such as 0.99, not {level:g}")
    if returns.ndim != 2 or returns.shape[1] != len(book.series) or not len(returns):
        raise InvalidInput(f"a book of {len(book.series)} positions needs scenarios of as many series")
    unit = -np.expm1(returns)  # [S, n], loss per unit held
    losses = unit @ book.notionals
    if not np.isfinite(losses).all():
        raise InvalidInput("scenarios hold values that are not finite: leave out series without a forecast")
    order = np.argsort(losses, kind="stable")
    found = tail_risk(losses[order], level)
    share = _worst_shares(len(losses), level)
    worst = np.flatnonzero(share)
    marginal_es = share[worst] @ unit[order[worst]]
    return PortfolioRisk(found.value_at_risk, found.expected_shortfall, book.notionals * marginal_es)


def tail_risk(rising: Array, level: float) -> TailRisk:
    """Of losses [S] in rising order: the quantile, and the mean of the worst (1 − level)·S, the last in part."""
    value_at_risk = _quantile(rising, level)
    shortfall = float(_worst_shares(len(rising), level) @ rising)
    return TailRisk(value_at_risk, max(shortfall, value_at_risk))  # equal losses: no rounding between the two


def _worst_shares(num: int, level: float) -> Array:
    """Each scenario's share of the tail [S], the worst last."""
    share = np.clip(np.arange(1, num + 1) - level * num, 0.0, 1.0)
    return share / share.sum()


def _quantile(rising: Array, level: float) -> float:
    place = np.clip(level * len(rising) - 0.5, 0.0, len(rising) - 1.0)
    low = int(place)
    high = min(low + 1, len(rising) - 1)
    return float(rising[low] + (place - low) * (rising[high] - rising[low]))
