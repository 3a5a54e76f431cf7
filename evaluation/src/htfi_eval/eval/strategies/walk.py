"""Trend and reversal of `htfi trade` with every parameter, walked day by day with the live forecaster.

Directions and weights are those of `execution`; a weight that was chosen at a close is traded at the next open and
held until the next. Parameters are chosen for each year by the days before it, less those whose positions reach into
it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import series_id
from htfi.domain.errors import InvalidInput
from htfi.execution.config import Strategy, TradingConfig
from htfi.execution.sizing import SizingInput, outcomes_of, target_weights
from htfi.execution.strategies import directions
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.overfitting import return_moments
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.portfolio.rules import TRADING_DAYS_PER_YEAR, RuleResult, Setting, log_opens, rule_result
from htfi_eval.eval.portfolio.walk import carried_log_closes
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import Walk

Array = NDArray[np.float64]

StrategyParameters = Mapping[Strategy, tuple[tuple[int, ...], tuple[int, ...]]]

PARAMETERS: StrategyParameters = {  # lookbacks, and how often positions change; bars
    "trend": ((21, 63, 126, 252), (1, 5, 21)),
    "reversal": ((1, 5, 21), (1, 5, 21)),
}
_MIN_YEARS = 2  # before the first whose parameters are chosen
_DAYS_TO_TRADE = 1


@dataclass(frozen=True, slots=True, eq=False)
class ChosenByYear:
    """A strategy whose parameters were chosen for each year by the days before it. `chosen` by year."""

    strategy: Strategy
    first: int  # place in the days of a trial
    returns: Array
    before_costs: Array
    chosen: dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class DailyOutlook:
    """What sizing knows on each day: forecasts as returns [S] of each series, None where there is none."""

    outcomes: list[list[Array | None]]


def see_outlook(
    prices: Prices, config: ForecastConfig, begin: int, progress: ProgressCallback | None = None
) -> DailyOutlook:
    """One-bar forecasts of every instant from `begin` on, made before later data go in."""
    outcomes: list[list[Array | None]] = [[None] * len(prices.symbols) for _ in range(len(prices.ends_ns))]
    walk = Walk(prices, config)
    row = list(config.horizons).index(1)
    for instant in walk.instants(begin, progress):
        quantiles = instant.quantiles[0, :, row]  # [n, Q]
        for place, values in zip(instant.places.tolist(), quantiles, strict=True):
            if np.isfinite(values).all():
                outcomes[instant.t][place] = outcomes_of(config.levels, values)
    return DailyOutlook(outcomes)


def try_strategies(
    prices: Prices,
    outlook: DailyOutlook,
    begin: int,
    costs_bps: float,
    progress: Callable[[int, int], None] | None = None,
    parameters: StrategyParameters = PARAMETERS,
) -> list[RuleResult]:
    """Every strategy with every parameter from instant `begin` on, all over the same days. Raises: InvalidInput."""
    log_close, log_open = carried_log_closes(prices.close), log_opens(prices)
    closes = np.exp(log_close)
    trials: list[RuleResult] = []
    choices: list[tuple[Strategy, int, int]] = [
        (strategy, lookback, every)
        for strategy, (lookbacks, everies) in parameters.items()
        for lookback, every in product(lookbacks, everies)
    ]
    if len(closes) < begin + 2 * TRADING_DAYS_PER_YEAR:
        raise InvalidInput(
            f"{prices.name} has {len(closes)} days: strategies need {begin + 2 * TRADING_DAYS_PER_YEAR}"
        )
    for num, (strategy, lookback, every) in enumerate(choices):
        if progress is not None:
            progress(num, len(choices))
        config = TradingConfig(strategy=strategy, lookback_bars=lookback, rebalance_bars=every)
        when = range(begin, len(closes) - 2, every)
        weights = _weights(prices, outlook, closes, when, config)
        settings: dict[str, Setting] = {
            "strategy": strategy,
            "lookback_bars": lookback,
            "rebalance_bars": every,
        }
        name = f"{strategy} {lookback}/{every}"
        trials.append(rule_result(name, settings, weights, np.array(when), log_open, costs_bps))
    return trials


def choose_by_year(strategy: Strategy, trials: list[RuleResult], years: list[str]) -> ChosenByYear:
    """The best of a strategy's trials so far is used in the year that follows. `years` [D] are those of each day."""
    purged = max(int(trial.settings["rebalance_bars"]) for trial in trials) + _DAYS_TO_TRADE
    labels = sorted(set(years))[_MIN_YEARS:]
    if not labels:
        raise InvalidInput(f"parameters are chosen by year: more than {_MIN_YEARS} years are needed")
    array = np.array(years)
    first = int(np.flatnonzero(array == labels[0])[0])
    returns: list[Array] = []
    free: list[Array] = []
    chosen: dict[str, str] = {}
    for year in labels:
        now = np.flatnonzero(array == year)
        known = slice(0, max(int(now[0]) - purged, 2))
        best = max(trials, key=lambda trial: return_moments(trial.returns[known]).sharpe)
        chosen[year] = best.name
        returns.append(best.returns[now])
        free.append(best.before_costs[now])
    return ChosenByYear(strategy, first, np.concatenate(returns), np.concatenate(free), chosen)


def _weights(
    prices: Prices, outlook: DailyOutlook, closes: Array, when: range, config: TradingConfig
) -> Array:
    """[R, n], as `htfi trade` would want them at the closes of `when`."""
    names = [series_id(symbol, prices.interval) for symbol in prices.symbols]
    weights = np.zeros((len(when), len(names)))
    for row, t in enumerate(when):
        known = [
            (place, SizingInput(names[place], outcomes, 1 / TRADING_DAYS_PER_YEAR))
            for place, outcomes in enumerate(outlook.outcomes[t])
            if outcomes is not None
        ]
        low = max(0, t - config.lookback_bars)
        paths = {one.symbol: closes[low : t + 1, place].tolist() for place, one in known}
        sigmas = {one.symbol: one.sigma for _, one in known}
        way = directions(config.strategy, paths, sigmas, config.lookback_bars)
        inputs = [replace(one, direction=way.get(one.symbol, 0.0)) for _, one in known]
        weights[row, [place for place, _ in known]] = target_weights(inputs, config)
    return weights
