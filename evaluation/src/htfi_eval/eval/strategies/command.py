"""`htfi eval strategies`: what trend and reversal of `htfi trade` earned after costs, and how much of it is luck."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from htfi.apps.options import FiniteRange
from htfi.domain.errors import InvalidInput
from htfi.execution.config import TradingConfig
from htfi.execution.strategies import MIN_CROSS_SECTION
from htfi.forecasting.evaluation.overfitting import (
    BacktestOverfitting,
    ReturnMoments,
    backtest_overfitting,
    deflated_sharpe,
    probabilistic_sharpe,
    return_moments,
    sharpe_deviation,
)
from htfi.library.charts.specs import BarChart, Chart, Curve, TimeLines
from htfi.wiring.settings import load_settings
from htfi_eval.commands import ProgressLine, data_option, output_options
from htfi_eval.eval.portfolio.rules import TRADING_DAYS_PER_YEAR, RuleResult
from htfi_eval.eval.portfolio.walk import carried_log_closes, complete_series
from htfi_eval.eval.prices import Prices, data_folder, load_prices
from htfi_eval.eval.strategies.walk import (
    PARAMETERS,
    ChosenByYear,
    choose_by_year,
    see_outlook,
    try_strategies,
)
from htfi_eval.eval.trials import digest_of, list_trials, num_configurations, record_trials, trials_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation

SETS = ("us_equities", "etf")
NUM_SYMBOLS = 30
COSTS_BPS = 5.0
TRIALS_COMMAND = "strategies"
_BEGIN = 260  # instants: the longest lookback, and a forecaster that has learnt
_NUM_BLOCKS = 12
_LUCK = 0.95  # a deflated ratio below it may be luck
_MAX_POINTS = 600
_MAX_MOVE = float(np.log(1.5))

_EPILOG = """\b
Examples:
  htfi eval strategies                               us_equities and etf
  htfi eval strategies etf --symbols 20 --html build/strategies.html
  htfi eval strategies prices.csv --costs-bps 1      bars of your own
"""


@click.command("strategies", short_help="What trend and reversal earned after costs.", epilog=_EPILOG)
@click.argument("sets", metavar="[SET|FILE]...", nargs=-1)
@data_option
@click.option(
    "--symbols", "num_symbols", default=NUM_SYMBOLS, show_default=True, type=click.IntRange(1),
    help="Maximum number of symbols of a set, spread evenly over those with all bars.",
)  # fmt: skip
@click.option(
    "--costs-bps", default=COSTS_BPS, show_default=True, type=FiniteRange(0), help="Costs per unit traded."
)
@trials_option
@output_options
def command(
    sets: tuple[str, ...],
    data: Path | None,
    num_symbols: int,
    costs_bps: float,
    trials: Path,
    html_file: Path | None,
    json_file: Path | None,
) -> None:
    """Walk `htfi trade --strategy trend` and `reversal` over daily bars, with every parameter.

    Directions come from past closes, sizes from the live forecaster, trades at the next open, costs on every unit
    traded. Parameters are chosen for each year by the days before it, less those whose positions reach into it
    (purging). Sharpe ratios are deflated by the number of configurations ever tried, which the ledger of trials counts.
    Financing, borrowing fees and dividends are left out.
    """
    notes: list[str] = []
    if not sets and data is None and data_folder() is None:
        notes.append("staged data were not found: these figures are of the small embedded sample")
        sets = ("sample",)
    result = Evaluation(
        name="strategies", title="Two simple strategies, after costs", metrics={}, notes=notes
    )
    for name in sets or SETS:
        _judge_set(result, load_prices(name, data), num_symbols, costs_bps, trials)
    result.lead = _lead(result, costs_bps)
    write_outputs(result, json_file=json_file, html_file=html_file)


def _judge_set(result: Evaluation, prices: Prices, num_symbols: int, costs_bps: float, folder: Path) -> None:
    config = load_settings().forecasting
    believed, doubted = _believed(prices)
    chosen = complete_series(believed, num_symbols, _BEGIN)
    outlook = see_outlook(chosen, config, _BEGIN, ProgressLine(f"{prices.name}, forecasts"))
    tried = try_strategies(chosen, outlook, _BEGIN, costs_bps, ProgressLine(f"{prices.name}, strategies"))
    data = digest_of(list(chosen.symbols), chosen.ends_ns, chosen.close, chosen.open)
    record_trials(
        TRIALS_COMMAND,
        data,
        [
            ({**one.settings, "costs_bps": costs_bps}, {"sharpe a year": _annual(one.moments)})
            for one in tried
        ],
        folder=folder,
    )
    ever = num_configurations(trial for trial in list_trials(folder) if trial.command == TRIALS_COMMAND)
    dates = chosen.dates()[_BEGIN + 1 : _BEGIN + 1 + len(tried[0].returns)]
    held = _held(chosen, len(tried[0].returns))
    walked: list[ChosenByYear] = []
    for strategy in PARAMETERS:
        if strategy == "reversal" and len(chosen.symbols) < MIN_CROSS_SECTION:
            result.notes.append(f"{prices.name}: reversal is left out: it needs {MIN_CROSS_SECTION} series")
            continue
        family = [one for one in tried if one.settings["strategy"] == strategy]
        by_year = choose_by_year(strategy, family, [date[:4] for date in dates])
        walked.append(by_year)
        _add_strategy(result, prices.name, family, by_year, ever)
    first, limits = walked[0].first, TradingConfig()
    result.rows.append(_row(prices.name, "all held alike, at these days", held[first:], held[first:]))
    result.charts += _charts(prices.name, tried, walked, held, dates)
    result.notes += [
        *prices.notes,
        f"{prices.name}: {doubted} of {len(prices.symbols)} series are left out for a daily move beyond "
        f"{np.expm1(_MAX_MOVE):.0%}, which may be an error",
        f"{prices.name}: {len(chosen.symbols)} series, {dates[0]} to {dates[-1]}; parameters were chosen from "
        f"{dates[first]} on; {ever} configurations ever tried; limits are the defaults of `htfi trade` (a position "
        f"{limits.max_weight:.0%}, all together {limits.max_gross:.0%} of the capital)",
    ]


def _add_strategy(
    result: Evaluation, name: str, family: Sequence[RuleResult], walked: ChosenByYear, num_trials: int
) -> None:
    returns = np.stack([one.returns for one in family], axis=1)
    overfitting = backtest_overfitting(returns, _NUM_BLOCKS)
    spread = float(np.var([one.moments.sharpe for one in family], ddof=1))
    moments = return_moments(walked.returns)
    # Parameters were chosen without looking ahead; that there are two strategies, and these, was not.
    by_luck = deflated_sharpe(moments, spread, max(num_trials, len(family)))
    best = max(family, key=lambda one: one.moments.sharpe)
    strategy = walked.strategy
    result.rows.append(
        _row(name, f"{strategy}, chosen by year", walked.returns, walked.before_costs, by_luck)
    )
    result.rows.append(
        _row(name, f"{best.name}, the best looking back", best.returns, best.before_costs)
        | {"turnover a year": round(best.turnover, 1)}
    )
    result.metrics.update({
        f"{name}_{strategy}_sharpe": _annual(moments),
        f"{name}_{strategy}_sharpe_before_costs": _annual(return_moments(walked.before_costs)),
        f"{name}_{strategy}_deflated": by_luck,
        f"{name}_{strategy}_overfitting": overfitting.probability,
    })  # fmt: skip
    result.cards.append(Card(f"{_annual(moments):.2f}", f"Sharpe ratio of {strategy} on {name}, after costs"))
    result.cards.append(Card(f"{by_luck:.2f}", f"probability that {strategy} on {name} is more than luck"))
    result.notes.append(_chosen_note(name, walked, overfitting))


def _chosen_note(name: str, walked: ChosenByYear, overfitting: BacktestOverfitting) -> str:
    listed = ", ".join(f"{year} {chosen}" for year, chosen in walked.chosen.items())
    return (
        f"{name}, {walked.strategy} (look back/rebalance, days): {listed}; probability of overfitting "
        f"{overfitting.probability:.2f}"
    )


def _row(
    name: str, kind: str, returns: np.ndarray, before: np.ndarray, deflated: float | None = None
) -> dict[str, Any]:
    moments = return_moments(returns)
    low, high = _interval(moments)
    wealth = np.cumsum(returns)
    return {
        "set": name,
        "strategy": kind,
        "Sharpe ratio": round(_annual(moments), 2),
        "95%": f"{low:.2f} to {high:.2f}",
        "before costs": round(_annual(return_moments(before)), 2),
        "return a year": f"{float(returns.mean()) * TRADING_DAYS_PER_YEAR:.1%}",
        "largest fall": f"{float((np.maximum.accumulate(np.append(0.0, wealth))[1:] - wealth).max()):.1%}",
        "above 0": round(probabilistic_sharpe(moments), 2),
        "more than luck": None if deflated is None else round(deflated, 2),
    }


def _annual(moments: ReturnMoments) -> float:
    return moments.sharpe * TRADING_DAYS_PER_YEAR**0.5


def _interval(moments: ReturnMoments) -> tuple[float, float]:
    """95% of the ratio by the year, its standard error as in the probabilistic Sharpe ratio."""
    wide = 1.96 * sharpe_deviation(moments) * (TRADING_DAYS_PER_YEAR / (moments.num - 1)) ** 0.5
    return _annual(moments) - wide, _annual(moments) + wide


def _believed(prices: Prices) -> tuple[Prices, int]:
    """The series without a daily move that is more likely an error than a price, and how many others there are."""
    moves = np.abs(np.diff(carried_log_closes(prices.close), axis=0)).max(axis=0, initial=0.0)
    names = [name for name, move in zip(prices.symbols, moves.tolist(), strict=True) if move <= _MAX_MOVE]
    if not names:
        raise InvalidInput(f"{prices.name}: every series has a daily move beyond {np.expm1(_MAX_MOVE):.0%}")
    return prices.cut(names), len(prices.symbols) - len(names)


def _held(prices: Prices, num: int) -> np.ndarray:
    """Daily returns [D] of all series in equal parts, from close to close, without costs."""
    log_close = carried_log_closes(prices.close)
    moves = np.expm1(np.diff(log_close, axis=0)).mean(axis=1)
    return moves[_BEGIN + 1 : _BEGIN + 1 + num]


def _charts(
    name: str,
    tried: Sequence[RuleResult],
    walked: Sequence[ChosenByYear],
    held: np.ndarray,
    dates: list[str],
) -> list[Chart]:
    first = walked[0].first
    step = max((len(dates) - first) // _MAX_POINTS, 1)
    curves = [
        Curve(f"{one.strategy}, chosen by year", np.cumsum(one.returns)[::step].tolist()) for one in walked
    ]
    curves += [
        Curve(f"{one.strategy}, before costs", np.cumsum(one.before_costs)[::step].tolist()) for one in walked
    ]
    curves.append(Curve("all held alike", np.cumsum(held[first:])[::step].tolist()))
    every = sorted(tried, key=lambda one: -one.moments.sharpe)
    bounds = [_interval(one.moments) for one in every]
    return [
        TimeLines(
            f"{name}: what the strategies earned",
            "Sum of daily returns, as a share of the capital, after costs unless named.",
            dates[first::step],
            curves,
            level=0.0,
        ),
        BarChart(
            f"{name}: annual Sharpe ratio of every configuration, after costs",
            "Look back/rebalance, in days, over all days: the best was not known before. Intervals of 95%.",
            [one.name for one in every],
            [_annual(one.moments) for one in every],
            [low for low, _ in bounds],
            [high for _, high in bounds],
            zero=0.0,
        ),
    ]


def _lead(result: Evaluation, costs_bps: float) -> str:
    found = {
        key.rpartition("_")[0]: value
        for key, value in result.metrics.items()
        if key.endswith("_deflated") and value is not None
    }
    real = [key.replace("_", " ") for key, value in found.items() if value >= _LUCK]
    if not real:
        return (
            f"After costs of {costs_bps:g} basis points none of {len(found)} strategies earned what luck would not "
            "explain: they are examples of how to plug one in, not money machines."
        )
    return (
        f"After costs of {costs_bps:g} basis points {len(real)} of {len(found)} strategies earned more than luck "
        f"explains ({', '.join(real)}); what is left out (financing, borrowing, survivorship) is not in it."
    )
