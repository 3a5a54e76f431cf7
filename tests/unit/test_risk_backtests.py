"""Backtests of risk: known values, closed forms against scipy, and false alarms as stated."""

import math

import numpy as np
import pytest
from scipy import stats

from htfi.domain.errors import InvalidInput
from htfi.forecasting.evaluation.backtests import (
    TrafficLight,
    acerbi_szekely_1,
    acerbi_szekely_2,
    binomial_cdf,
    chi_square_tail,
    christoffersen,
    christoffersen_independence,
    exceedances,
    fissler_ziegel,
    kupiec,
    simulated_results,
    traffic_light,
)

VAR99, ES99 = float(stats.norm.ppf(0.99)), float(stats.norm.pdf(stats.norm.ppf(0.99)) / 0.01)


def misses(num: int, hits: int) -> np.ndarray:
    found = np.zeros(num, np.bool_)
    found[np.linspace(0, num - 1, hits).astype(int)] = True
    return found


def test_kupiec_has_the_value_of_the_formula():
    found = kupiec(misses(250, 8), 0.01)
    expected = -2.0 * (
        8 * math.log(0.01) + 242 * math.log(0.99) - 8 * math.log(8 / 250) - 242 * math.log(242 / 250)
    )
    assert found.statistic == pytest.approx(expected)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 1))


@pytest.mark.parametrize(
    ("num", "tail", "first", "last"), [(255, 0.01, 0, 6), (510, 0.01, 2, 10), (1000, 0.05, 38, 64)]
)
def test_kupiec_accepts_between_the_papers_bounds(num: int, tail: float, first: int, last: int):
    """Kupiec 1995, table 3: non-rejection regions at 95%; the lower bound 0 is exclusive there for 255 days."""
    accepted = [hits for hits in range(num // 5) if kupiec(misses(num, hits), tail).p_value > 0.05]
    assert accepted[-1] == last
    assert accepted[0] == max(first, 1) if num == 255 else accepted[0] == first


def test_clustered_misses_alarm_independence_and_spread_ones_do_not():
    spread, clustered = misses(1000, 20), np.zeros(1000, np.bool_)
    clustered[500:520] = True
    assert christoffersen_independence(spread).p_value > 0.1
    assert christoffersen_independence(clustered).p_value < 1e-6
    assert christoffersen(clustered, 0.02).p_value < 1e-6
    assert christoffersen(spread, 0.02).p_value > 0.1


@pytest.mark.parametrize("freedom", [1, 2])
def test_closed_forms_are_scipys_chi_square(freedom: int):
    for value in (0.0, 0.1, 1.0, 3.84, 10.0, 50.0):
        assert chi_square_tail(value, freedom) == pytest.approx(stats.chi2.sf(value, freedom), rel=1e-12)
    with pytest.raises(InvalidInput):
        chi_square_tail(1.0, 3)


def test_binomial_and_traffic_light_are_basels():
    assert binomial_cdf(4, 250, 0.01) == pytest.approx(stats.binom.cdf(4, 250, 0.01))
    lights = [traffic_light(misses(250, hits), 0.01) for hits in (4, 5, 9, 10)]
    assert lights == [TrafficLight.GREEN, TrafficLight.YELLOW, TrafficLight.YELLOW, TrafficLight.RED]


def test_shortfall_tests_are_near_zero_for_what_is_right_and_negative_for_what_is_small():
    rng = np.random.default_rng(1)
    profit, ones = rng.standard_normal(200_000), np.ones(200_000)
    assert acerbi_szekely_1(profit, VAR99 * ones, ES99 * ones) == pytest.approx(0.0, abs=0.02)
    assert acerbi_szekely_2(profit, VAR99 * ones, ES99 * ones, 0.01) == pytest.approx(0.0, abs=0.1)
    wider = 1.5 * profit
    assert acerbi_szekely_2(wider, VAR99 * ones, ES99 * ones, 0.01) < -3.0
    assert acerbi_szekely_1(wider, VAR99 * ones, ES99 * ones) < -0.1


def test_simulated_p_values_alarm_for_heavy_tails_under_a_gaussian_forecast():
    rng = np.random.default_rng(2)
    ones = np.ones(1000)
    heavy = rng.standard_t(3.0, 1000)
    draws = rng.standard_normal((500, 1000))
    z1, z2 = simulated_results(heavy, VAR99 * ones, ES99 * ones, 0.01, draws)
    assert z1.p_value < 0.01
    assert z2.p_value < 0.01


def test_no_test_alarms_more_often_than_it_says_when_the_forecast_is_right():
    """200 right histories of 500 days at 5%: a share above 11% where 5% is stated has a chance below 1 in 1,000."""
    rng = np.random.default_rng(3)
    var, shortfall = np.full(500, 1.6449), np.full(500, 2.0627)
    draws = rng.standard_normal((400, 500))
    alarms = np.zeros(4)
    for _ in range(200):
        profit = rng.standard_normal(500)
        missed = exceedances(profit, var)
        z1, z2 = simulated_results(profit, var, shortfall, 0.05, draws)
        tests = (kupiec(missed, 0.05), christoffersen(missed, 0.05), z1, z2)
        alarms += [test.p_value < 0.05 for test in tests]
    assert (alarms / 200 < 0.11).all(), alarms / 200


def test_loss_of_the_true_pair_is_least():
    rng = np.random.default_rng(4)
    profit, ones = rng.standard_normal(400_000), np.ones(400_000)
    right = fissler_ziegel(profit, VAR99 * ones, ES99 * ones, 0.01).mean()
    for var, shortfall in ((0.8, 1.0), (1.2, 1.2), (1.0, 0.8), (1.0, 1.3)):
        assert right < fissler_ziegel(profit, var * VAR99 * ones, shortfall * ES99 * ones, 0.01).mean()


def test_nothing_to_test_gives_no_p_value_and_no_crash():
    none, empty = np.zeros(0), np.zeros(0, np.bool_)
    assert math.isnan(kupiec(empty, 0.01).p_value)
    assert math.isnan(christoffersen(empty, 0.01).p_value)
    assert math.isnan(christoffersen_independence(empty[:1]).p_value)
    assert math.isnan(acerbi_szekely_2(none, none, none, 0.01))
    assert math.isnan(acerbi_szekely_1(np.ones(5), np.ones(5), np.ones(5)))
    assert traffic_light(empty, 0.01) is TrafficLight.GREEN
    assert kupiec(np.zeros(10, np.bool_), 0.01).p_value > 0.5
    assert kupiec(np.ones(10, np.bool_), 0.01).p_value < 1e-9
