"""The statistics behind the stylised facts give what theory says on processes whose answer is known."""

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput, ShapeMismatch
from stylised_facts import (
    comovement,
    correlation,
    hill_index,
    stylised_facts,
    volume_volatility,
)


def test_white_noise_has_no_facts():
    rng = np.random.default_rng(1)
    facts = stylised_facts(rng.standard_normal((4000, 50)))
    # each mean over 50 series of 4000 bars has a standard error below 0.0023; 0.012 is five of them
    for name in ("return_acf_1", "return_acf_2_to_10", "abs_acf_1", "abs_acf_20", "leverage"):
        assert abs(np.mean(getattr(facts, name))) < 0.012, name
    assert abs(np.mean(facts.kurtosis)) < 0.06
    assert np.mean(facts.deviation) == pytest.approx(1.0, abs=0.01)


def test_autocorrelation_of_an_autoregression_is_its_coefficient():
    rng = np.random.default_rng(2)
    r = rng.standard_normal((20_000, 4))
    for t in range(1, len(r)):
        r[t] += 0.4 * r[t - 1]
    assert stylised_facts(r).return_acf_1 == pytest.approx(0.4, abs=0.04)


def test_hill_index_of_a_pareto_tail_is_its_exponent():
    rng = np.random.default_rng(3)
    for index in (2.0, 4.0):
        assert hill_index(rng.pareto(index, (100_000, 3)) + 1.0, 0.02) == pytest.approx(index, rel=0.12)


def test_kurtosis_of_laplace_noise_falls_with_the_horizon():
    facts = stylised_facts(np.random.default_rng(4).laplace(size=(200_000, 2)))
    assert facts.kurtosis == pytest.approx(3.0, abs=0.3)
    assert facts.kurtosis_of_5 == pytest.approx(0.6, abs=0.15)  # of a sum of n: that of one, over n


def test_leverage_is_negative_where_falls_raise_volatility():
    rng = np.random.default_rng(5)
    z = rng.standard_normal((5000, 20))
    sigma = np.ones_like(z)
    sigma[1:] = np.exp(-0.3 * z[:-1])
    assert (stylised_facts(z * sigma).leverage < 0).all()
    assert (stylised_facts(-z * sigma).leverage > 0).all()


def test_comovement_sees_a_correlation_that_rises_with_volatility():
    rng = np.random.default_rng(6)
    stressed = (np.arange(6000) // 500) % 2 == 1
    weight = np.where(stressed, 0.9, 0.3)[:, None]
    noise = weight * rng.standard_normal((6000, 1)) + np.sqrt(1 - weight**2) * rng.standard_normal((6000, 8))
    seen = comovement(noise * np.where(stressed, 3.0, 1.0)[:, None])
    assert seen.in_calm == pytest.approx(0.09, abs=0.05)
    assert seen.in_stress == pytest.approx(0.81, abs=0.05)
    assert seen.in_calm < seen.overall < seen.in_stress


def test_volume_correlates_with_the_size_of_moves_and_a_trend_does_not_count():
    rng = np.random.default_rng(7)
    r = rng.standard_normal((3000, 5))
    trend = np.exp(np.linspace(0.0, 6.0, 3000))[:, None]
    assert (volume_volatility(r, trend * np.exp(np.abs(r))) > 0.8).all()
    assert np.abs(volume_volatility(r, trend * rng.lognormal(size=r.shape))).max() < 0.1


def test_one_series_may_come_as_a_vector():
    r = np.random.default_rng(8).standard_normal(500)
    facts = stylised_facts(r)
    assert facts.kurtosis.shape == (1,)
    assert facts.abs_acf_1[0] == pytest.approx(np.corrcoef(abs(r[1:]), abs(r[:-1]))[0, 1], rel=1e-9)
    assert correlation(r[:, None], -r[:, None])[0] == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("returns", "error"),
    [
        (np.zeros((500, 2)), InvalidInput),
        (np.full((500, 1), np.nan), InvalidInput),
        (np.ones(50), InvalidInput),
        (np.ones((200, 2, 2)), ShapeMismatch),
        (np.ones((200, 0)), ShapeMismatch),
    ],
)
def test_returns_without_facts_are_refused(returns, error):
    with pytest.raises(error):
        stylised_facts(returns)


def test_comovement_of_one_series_is_refused():
    with pytest.raises(ShapeMismatch):
        comovement(np.random.default_rng(0).standard_normal(500))


def test_volumes_of_another_shape_are_refused():
    with pytest.raises(ShapeMismatch):
        volume_volatility(np.random.default_rng(0).standard_normal((500, 2)), np.ones((500, 3)))
