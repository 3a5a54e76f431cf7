"""Figures of one distribution of outcomes, of a position or of a portfolio's profit, before and after a scenario."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.joint.portfolio import Portfolio, PortfolioRisk, portfolio_profits, portfolio_risk
from htfi.forecasting.scenarios.baseline import BaselineForecast
from htfi.forecasting.scenarios.effects import (
    EventProbability,
    ScenarioEffect,
    TransmissionChannel,
    probability_of_profit,
)

Array = NDArray[np.float64]

VAR_LEVEL = 0.99
ES_LEVEL = 0.975
_STATED_CHANNELS = frozenset(
    {
        TransmissionChannel.SHOCKED,
        TransmissionChannel.FACTOR,
        TransmissionChannel.OWN_HISTORY,
        TransmissionChannel.VIEW,
    }
)
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class PortfolioFigures:
    """A book's profit over the horizon, in its own unit; quantiles at LEVELS."""

    mean: float
    deviation: float
    quantiles: tuple[float, ...]
    var99: float
    es975: float
    shares_of_es: tuple[float, ...]  # add up to es975
    means: tuple[float, ...]  # of each position's profit: add up to `mean`
    profits: Array  # [S]


@dataclass(frozen=True, slots=True)
class ScenarioComparison:
    """A scenario beside today: quantiles [n, L] of each series' simple return at LEVELS, and the book's figures."""

    before: Array
    after: Array
    portfolio_before: PortfolioFigures
    portfolio_after: PortfolioFigures
    probability: (
        EventProbability | None
    )  # of the book ending as far as the scenario's mean; None where nothing changes


def portfolio_figures(book: Portfolio, returns: Array) -> PortfolioFigures:
    """Of a book under log returns [S, n]."""
    each = portfolio_profits(book, returns)
    tail: PortfolioRisk = portfolio_risk(book, returns, VAR_LEVEL)
    shortfall: PortfolioRisk = portfolio_risk(book, returns, ES_LEVEL)
    means = np.expm1(returns).mean(axis=0) * book.notionals
    return PortfolioFigures(
        mean=float(each.mean()),
        deviation=float(each.std()),
        quantiles=tuple(np.quantile(each, LEVELS).tolist()),
        var99=tail.value_at_risk,
        es975=shortfall.expected_shortfall,
        shares_of_es=tuple(shortfall.component_es.tolist()),
        means=tuple(means.tolist()),
        profits=each,
    )


def simple_quantiles(returns: Array) -> Array:
    """Quantiles [n, L] at LEVELS of simple returns, from log returns [S, n]."""
    return np.expm1(np.quantile(returns, LEVELS, axis=0).T)


def compare_with_baseline(
    today: BaselineForecast,
    effect: ScenarioEffect,
    book: Portfolio,
    before: Array,
    book_before: PortfolioFigures,
) -> ScenarioComparison:
    """`before` and `book_before` are today's, worked out once for all scenarios."""
    if effect.returns is today.returns:
        return ScenarioComparison(before, before, book_before, book_before, None)
    book_after = portfolio_figures(book, effect.returns)
    same = np.isclose(
        book_after.mean, book_before.mean, rtol=0.0, atol=1e-9 * float(np.abs(book.notionals).sum())
    )
    chance = (
        None
        if same
        else probability_of_profit(
            book_before.profits, portfolio_profits(book, today.replayed), book_after.mean
        )
    )
    return ScenarioComparison(before, simple_quantiles(effect.returns), book_before, book_after, chance)


def rank_positions(
    change: ScenarioComparison, ways: Sequence[TransmissionChannel], held: NDArray[np.bool_]
) -> list[int]:
    """Positions, and series that the scenario moves, by their effect on the portfolio."""
    gains = [
        abs(b - a) for a, b in zip(change.portfolio_before.means, change.portfolio_after.means, strict=True)
    ]
    is_stated = [way in _STATED_CHANNELS for way in ways]
    shown = [place for place in range(len(gains)) if held[place] or is_stated[place]]
    return sorted(shown, key=lambda place: (-gains[place], not is_stated[place], place))


def kernel_density(values: Array, low: float, high: float, num: int = 120) -> list[float]:
    """A smooth density of draws at `num` even steps from low to high: Gaussian kernels of Silverman's width.

    A distribution without width gives one peak.
    """
    grid = np.linspace(low, high, num)
    step = grid[1] - grid[0] if num > 1 and high > low else 1.0
    middle = np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.349
    width = 0.9 * min(float(values.std()), float(middle) or float(values.std())) * len(values) ** -0.2
    width = max(width, 0.75 * float(step))
    counts, edges = np.histogram(values, bins=4 * num, range=(low, high))
    centres = 0.5 * (edges[1:] + edges[:-1])
    kernel = np.exp(-0.5 * ((grid[:, None] - centres) / width) ** 2)
    total = kernel @ counts / (len(values) * width * np.sqrt(2.0 * np.pi))
    return total.tolist()


def padded_range(*tables: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest of several, a little wider; never empty."""
    low, high = min(min(table) for table in tables), max(max(table) for table in tables)
    margin = 0.06 * (high - low) or 0.01
    return low - margin, high + margin
