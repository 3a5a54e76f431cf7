"""Laws of joint scenarios and books: margins are the forecasts', maps are monotone, risk adds up, ES ≥ VaR."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.forecasting.config import LEVELS
from htfi.forecasting.joint.dependence import learn_dependence, to_returns
from htfi.forecasting.joint.history import MAX_SCORE, MarginalMap
from htfi.forecasting.joint.portfolio import make_portfolio, portfolio_risk

MARGINALS = MarginalMap(LEVELS)
steps = st.lists(
    st.floats(0.0, 0.1).filter(lambda x: x == 0.0 or x > 1e-9), min_size=len(LEVELS), max_size=len(LEVELS)
)


def quantiles_of(start: float, step: list[float]) -> np.ndarray:
    return (start + np.cumsum(step))[None]


@given(st.floats(-1.0, 1.0), steps, st.lists(st.floats(-9.0, 9.0), min_size=2, max_size=30))
def test_returns_never_fall_as_scores_rise(start: float, step: list[float], scores: list[float]):
    found = MARGINALS.returns(quantiles_of(start, step), np.sort(scores)[:, None])[:, 0]
    assert (np.diff(found) >= -1e-12).all()
    assert np.isfinite(found).all()


@given(st.floats(-1.0, 1.0), steps, st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=30))
def test_scores_never_fall_as_outcomes_rise(start: float, step: list[float], outcomes: list[float]):
    quantiles = np.repeat(quantiles_of(start, step), len(outcomes), axis=0)
    found = MARGINALS.scores(quantiles, np.sort(outcomes))
    assert (np.diff(found) >= -1e-9).all()
    assert (np.abs(found) <= MAX_SCORE).all()


@given(st.floats(-1.0, 1.0), st.lists(st.floats(1e-4, 0.1), min_size=13, max_size=13), st.floats(-6.0, 6.0))
def test_a_score_survives_the_way_there_and_back(start: float, step: list[float], score: float):
    quantiles = quantiles_of(start, step)
    outcome = MARGINALS.returns(quantiles, np.array([[score]]))[:, 0]
    assert MARGINALS.scores(quantiles, outcome) == pytest.approx(score, abs=1e-6)


@settings(deadline=None, max_examples=examples(25))
@given(
    st.integers(1, 6),
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 0.6),
    st.lists(st.floats(1e-4, 0.02), min_size=13, max_size=13),
)
def test_each_series_keeps_its_own_forecast_whatever_the_past(
    num_series: int, seed: int, missing: float, step: list[float]
):
    rng = np.random.default_rng(seed)
    history = rng.standard_t(3.0, (400, num_series)) + rng.standard_normal((400, 1))
    history[rng.random(history.shape) < missing] = np.nan
    dependence = learn_dependence(history, rng)
    quantiles = np.repeat(quantiles_of(-0.05, step), num_series, axis=0)
    returns = to_returns(dependence.scores, quantiles, LEVELS)
    for place, level in enumerate(LEVELS):
        share = (returns <= quantiles[:, place] + 1e-12).mean(axis=0)
        assert share == pytest.approx(np.full(num_series, level), abs=2.5 / len(returns) + 0.003)


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.floats(-100.0, 100.0), min_size=1, max_size=6),
    st.integers(1, 300),
    st.floats(0.5, 0.995),
    st.integers(0, 2**32 - 1),
)
def test_components_add_up_and_shortfall_is_no_less_than_value_at_risk(
    notionals: list[float], num: int, level: float, seed: int
):
    book = make_portfolio({f"S{n}": notional for n, notional in enumerate(notionals)})
    returns = 0.02 * np.random.default_rng(seed).standard_t(3.0, (num, len(notionals)))
    found = portfolio_risk(book, returns, level)
    assert found.expected_shortfall >= found.value_at_risk
    size = 1e-9 * (1.0 + sum(map(abs, notionals)))
    assert found.component_es.sum() == pytest.approx(found.expected_shortfall, abs=size)
    double = portfolio_risk(
        make_portfolio({f"S{n}": 2.0 * notional for n, notional in enumerate(notionals)}), returns, level
    )
    assert double.value_at_risk == pytest.approx(2.0 * found.value_at_risk, abs=size)
