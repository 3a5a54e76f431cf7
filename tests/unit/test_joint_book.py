"""A book's risk: right for a Gaussian, additive over positions, ordered, and clear about bad input."""

from statistics import NormalDist

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.forecasting.joint.portfolio import make_portfolio, portfolio_profits, portfolio_risk, tail_risk


def gaussian(num: int, num_series: int, seed: int) -> np.ndarray:
    return 0.01 * np.random.default_rng(seed).standard_normal((num, num_series))


def test_profit_is_the_sum_of_simple_returns():
    book = make_portfolio({"A/1d": 100.0, "B/1d": -50.0})
    returns = np.log(np.array([[1.1, 0.9], [1.0, 1.2]]))
    assert portfolio_profits(book, returns) == pytest.approx([15.0, -10.0])


def test_risk_of_a_gaussian_book_is_the_textbooks():
    book = make_portfolio({"A": 3.0, "B": -4.0})
    found = portfolio_risk(book, gaussian(400_000, 2, 1), 0.99)
    normal = NormalDist()
    sigma = 0.05  # √(3² + 4²)·1%
    assert found.value_at_risk == pytest.approx(sigma * normal.inv_cdf(0.99), rel=0.02)
    assert found.expected_shortfall == pytest.approx(
        sigma * normal.pdf(normal.inv_cdf(0.99)) / 0.01, rel=0.02
    )
    assert found.component_es / found.expected_shortfall == pytest.approx([9 / 25, 16 / 25], abs=0.02)


def test_components_predict_a_small_change_of_the_book():
    returns = gaussian(200_000, 3, 2)
    before = portfolio_risk(make_portfolio({"A": 1.0, "B": 1.0, "C": 0.1}), returns, 0.95)
    after = portfolio_risk(make_portfolio({"A": 1.0, "B": 1.0, "C": 0.2}), returns, 0.95)
    predicted = before.expected_shortfall + before.component_es[2]
    assert after.expected_shortfall == pytest.approx(predicted, rel=0.02)


def test_single_scenario_and_constant_losses_are_their_own_risk():
    found = portfolio_risk(make_portfolio({"A": 2.0}), np.log(np.array([[0.9]])), 0.99)
    assert (found.value_at_risk, found.expected_shortfall) == pytest.approx((0.2, 0.2))
    still = portfolio_risk(make_portfolio({"A": 2.0, "B": 1.0}), np.zeros((50, 2)), 0.99)
    assert still.value_at_risk == still.expected_shortfall == 0.0
    assert still.component_es.tolist() == [0.0, 0.0]


def test_hedged_book_has_no_risk():
    one = gaussian(500, 1, 3)
    found = portfolio_risk(make_portfolio({"A": 1.0, "B": -1.0}), np.concatenate([one, one], axis=1), 0.99)
    assert found.value_at_risk == pytest.approx(0.0, abs=1e-15)


def test_tail_takes_the_last_scenario_in_part():
    rising = np.arange(1.0, 11.0)
    found = tail_risk(rising, 0.85)  # one and a half of ten: 10 and half of 9
    assert found.expected_shortfall == pytest.approx((10.0 + 0.5 * 9.0) / 1.5)
    assert found.value_at_risk == pytest.approx(9.0)


@pytest.mark.parametrize("level", [0.2, 1.0, float("nan")])
def test_level_that_is_none_is_refused(level: float):
    with pytest.raises(InvalidInput, match="level"):
        portfolio_risk(make_portfolio({"A": 1.0}), np.zeros((5, 1)), level)


@pytest.mark.parametrize(
    "returns", [np.zeros((5, 2)), np.zeros((0, 1)), np.full((5, 1), np.nan), np.zeros(5)]
)
def test_scenarios_that_do_not_fit_are_refused(returns: np.ndarray):
    with pytest.raises(InvalidInput):
        portfolio_risk(make_portfolio({"A": 1.0}), returns)


@pytest.mark.parametrize("positions", [{}, {"A": float("nan")}, {"A": float("inf")}])
def test_book_without_sense_is_refused(positions: dict[str, float]):
    with pytest.raises(InvalidInput, match="finite notional"):
        make_portfolio(positions)
