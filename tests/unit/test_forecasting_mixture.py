"""Quantiles from paths and laws, units of volatility, levels of foreign models: all pure."""

import numpy as np
import pytest
from scipy import stats

from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import LEVELS
from htfi.forecasting.scaled_returns import (
    VolatilityUnits,
    ewma_units,
    interpolate_levels,
    long_memory_units,
    path_quantiles,
    sum_quantiles,
    weighted_quantiles,
)

CENTRES = np.linspace(-6.0, 6.0, 241)
NORMAL = stats.norm.pdf(CENTRES) / stats.norm.pdf(CENTRES).sum()


def test_one_bar_gives_the_laws_own_quantiles_at_todays_volatility() -> None:
    z, laws = np.empty((1, 1, 0)), NORMAL[None, None, None]
    found = path_quantiles(z, laws, CENTRES, np.array([[0.0004]]), ewma_units(), (1,), LEVELS)
    assert np.allclose(found[0, 0], 0.02 * stats.norm.ppf(LEVELS), atol=5e-5)


def test_several_bars_follow_the_recursion_along_each_path() -> None:
    rng = np.random.default_rng(1)
    z = rng.standard_normal((1, 4000, 4))
    laws = np.broadcast_to(NORMAL, (1, 4000, 1, 241))
    found = path_quantiles(z, laws, CENTRES, np.array([[1.0]]), ewma_units(), (5,), LEVELS)
    variance, total = np.ones(200_000), np.zeros(200_000)
    for _ in range(5):
        moves = np.sqrt(variance) * rng.standard_normal(200_000)
        total, variance = total + moves, 0.94 * variance + 0.06 * moves * moves
    assert np.allclose(
        found[0, 0], np.quantile(total, LEVELS), atol=0.15
    )  # 4000 paths: the median errs by .045


def test_weighted_quantiles_rise_and_meet_plain_ones() -> None:
    values = np.random.default_rng(2).standard_normal((3, 501))
    found = weighted_quantiles(values, np.full((3, 501), 1 / 501), LEVELS)
    assert (np.diff(found, axis=1) >= 0).all()
    assert np.allclose(found, np.quantile(values, LEVELS, axis=1, method="hazen").T)


def test_weights_of_zero_change_nothing() -> None:
    values, weights = np.array([[1.0, 2.0, 9.0, 3.0]]), np.array([[0.3, 0.4, 0.0, 0.3]])
    assert weighted_quantiles(values, weights, (0.5,))[0, 0] == pytest.approx(2.0)


def test_long_memory_shares_sum_to_one_and_keep_a_steady_volatility() -> None:
    units = long_memory_units("ranges")
    assert units.shares.sum() == pytest.approx(1.0)
    steady = np.full((1, len(units.gains)), 4.0)
    assert units.sigma(steady)[0] == pytest.approx(2.0)
    assert np.allclose(units.advance(steady, np.array([2.0])), steady)


def test_a_component_is_a_plain_mean_until_its_memory_is_full() -> None:
    units, state = VolatilityUnits(np.array([0.01]), np.array([1.0])), np.zeros((1, 1))
    for age, variance in enumerate((1.0, 3.0, 5.0)):
        state = units.update(state, np.array([variance]), np.array([age]))
    assert state[0, 0] == pytest.approx(3.0)


def test_gaussian_bars_sum_to_a_gaussian_with_their_drift() -> None:
    levels = (0.1, 0.5, 0.9)
    by_bar = np.array([[0.1 + sigma * stats.norm.ppf(levels) for sigma in (1.0, 2.0, 2.0)]])
    found = sum_quantiles(by_bar, 1, (1, 3))
    assert np.allclose(found[0, 0], by_bar[0, 0])
    assert np.allclose(found[0, 1], 0.3 + 3.0 * stats.norm.ppf(levels))


def test_levels_between_and_beyond_are_a_students_where_the_model_is() -> None:
    stated = tuple(np.arange(1, 10) / 10)
    found = interpolate_levels(stats.t.ppf(stated, 5.0)[None], stated, LEVELS)
    assert np.allclose(found[0], stats.t.ppf(LEVELS, 5.0), atol=1e-6)


def test_stated_levels_come_back_as_they_were_and_crossed_ones_in_order() -> None:
    values = np.array([[0.3, -0.1, 0.0, 0.2]])
    found = interpolate_levels(values, (0.2, 0.4, 0.5, 0.8), (0.2, 0.4, 0.5, 0.8))
    assert np.allclose(found, [[-0.1, 0.0, 0.2, 0.3]])


@pytest.mark.parametrize("stated", [(0.1, 0.9), (0.5, 0.6, 0.7), (0.9, 0.5, 0.1), (0.1, 0.5, 1.0)])
def test_levels_that_do_not_surround_the_median_are_refused(stated: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="levels"):
        interpolate_levels(np.zeros((1, len(stated))), stated, LEVELS)
