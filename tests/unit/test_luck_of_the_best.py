"""Sharpe ratios deflated for luck, and the probability of overfitting: the papers' numbers, and noise."""

import math

import numpy as np
import pytest
from scipy import stats

from htfi.domain.errors import InvalidInput
from htfi.forecasting.evaluation.overfitting import (
    ReturnMoments,
    backtest_overfitting,
    deflated_sharpe,
    expected_max_sharpe,
    probabilistic_sharpe,
    return_moments,
)


def test_moments_are_scipys_with_kurtosis_as_it_is():
    returns = np.random.default_rng(1).standard_t(5.0, 500) * 0.01 + 0.001
    found = return_moments(returns)
    assert found.sharpe == pytest.approx(returns.mean() / returns.std())
    assert found.skewness == pytest.approx(stats.skew(returns))
    assert found.kurtosis == pytest.approx(stats.kurtosis(returns, fisher=False))


def test_deflated_ratio_is_that_of_the_papers_example():
    """Bailey and López de Prado 2014, "A numerical example": 2.5 a year, 100 trials, V = ½ a year, T = 1,250."""
    daily = ReturnMoments(1250, 2.5 / math.sqrt(250.0), -3.0, 10.0)
    assert expected_max_sharpe(0.5 / 250.0, 100) == pytest.approx(0.1132, abs=1e-4)
    assert deflated_sharpe(daily, 0.5 / 250.0, 100) == pytest.approx(0.9004, abs=1e-4)
    assert deflated_sharpe(daily, 0.5 / 250.0, 46) == pytest.approx(0.9505, abs=2e-3)


def test_single_trial_is_not_deflated():
    daily = return_moments(np.random.default_rng(2).standard_normal(300) + 0.1)
    assert deflated_sharpe(daily, 1.0, 1) == probabilistic_sharpe(daily)


def test_expected_luck_is_what_simulation_shows():
    best = np.random.default_rng(3).standard_normal((4000, 50)).max(axis=1).mean()
    assert expected_max_sharpe(1.0, 50) == pytest.approx(best, abs=0.05)


def test_returns_that_never_vary_are_worth_nothing():
    assert return_moments(np.full(50, 0.01)).sharpe == 0.0
    assert probabilistic_sharpe(return_moments(np.zeros(50))) == pytest.approx(0.5)


@pytest.mark.parametrize("returns", [np.zeros(1), np.array([0.1, np.nan])])
def test_returns_that_cannot_be_judged_are_refused(returns: np.ndarray):
    with pytest.raises(InvalidInput):
        return_moments(returns)


def test_noise_is_overfitted_half_of_the_time():
    """The mean of 40 has a deviation of about 0.03."""
    rng = np.random.default_rng(4)
    found = [backtest_overfitting(rng.standard_normal((240, 20)), 8).probability for _ in range(40)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.12)


def test_a_rule_that_is_truly_better_is_no_overfitting():
    returns = np.random.default_rng(5).standard_normal((1000, 20))
    returns[:, 7] += 0.4
    found = backtest_overfitting(returns, 10)
    assert found.probability == 0.0
    assert (found.logits > 0.0).all()


def test_a_rule_that_only_fits_one_half_is():
    returns = 0.1 * np.random.default_rng(6).standard_normal((400, 6))
    for block in range(4):
        returns[block * 100 : (block + 1) * 100, block] += 1.0  # each is best in its own quarter
        returns[block * 100 : (block + 1) * 100, (block + 1) % 4] -= 1.0
    assert backtest_overfitting(returns, 4).probability > 0.6


def test_splits_are_all_halves_and_logits_symmetric_about_the_middle():
    found = backtest_overfitting(np.random.default_rng(7).standard_normal((200, 5)), 10)
    assert len(found.logits) == math.comb(10, 5)
    assert np.isfinite(found.logits).all()


def test_equal_trials_give_one_half():
    column = np.random.default_rng(8).standard_normal((100, 1))
    assert backtest_overfitting(np.repeat(column, 4, axis=1), 4).probability == 0.5


@pytest.mark.parametrize(
    ("shape", "num_blocks"), [((100, 1), 4), ((100, 3), 5), ((6, 3), 4), ((100, 3), 40), ((100, 3), 0)]
)
def test_too_little_to_split_is_refused(shape: tuple[int, int], num_blocks: int):
    with pytest.raises(InvalidInput):
        backtest_overfitting(np.zeros(shape), num_blocks)
