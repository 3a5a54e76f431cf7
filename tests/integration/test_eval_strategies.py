"""`htfi eval strategies` on bars of one's own: a strategy that knows nothing earns nothing, and the page says so."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.evaluation.overfitting import return_moments
from htfi_eval.eval.portfolio.rules import RuleResult
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.strategies.command import command
from htfi_eval.eval.strategies.walk import (
    DailyOutlook,
    StrategyParameters,
    choose_by_year,
    try_strategies,
)
from htfi_eval.eval.trials import list_trials

NUM_DAYS = 850


def prices_of(moves: np.ndarray) -> Prices:
    close = 100.0 * np.exp(np.cumsum(moves, axis=0))
    ends_ns = (np.arange(len(close)) + 1) * NS_PER_DAY
    names = tuple(f"S{n}" for n in range(close.shape[1]))
    return Prices("made", names, "1d", ends_ns, ends_ns, close, close, close, close)


def outlook_of(moves: np.ndarray, sigma: float = 0.01) -> DailyOutlook:
    outcomes = sigma * np.random.default_rng(0).standard_normal(200)
    return DailyOutlook([[outcomes] * moves.shape[1] for _ in moves])


def tried(moves: np.ndarray, costs_bps: float = 0.0) -> dict[str, RuleResult]:
    few: StrategyParameters = {"trend": ((63,), (5,)), "reversal": ((1,), (1,))}
    found = try_strategies(prices_of(moves), outlook_of(moves), 260, costs_bps, parameters=few)
    return {one.name: one for one in found}


def test_a_trend_is_found_where_there_is_one_and_costs_are_paid():
    rng = np.random.default_rng(1)
    moves = 0.01 * rng.standard_normal((NUM_DAYS, 3)) + np.array([0.003, -0.003, 0.003])
    free, paid = tried(moves), tried(moves, 20.0)
    assert free["trend 63/5"].moments.sharpe * 252**0.5 > 2.0
    assert paid["trend 63/5"].returns.sum() < free["trend 63/5"].returns.sum()
    assert (paid["trend 63/5"].before_costs == free["trend 63/5"].returns).all()


def test_reversal_earns_where_each_day_takes_half_of_the_last_back():
    rng = np.random.default_rng(2)
    shocks = 0.01 * rng.standard_normal((NUM_DAYS + 2, 6))
    moves = shocks[2:] - 0.5 * shocks[:-2]  # two days later: it trades at the next open
    assert tried(moves)["reversal 1/1"].moments.sharpe * 252**0.5 > 2.0


def test_future_prices_change_no_earlier_return():
    moves = 0.01 * np.random.default_rng(3).standard_normal((NUM_DAYS, 3))
    later = moves.copy()
    later[600:] *= -2.0
    one, other = tried(moves), tried(later)
    assert set(one) == {"trend 63/5", "reversal 1/1"}
    for name in one:
        assert (one[name].returns[: 600 - 260 - 2] == other[name].returns[: 600 - 260 - 2]).all(), name


def test_parameters_of_a_year_are_chosen_by_purged_days_before_it():
    years = ["2001"] * 100 + ["2002"] * 100 + ["2003"] * 100
    steady = np.full(300, 0.001) + 0.001 * np.tile([1.0, -1.0], 150)
    lately = -steady
    lately[185:200] += 5.0  # within the 21 days and one whose positions may reach into 2003
    trials = [
        RuleResult(
            f"trend {lookback}/21", {"rebalance_bars": 21}, returns, returns, 0.0, return_moments(returns)
        )
        for lookback, returns in ((21, steady), (63, lately))
    ]
    chosen = choose_by_year("trend", trials, years)
    assert chosen.chosen == {"2003": "trend 21/21"}
    assert (chosen.returns == steady[200:]).all()
    lately[20:170] += 0.02
    assert choose_by_year("trend", trials, years).chosen == {"2003": "trend 63/21"}


def test_the_page_says_that_random_walks_make_no_money(tmp_path: Path):
    rng = np.random.default_rng(4)
    days = [str(day) for day in np.busday_offset(np.datetime64("2015-01-05"), np.arange(1_000))]
    lines = ["date,symbol,open,high,low,close"]
    closes = 100.0 * np.exp(np.cumsum(0.01 * rng.standard_normal((1_000, 3)), axis=0))
    for day, row in zip(days, closes.tolist(), strict=True):
        for n, close in enumerate(row):
            lines.append(f"{day},S{n},{close:.4f},{close * 1.01:.4f},{close * 0.99:.4f},{close:.4f}")
    (tmp_path / "bars.csv").write_text("\n".join(lines) + "\n")
    words = [
        tmp_path / "bars.csv",
        "--json",
        tmp_path / "s.json",
        "--html",
        tmp_path / "s.html",
        "--trials",
        tmp_path,
    ]
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "s.json").read_text())
    assert told["metrics"]["bars_trend_deflated"] < 0.95
    assert "not money machines" in told["lead"]
    assert "not money machines" in (tmp_path / "s.html").read_text()
    assert len(list_trials(tmp_path)) == 21


def test_too_few_days_are_one_line():
    moves = np.zeros((300, 3))
    with pytest.raises(InvalidInput, match="made has 300 days: strategies need 764"):
        try_strategies(prices_of(moves), outlook_of(moves), 260, 0.0)
