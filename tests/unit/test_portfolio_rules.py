"""Trading rules: executed a bar later, costs paid, no look ahead; and how much of the best is luck."""

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi_eval.eval.portfolio.rules import configurations, judge_family, random_rules, try_rules
from htfi_eval.eval.portfolio.walk import carried_log_closes
from htfi_eval.eval.prices import Prices


def prices_of(log_close: np.ndarray, log_open: np.ndarray | None = None) -> Prices:
    close = np.exp(log_close)
    opens = np.exp(log_close if log_open is None else log_open)
    ends_ns = (np.arange(len(close)) + 1) * NS_PER_DAY
    names = tuple(f"S{n}" for n in range(close.shape[1]))
    return Prices("made", names, "1d", ends_ns, ends_ns, opens, close, close, close)


def walk(num: int, num_series: int, seed: int) -> np.ndarray:
    return np.cumsum(0.01 * np.random.default_rng(seed).standard_normal((num, num_series)), axis=0)


def test_rule_cannot_earn_the_move_it_reacts_to():
    """Every day one of two series jumps by lot: momentum over a day would win had it traded at the close it saw."""
    rng = np.random.default_rng(1)
    moves = 0.02 * rng.standard_normal((900, 4))
    found = {result.name: result for result in try_rules(prices_of(np.cumsum(moves, axis=0)), 300, 0.0)}
    assert abs(found["reversal 1/1"].annual_sharpe) < 2.5  # 4 deviations of a worthless rule over 598 days


def test_rule_earns_from_the_next_open_to_the_one_after():
    """Prices move overnight only, and the same way for two nights: who buys at the first open has the second night."""
    rng = np.random.default_rng(2)
    pairs = np.repeat(0.02 * rng.standard_normal((400, 6)), 2, axis=0)
    close = np.cumsum(pairs, axis=0)
    opens = close.copy()  # each day opens where it closes: all of the move is overnight
    found = {result.name: result for result in try_rules(prices_of(close, opens), 300, 0.0)}
    # a signal of day t buys at the open of t+1 and is paid by the night to t+2, which is another pair's half the time
    assert found["reversal 1/1"].returns.std() > 0.0
    assert abs(found["reversal 1/1"].annual_sharpe) < 3.5


def test_true_trend_is_found_and_costs_are_paid():
    trend = walk(1000, 6, 3) + np.arange(1000)[:, None] * np.linspace(-0.004, 0.004, 6)
    free = {result.name: result for result in try_rules(prices_of(trend), 300, 0.0)}
    paid = {result.name: result for result in try_rules(prices_of(trend), 300, 50.0)}
    assert free["momentum 252/21"].annual_sharpe > 3.0
    assert all(paid[name].returns.sum() < free[name].returns.sum() for name in free)
    family = judge_family(
        [free["momentum 252/21"], *random_rules(prices_of(walk(1000, 6, 3)), 300, 0.0, 1)], 0
    )
    assert family.best.name == "momentum 252/21"
    assert family.deflated(family.best) > 0.95


def test_future_prices_change_no_earlier_return():
    path = walk(900, 5, 4)
    later = path.copy()
    later[700:] += 0.5 * np.sin(np.arange(200))[:, None]
    before, after = (try_rules(prices_of(each), 300, 5.0) for each in (path, later))
    for one, other in nonempty(zip(before, after, strict=True)):
        assert (one.returns[: 700 - 300 - 2] == other.returns[: 700 - 300 - 2]).all(), one.name


def test_best_of_worthless_rules_looks_good_alone_and_is_luck_once_trials_count():
    family = judge_family(random_rules(prices_of(walk(1500, 20, 5)), 300, 0.0, 6), 0)
    assert family.probabilistic(family.best) > 0.9
    assert family.deflated(family.best) < 0.9
    assert family.num_trials == len(family.results)


def test_more_trials_deflate_more():
    results = random_rules(prices_of(walk(800, 8, 7)), 300, 0.0, 8)
    few, many = judge_family(results, 0), judge_family(results, 10_000)
    assert many.deflated(many.best) < few.deflated(few.best)
    assert many.expected_max_annual_sharpe() > few.expected_max_annual_sharpe()


def test_every_configuration_is_named_once():
    settings = [tuple(sorted(each.items())) for _, _, each in configurations()]
    assert len(settings) == len(set(settings)) == 72


def test_constant_prices_and_gaps_give_finite_returns():
    path = walk(700, 4, 9)
    path[:, 1] = 0.0
    path[350:400, 2] = np.nan
    path[:200, 3] = np.nan
    for result in nonempty(try_rules(prices_of(path), 300, 5.0)):
        assert np.isfinite(result.returns).all(), result.name


@pytest.mark.parametrize("shape", [(300, 4), (900, 1)])
def test_too_little_data_is_refused(shape: tuple[int, int]):
    with pytest.raises(InvalidInput, match="rules need"):
        try_rules(prices_of(walk(*shape, 10)), 100, 5.0)


def test_missing_closes_carry_the_last_one_and_a_late_series_stands_still_before():
    close = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, 3.0]])
    assert np.exp(carried_log_closes(close)) == pytest.approx(np.array([[2.0, 1.0], [2.0, 1.0], [2.0, 3.0]]))
