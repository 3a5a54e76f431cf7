"""Sizing: weights that grow capital under a forecast, within bounds on positions and on the book."""

from statistics import NormalDist

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.execution.config import TradingConfig
from htfi.execution.sizing import (
    SizingInput,
    book_shortfall,
    expected_shortfall,
    joint_outcomes,
    kelly_weight,
    outcomes_of,
    target_weights,
)

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
DAY = 1 / 252


def forecast(mean: float, sigma: float) -> np.ndarray:
    return outcomes_of(LEVELS, [mean + sigma * NormalDist().inv_cdf(level) for level in LEVELS])


def book(*weights: float, mean: float = 0.0005, sigma: float = 0.01) -> list[SizingInput]:
    return [SizingInput(f"S{place}", forecast(mean, sigma), DAY, held) for place, held in enumerate(weights)]


def test_kelly_weight_is_mean_over_variance_for_small_returns() -> None:
    returns = forecast(0.0003, 0.01)
    assert kelly_weight(returns) == pytest.approx(returns.mean() / returns.var(), rel=0.01)
    assert kelly_weight(-returns) == pytest.approx(-kelly_weight(returns), rel=0.02)


def test_kelly_weight_never_risks_ruin() -> None:
    returns = np.array([0.5, 0.5, 0.5, -0.4])
    weight = kelly_weight(returns)
    assert 1 + weight * returns.min() > 0
    grown = np.log1p(weight * returns).mean()
    assert grown > max(np.log1p(other * returns).mean() for other in (0.9 * weight, 1.1 * weight))


def test_no_edge_beyond_the_cost_takes_no_position() -> None:
    assert kelly_weight(forecast(-0.5 * 0.01**2, 0.01), cost=0.001) == 0.0
    weights = target_weights(book(0.0, mean=0.0001), TradingConfig(cost_bps=5.0))
    assert weights.tolist() == [0.0]


def test_position_within_the_band_of_the_cost_is_left() -> None:
    config = TradingConfig(max_weight=10.0, max_gross=10.0, max_shortfall=10.0, cost_bps=2.0)
    ideal = config.kelly_fraction * kelly_weight(forecast(0.0005, 0.01))
    near, far = target_weights(book(ideal * 1.05), config), target_weights(book(ideal * 5), config)
    assert near[0] == pytest.approx(ideal * 1.05)
    assert ideal < far[0] < ideal * 5


def test_shortfall_of_a_normal_forecast() -> None:
    sigma, level = 0.01, 0.975
    density = NormalDist().pdf(NormalDist().inv_cdf(level)) / (1 - level)
    assert expected_shortfall(forecast(0.0, sigma), level) == pytest.approx(sigma * density, rel=0.05)


def test_weights_keep_to_position_gross_and_shortfall() -> None:
    inputs = book(0.0, 0.0, 0.0, 0.0, mean=0.002)
    one = target_weights(inputs, TradingConfig(max_weight=0.2, max_gross=9.0, max_shortfall=1.0))
    assert one.tolist() == pytest.approx([0.2] * 4)
    gross = target_weights(inputs, TradingConfig(max_weight=0.5, max_gross=1.0, max_shortfall=1.0))
    assert gross.sum() == pytest.approx(1.0)
    config = TradingConfig(max_weight=0.5, max_gross=2.0, max_shortfall=0.01)
    tight = target_weights(inputs, config)
    assert book_shortfall(tight, inputs, config.shortfall_level) == pytest.approx(0.01)


def test_joint_scenarios_let_a_hedged_book_be_larger() -> None:
    rng = np.random.default_rng(3)
    market = 0.01 * rng.standard_normal(4_000)
    scenarios = np.column_stack((market, -market))
    weights = np.array([0.5, 0.5])
    inputs = [SizingInput("A", market, DAY), SizingInput("B", -market, DAY)]
    assert book_shortfall(weights, inputs, 0.975, scenarios) == pytest.approx(0.0, abs=1e-12)
    assert book_shortfall(weights, inputs, 0.975) > 0.02
    with pytest.raises(InvalidInput, match="as many series"):
        book_shortfall(weights, inputs, 0.975, scenarios[:, :1])


def hedged_pair(num: int = 400) -> tuple[list[SizingInput], np.ndarray]:
    """Two instruments whose surprises were opposite, but for a tenth of their own."""
    rng = np.random.default_rng(4)
    market, own = rng.standard_normal(num), rng.standard_normal((num, 2))
    scores = np.column_stack((market, -market)) + 0.1 * own
    return [SizingInput(name, forecast(0.002, 0.01), DAY) for name in "AB"], scores


def test_a_book_that_hedges_itself_is_held_to_the_shortfall_that_it_has_together() -> None:
    inputs, scores = hedged_pair()
    config = TradingConfig(max_weight=1.0, max_gross=2.0, max_shortfall=0.01)
    apart = target_weights(inputs, config)
    together = target_weights(inputs, config, lambda: joint_outcomes(inputs, scores, config.shortfall_level))
    assert book_shortfall(apart, inputs, config.shortfall_level) == pytest.approx(0.01)
    assert together.min() > 1.5 * apart.max()
    outcomes = joint_outcomes(inputs, scores, config.shortfall_level)
    assert outcomes is not None
    assert book_shortfall(together, inputs, config.shortfall_level, outcomes) <= 0.01 + 1e-12


def test_joint_outcomes_have_the_forecasts_as_margins_and_are_never_worse_than_the_sum() -> None:
    inputs, scores = hedged_pair()
    alike = joint_outcomes(inputs, np.column_stack((scores[:, 0], scores[:, 0])), 0.975)
    assert alike is not None
    weights = np.array([0.5, 0.5])
    added = book_shortfall(weights, inputs, 0.975)
    assert book_shortfall(weights, inputs, 0.975, alike) == pytest.approx(added, rel=0.02)
    for one, column in zip(inputs, alike.T, strict=True):
        assert np.quantile(column, [0.1, 0.5, 0.9]) == pytest.approx(
            np.quantile(one.returns, [0.1, 0.5, 0.9]), abs=2e-4
        )


def test_too_few_common_instants_leave_the_sum() -> None:
    inputs, scores = hedged_pair()
    scores[:250, 0] = np.nan
    assert joint_outcomes(inputs, scores, 0.975) is None
    assert joint_outcomes(inputs, scores, 0.9) is not None


def test_short_positions_only_where_they_are_allowed() -> None:
    inputs = book(0.0, mean=-0.002)
    assert target_weights(inputs, TradingConfig())[0] < 0
    assert target_weights(inputs, TradingConfig(allow_short=False)).tolist() == [0.0]


def test_volatility_target_holds_less_of_what_moves_more() -> None:
    config = TradingConfig(sizing="volatility", max_weight=5.0, max_gross=10.0, max_shortfall=1.0)
    calm, wild = (target_weights(book(0.0, sigma=sigma), config)[0] for sigma in (0.005, 0.02))
    assert calm == pytest.approx(0.10 / (0.005 * 252**0.5), rel=0.05)
    assert calm / wild == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("quantiles", [[0.1] * 12 + [float("nan")], [0.2, 0.1, *[0.3] * 11], [0.0, 0.1]])
def test_what_is_no_distribution_is_refused(quantiles: list[float]) -> None:
    with pytest.raises(InvalidInput, match="three quantiles"):
        outcomes_of(LEVELS, quantiles)
