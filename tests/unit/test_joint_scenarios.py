"""Joint scenarios and their conditioning: what was supposed happens, the others follow, nothing else moves."""

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import LEVELS
from htfi.forecasting.joint.scenarios import (
    Shock,
    basket_shock,
    condition,
    draw_scores,
    factor_shock,
    learn_dependence,
    series_shock,
    to_returns,
)
from htfi.forecasting.shapes import student_quantiles

NUM = 5
QUANTILES = student_quantiles(LEVELS, 5.0) * np.array([[0.01], [0.02], [0.005], [0.03], [0.01]])


def dependence(correlation: float = 0.64, num: int = 500, seed: int = 1):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((num, 1)) * np.sqrt(correlation)
    return learn_dependence(common + np.sqrt(1.0 - correlation) * rng.standard_normal((num, NUM)), rng)


DEPENDENCE = dependence()


def test_shocked_series_moves_by_what_was_supposed_in_every_scenario():
    shock = series_shock([1, 3], np.array([[-0.05, 0.02], [0.01, 0.0]]), QUANTILES, LEVELS)
    returns = to_returns(condition(DEPENDENCE, DEPENDENCE.scores, shock), QUANTILES, LEVELS)
    assert returns.shape == (2, 500, NUM)
    for case, moves in enumerate([(-0.05, 0.02), (0.01, 0.0)]):
        assert returns[case, :, 1] == pytest.approx(moves[0], abs=1e-7)
        assert returns[case, :, 3] == pytest.approx(moves[1], abs=1e-7)


def test_the_others_follow_by_their_correlation_and_vary_less():
    rng = np.random.default_rng(2)
    scores = DEPENDENCE.factors.draw(20_000, rng)
    directions = np.zeros((1, NUM))
    directions[0, 0] = 1.0
    found = condition(DEPENDENCE, scores, Shock(directions, np.array([[-3.0]])))[0]
    correlation = DEPENDENCE.factors.correlation()[0]
    assert found[:, 1:].mean(axis=0) == pytest.approx(-3.0 * correlation[1:], abs=0.03)  # 4 deviations
    assert found[:, 1:].var(axis=0) == pytest.approx(1.0 - correlation[1:] ** 2, abs=0.03)


def test_moves_in_sigmas_are_of_todays_forecast():
    sigma = (QUANTILES[2, LEVELS.index(0.95)] - QUANTILES[2, LEVELS.index(0.05)]) / 3.2897072539029444
    given = series_shock([2], np.array([[-3.0]]), QUANTILES, LEVELS, in_sigmas=True)
    same = series_shock([2], np.array([[-3.0 * sigma]]), QUANTILES, LEVELS)
    assert given.targets == pytest.approx(same.targets)


def test_no_shock_leaves_the_median_where_it_is():
    shock = series_shock([0], np.array([[0.0]]), QUANTILES, LEVELS)
    changed = condition(DEPENDENCE, DEPENDENCE.scores, shock)[0]
    assert np.abs(np.median(changed[:, 1:], axis=0)).max() < 0.15


def test_student_conditioning_makes_a_large_shock_widen_the_rest_and_a_small_one_narrow_it():
    shock = series_shock([0], np.array([[-0.08], [0.0]]), QUANTILES, LEVELS)
    gaussian = condition(DEPENDENCE, DEPENDENCE.scores, shock)
    student = condition(DEPENDENCE, DEPENDENCE.scores, shock, 4.0)
    ratio = (student.std(axis=1) / np.maximum(gaussian.std(axis=1), 1e-12))[:, 1:]
    assert (ratio[0] > 1.3).all()
    assert (ratio[1] < 1.0).all()


def test_basket_moves_by_what_was_supposed_on_average():
    weights = np.full(NUM, 1.0 / NUM)
    moves = np.array([-0.06, 0.0, 0.03])
    shock = basket_shock(DEPENDENCE, DEPENDENCE.scores, weights, moves, QUANTILES, LEVELS)
    returns = to_returns(condition(DEPENDENCE, DEPENDENCE.scores, shock), QUANTILES, LEVELS)
    assert (returns @ weights).mean(axis=1) == pytest.approx(moves, abs=1e-5)
    assert (returns @ weights).std(axis=1).max() < 0.01


def test_factor_that_falls_takes_all_with_it():
    shock = factor_shock(DEPENDENCE, 0, np.array([-3.0, 3.0]))
    means = to_returns(condition(DEPENDENCE, DEPENDENCE.scores, shock), QUANTILES, LEVELS).mean(axis=1)
    assert (means[0] < -0.002).all()
    assert (means[1] > 0.002).all()
    with pytest.raises(InvalidInput, match="factors 0 to"):
        factor_shock(DEPENDENCE, 99, np.array([1.0]))


def test_one_series_alone_has_scenarios_of_its_own_forecast():
    alone = learn_dependence(np.random.default_rng(3).standard_normal((500, 1)), np.random.default_rng(4))
    returns = to_returns(alone.scores, QUANTILES[:1], LEVELS)[:, 0]
    assert np.quantile(returns, LEVELS, method="hazen") == pytest.approx(QUANTILES[0], abs=3e-4)
    shock = series_shock([0], np.array([[-0.03]]), QUANTILES[:1], LEVELS)
    assert to_returns(condition(alone, alone.scores, shock), QUANTILES[:1], LEVELS) == pytest.approx(
        -0.03, abs=1e-9
    )


def test_without_any_past_scenarios_are_drawn():
    fresh = learn_dependence(np.full((0, NUM), np.nan), np.random.default_rng(5))
    assert fresh.scores.shape == (20, NUM)
    assert np.isfinite(fresh.scores).all()


def test_constant_series_stays_where_it_is():
    quantiles = QUANTILES.copy()
    quantiles[4] = 0.0
    returns = to_returns(DEPENDENCE.scores, quantiles, LEVELS)
    assert (returns[:, 4] == 0.0).all()
    assert np.isfinite(
        condition(DEPENDENCE, DEPENDENCE.scores, series_shock([4], np.array([[-0.1]]), quantiles, LEVELS))
    ).all()


@pytest.mark.parametrize(
    ("places", "moves"),
    [([], np.zeros((1, 0))), ([0, 0], np.zeros((1, 2))), ([0], np.zeros(1)), ([0], np.array([[np.nan]]))],
)
def test_shock_that_makes_no_sense_is_refused(places: list[int], moves: np.ndarray):
    with pytest.raises(InvalidInput):
        series_shock(places, moves, QUANTILES, LEVELS)


def test_basket_without_weight_is_refused():
    with pytest.raises(InvalidInput, match="weights"):
        basket_shock(DEPENDENCE, DEPENDENCE.scores, np.zeros(NUM), np.array([-0.1]), QUANTILES, LEVELS)


def test_draws_repeat_with_their_seed():
    first = draw_scores(DEPENDENCE, 101, np.random.default_rng(6), 4.0)
    again = draw_scores(DEPENDENCE, 101, np.random.default_rng(6), 4.0)
    assert first.shape == (101, NUM)
    assert (first == again).all()
