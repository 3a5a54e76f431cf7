"""Walks a panel forward with every method's risk forecast of the books each day; `judging` tests them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import series_id
from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.joint.portfolio import tail_risk
from htfi_eval.eval.portfolio.methods import JointMethod, KnownHistory
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import Walk

Array = NDArray[np.float64]

LEVELS = (0.95, 0.99)
_MIN_COVERAGE = 0.99  # share of instants at which a series must have a bar
_JOINT_EVERY = 5  # instants between scores of the whole distribution
_MAX_VARIOGRAM_SERIES = 30
_NUM_PAIRS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Books:
    """Books [B, n] of notionals whose absolute values add up to 1, held at these weights every day."""

    names: tuple[str, ...]
    notionals: Array


@dataclass(slots=True, eq=False)
class BookForecasts:
    """One method's forecasts of each book at one horizon, by day. Lists over days of [B, 2], [B, 2] and [B, S]."""

    value_at_risk: list[Array] = field(default_factory=list[Array])
    shortfall: list[Array] = field(default_factory=list[Array])
    profits: list[NDArray[np.float32]] = field(default_factory=list[NDArray[np.float32]])
    energy: list[float] = field(default_factory=list[float])
    variogram: list[float] = field(default_factory=list[float])


@dataclass(frozen=True, slots=True, eq=False)
class PortfolioWalk:
    """Shapes: days[j] [D_j], instants at which the j-th horizon was forecast; profit[j] [D_j, B], the outcome."""

    prices: Prices
    books: Books
    horizons: tuple[int, ...]
    methods: tuple[str, ...]
    days: list[NDArray[np.intp]]
    profit: list[Array]
    forecasts: dict[tuple[str, int], BookForecasts]


def complete_series(prices: Prices, num: int, begin: int) -> Prices:
    """`num` of the series that have nearly every bar and moved long before instant `begin`, spread over the alphabet.

    Raises: InvalidInput where there is none.
    """
    there = np.isfinite(prices.close)
    before = np.where(there, prices.close, 0.0)[: max(begin - 250, 2)]
    low = np.where(before > 0.0, before, np.inf).min(axis=0)
    early = before.max(axis=0) > low
    first = there.argmax(axis=0)
    share = np.array([there[first[n] :, n].mean() for n in range(there.shape[1])])
    usable: NDArray[np.intp] = np.flatnonzero(early & (share >= _MIN_COVERAGE))
    if not len(usable):
        raise InvalidInput(
            f"{prices.name}: no series has {_MIN_COVERAGE:.0%} of its bars and a price move a year before the first day"
        )
    chosen = usable[np.unique(np.linspace(0, len(usable) - 1, min(num, len(usable))).round().astype(int))]
    places: list[int] = chosen.tolist()
    return prices.cut([prices.symbols[place] for place in places])


def make_books(num: int, seed: int) -> Books:
    """Equal weights; half long and half short at random; and three random names with 50, 30 and 20%."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(num)
    signs = np.ones(num)
    signs[order[: num // 2]] = -1.0
    few = np.zeros(num)
    few[rng.permutation(num)[:3]] = (0.5, 0.3, 0.2)[: min(num, 3)]
    return Books(
        ("equal weight", "long-short", "concentrated"),
        np.stack([np.full(num, 1.0 / num), signs / num, few / few.sum()]),
    )


def walk_books(
    prices: Prices,
    books: Books,
    methods: Sequence[JointMethod],
    config: ForecastConfig,
    horizons: Sequence[int],
    begin: int,
    progress: Callable[[int, int], None] | None = None,
) -> PortfolioWalk:
    """Every day from instant `begin` on, horizons of h days every h days, so that outcomes do not overlap."""
    log_close = carried_log_closes(prices.close)
    returns = np.diff(log_close, axis=0, prepend=log_close[:1])
    names = [series_id(symbol, prices.interval) for symbol in prices.symbols]
    scale = np.sqrt((returns[:begin] ** 2).mean(axis=0)) if begin > 1 else np.ones(len(names))
    scale = np.where(scale > 0.0, scale, 1.0)
    walk = Walk(prices, config)
    places = [config.horizons.index(h) for h in horizons]
    forecasts = {(method.name, j): BookForecasts() for method in methods for j in range(len(horizons))}
    days: list[list[int]] = [[] for _ in horizons]
    last = len(prices.ends_ns) - 1
    for instant in walk.instants(begin, progress):
        t = instant.t
        quantiles = walk.forecaster.forecast(names).quantiles
        if not np.isfinite(quantiles).all():
            continue
        past = walk.forecaster.surprises(names).scores
        seen = KnownHistory(returns[: t + 1], quantiles[:, places], past, config.levels, tuple(horizons))
        due = [j for j, h in enumerate(horizons) if (t - begin) % h == 0 and t + h <= last]
        for method in methods:
            method.see(seen)
            for j in due:
                _ask(method, j, books, forecasts[method.name, j])
                if (t - begin) % _JOINT_EVERY == 0:
                    outcome = log_close[t + horizons[j]] - log_close[t]
                    _score(method, j, outcome / scale, scale, forecasts[method.name, j])
        for j in due:
            days[j].append(t)
    profit = [
        np.expm1(log_close[np.array(when, np.intp) + h] - log_close[np.array(when, np.intp)])
        @ books.notionals.T
        for when, h in zip(days, horizons, strict=True)
    ]
    if not days[0]:
        raise InvalidInput(
            f"{prices.name}: no day on which all {len(names)} series have a forecast; use longer data"
        )
    return PortfolioWalk(
        prices,
        books,
        tuple(horizons),
        tuple(method.name for method in methods),
        [np.array(when, np.intp) for when in days],
        profit,
        forecasts,
    )


def _ask(method: JointMethod, j: int, books: Books, forecasts: BookForecasts) -> None:
    rising = np.sort(-method.profits(j, books.notionals, method.scenarios(j)), axis=1)
    tails = [[tail_risk(losses, level) for level in LEVELS] for losses in rising]
    forecasts.value_at_risk.append(np.array([[one.value_at_risk for one in row] for row in tails]))
    forecasts.shortfall.append(np.array([[one.expected_shortfall for one in row] for row in tails]))
    forecasts.profits.append(-rising[:, ::-1].astype(np.float32))


def _score(method: JointMethod, j: int, outcome: Array, scale: Array, forecasts: BookForecasts) -> None:
    scenarios = method.scenarios(j) / scale
    forecasts.energy.append(energy_score(scenarios, outcome))
    forecasts.variogram.append(
        variogram_score(scenarios[:, :_MAX_VARIOGRAM_SERIES], outcome[:_MAX_VARIOGRAM_SERIES])
    )


def energy_score(scenarios: Array, outcome: Array) -> float:
    """E‖X − y‖ − ½E‖X − X′‖ (Gneiting and Raftery 2007) of equally likely scenarios [S, n].

    The second mean is over 40 shifts of the scenarios, shuffled, because neighbours may be similar.
    """
    scenarios = scenarios[np.random.default_rng(len(scenarios)).permutation(len(scenarios))]
    near = float(np.sqrt(((scenarios - outcome) ** 2).sum(axis=1)).mean())
    num = len(scenarios)
    shifts = np.unique(np.linspace(1, max(num - 1, 1), min(_NUM_PAIRS, max(num - 1, 1))).round().astype(int))
    squares = (scenarios**2).sum(axis=1)
    apart = 0.0
    for shift in shifts.tolist():
        other = np.roll(scenarios, shift, axis=0)
        products = (scenarios * other).sum(axis=1)
        apart += float(np.sqrt(np.maximum(squares + np.roll(squares, shift) - 2.0 * products, 0.0)).mean())
    return near - 0.5 * apart / len(shifts) * (num - 1) / num


def variogram_score(scenarios: Array, outcome: Array) -> float:
    """Mean over pairs of (√|yᵢ − yⱼ| − E√|Xᵢ − Xⱼ|)² (Scheuerer and Hamill 2015, p = ½): it measures dependence."""
    left, right = np.triu_indices(scenarios.shape[1], 1)
    if not len(left):
        return 0.0
    expected = np.sqrt(np.abs(scenarios[:, left] - scenarios[:, right])).mean(axis=0)
    return float(((np.sqrt(np.abs(outcome[left] - outcome[right])) - expected) ** 2).mean())


def carried_log_closes(close: Array) -> Array:
    """Log closes; the last known one replaces a missing one, as a holder sees it."""
    row = np.where(np.isfinite(close), np.arange(len(close))[:, None], 0)
    row = np.maximum.accumulate(row, axis=0)
    carried = np.take_along_axis(close, row, axis=0)
    first = np.where(np.isfinite(close), close, np.nan)
    for n in np.flatnonzero(~np.isfinite(carried[0])).tolist():  # before its first bar a series is constant
        known = np.flatnonzero(np.isfinite(first[:, n]))
        carried[: known[0], n] = first[known[0], n]
    return np.log(carried)
