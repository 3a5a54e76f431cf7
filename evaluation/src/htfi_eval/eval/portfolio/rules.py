"""A family of trading rules with every parameter, and how much of the best is chance; `htfi eval portfolio` runs it.

A rule sees closes up to a day, trades at the next day's open and holds until it next rebalances. Costs are paid on
every unit traded.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.evaluation.overfitting import (
    BacktestOverfitting,
    ReturnMoments,
    backtest_overfitting,
    deflated_sharpe,
    expected_max_sharpe,
    probabilistic_sharpe,
    return_moments,
)
from htfi_eval.eval.portfolio.walk import carried_log_closes
from htfi_eval.eval.prices import Prices

Array = NDArray[np.float64]
Setting = int | str | float
Signal = Callable[[Array, int], Array]

TRIALS_COMMAND = "portfolio rules"
TRADING_DAYS_PER_YEAR = 252
NUM_RANDOM_RULES = 72
_WARM_UP = 260
_VOLATILITY_DAYS = 63
_NUM_BLOCKS = 12
_MIN_DAYS = 250


@dataclass(frozen=True, slots=True, eq=False)
class RuleResult:
    """One configuration of a rule: its settings, and its daily returns [D] as shares of the capital.

    `returns` are after costs; `turnover` is what was traded by the year, as a multiple of the capital.
    """

    name: str
    settings: Mapping[str, Setting]
    returns: Array
    before_costs: Array
    turnover: float
    moments: ReturnMoments  # of the returns after costs

    @property
    def annual_sharpe(self) -> float:
        return self.moments.sharpe * TRADING_DAYS_PER_YEAR**0.5


@dataclass(frozen=True, slots=True, eq=False)
class RuleFamily:
    """All configurations with the same days, and how much of the best is chance."""

    results: tuple[RuleResult, ...]
    overfitting: BacktestOverfitting
    num_trials: int

    @property
    def variance(self) -> float:
        """Of the daily Sharpe ratios over the configurations."""
        return float(np.var([result.moments.sharpe for result in self.results], ddof=1))

    @property
    def best(self) -> RuleResult:
        return max(self.results, key=lambda result: result.moments.sharpe)

    def expected_max_annual_sharpe(self) -> float:
        """The best annual ratio to expect from this many trials of worthless rules."""
        return expected_max_sharpe(self.variance, self.num_trials) * TRADING_DAYS_PER_YEAR**0.5

    def probabilistic(self, result: RuleResult) -> float:
        return probabilistic_sharpe(result.moments)

    def deflated(self, result: RuleResult) -> float:
        return deflated_sharpe(result.moments, self.variance, self.num_trials)


def configurations() -> Iterator[tuple[str, Signal, dict[str, Setting]]]:
    """Every rule with every parameter: (kind, signal, settings)."""
    kinds: dict[str, tuple[Signal, tuple[int, ...]]] = {
        "momentum": (_momentum, (21, 63, 126, 252)),
        "reversal": (_reversal, (1, 5, 10, 21)),
        "trend, vol-scaled": (_trend, (21, 63, 126, 252)),
        "moving average": (_average, (20, 50, 100, 200)),
        "low volatility": (_low_volatility, (21, 63, 126, 252)),
        "breakout": (_breakout, (20, 60, 120, 250)),
    }
    for (kind, (signal, lookbacks)), every in product(kinds.items(), (1, 5, 21)):
        for lookback in lookbacks:
            yield kind, signal, {"rule": kind, "lookback_days": lookback, "rebalance_days": every}


def try_rules(prices: Prices, begin: int, costs_bps: float) -> list[RuleResult]:
    """Every configuration from instant `begin` on. Raises: InvalidInput where there are too few days or series."""
    log_close, log_open = carried_log_closes(prices.close), log_opens(prices)
    begin = max(begin, _WARM_UP)
    if len(log_close) - begin < _MIN_DAYS or log_close.shape[1] < 2:
        raise InvalidInput(
            f"{prices.name}: rules need two series and {_WARM_UP + _MIN_DAYS} days; use more data, or --no-rules"
        )
    results: list[RuleResult] = []
    for kind, signal, settings in configurations():
        lookback, every = int(settings["lookback_days"]), int(settings["rebalance_days"])
        when = range(begin, len(log_close) - 2, every)
        weights: Array = np.stack([_normalised(signal(log_close[: t + 1], lookback)) for t in when])
        settings = {**settings, "costs_bps": costs_bps}
        name = f"{kind} {lookback}/{every}"
        results.append(rule_result(name, settings, weights, np.array(when), log_open, costs_bps))
    return results


def random_rules(prices: Prices, begin: int, costs_bps: float, seed: int) -> list[RuleResult]:
    """As many rules that trade at random every month: shows the effect of chance."""
    rng = np.random.default_rng(seed)
    log_open = log_opens(prices)
    when = range(max(begin, _WARM_UP), len(log_open) - 2, 21)
    results: list[RuleResult] = []
    for coin in range(NUM_RANDOM_RULES):
        weights: Array = np.stack([_normalised(rng.standard_normal((log_open.shape[1],))) for _ in when])
        name = f"coin {coin + 1}"
        results.append(rule_result(name, {"rule": "coin"}, weights, np.array(when), log_open, costs_bps))
    return results


def rule_result(
    name: str,
    settings: Mapping[str, Setting],
    weights: Array,
    when: NDArray[np.intp],
    log_open: Array,
    costs_bps: float,
) -> RuleResult:
    """What weights [N, S] earn that were chosen at the days `when` [N]; `costs_bps` on every unit traded."""
    paid, free = (daily_returns(weights, when, log_open, bps) for bps in (costs_bps, 0.0))
    traded = float(np.abs(np.diff(weights, axis=0, prepend=0.0)).sum())
    turnover = traded * TRADING_DAYS_PER_YEAR / len(paid)
    return RuleResult(name, settings, paid, free, turnover, return_moments(paid))


def judge_family(results: list[RuleResult], num_trials: int) -> RuleFamily:
    """`num_trials`: all configurations ever tried, at least these."""
    returns = np.stack([result.returns for result in results], axis=1)
    return RuleFamily(
        tuple(results), backtest_overfitting(returns, _NUM_BLOCKS), max(num_trials, len(results))
    )


def daily_returns(weights: Array, when: NDArray[np.intp], log_open: Array, costs_bps: float) -> Array:
    """Daily returns from the open after `when[0]` on: weights are set at the open after the day they were chosen on."""
    num = len(log_open)
    moves = np.expm1(np.diff(log_open, axis=0))  # [T−1, n], open t → open t+1
    held = np.repeat(weights, np.diff([*when.tolist(), num - 2]), axis=0)  # by the day of the signal
    first = int(when[0])
    gross = (held * moves[first + 1 : first + 1 + len(held)]).sum(axis=1)
    traded = np.abs(np.diff(weights, axis=0, prepend=0.0)).sum(axis=1)
    costs = np.zeros(len(held))
    costs[when - first] = traded * costs_bps * 1e-4
    return gross - costs


def _normalised(signal: Array) -> Array:
    """Weights whose absolute values add up to 1; zero where the rule takes no position."""
    size = float(np.abs(signal).sum())
    return signal / (size or 1.0)


def _momentum(path: Array, lookback: int) -> Array:
    return _thirds(path[-1] - path[-1 - lookback])


def _reversal(path: Array, lookback: int) -> Array:
    return -_thirds(path[-1] - path[-1 - lookback])


def _trend(path: Array, lookback: int) -> Array:
    return np.sign(path[-1] - path[-1 - lookback]) / _volatility(path, _VOLATILITY_DAYS)


def _average(path: Array, lookback: int) -> Array:
    return np.sign(path[-1] - path[-lookback:].sum(axis=0) / lookback)


def _low_volatility(path: Array, lookback: int) -> Array:
    return -_thirds(_volatility(path, lookback))


def _breakout(path: Array, lookback: int) -> Array:
    window = path[-lookback:]
    low, high = window.min(axis=0), window.max(axis=0)
    return np.where(high > low, 2.0 * (path[-1] - low) / np.where(high > low, high - low, 1.0) - 1.0, 0.0)


def _thirds(signal: Array) -> Array:
    """+1 for the highest third, −1 for the lowest."""
    rank = signal.argsort(kind="stable").argsort(kind="stable")
    third = max(len(signal) // 3, 1)
    chosen = np.zeros(len(signal))
    chosen[rank >= len(signal) - third] += 1.0
    chosen[rank < third] -= 1.0
    return chosen


def _volatility(path: Array, days: int) -> Array:
    moves = np.diff(path[-1 - days :], axis=0)
    return np.maximum(np.sqrt((moves * moves).sum(axis=0) / days), 1e-4)


def log_opens(prices: Prices) -> Array:
    """Log opens; where one is missing, the last close before it."""
    before = carried_log_closes(prices.close)
    before = np.concatenate([before[:1], before[:-1]])
    known = np.isfinite(prices.open) & np.isfinite(prices.close)
    return np.where(known, np.log(np.where(known, prices.open, 1.0)), before)
