"""Joint scenarios: past surprises and draws under today's forecasts."""

import numpy as np
import pytest

from htfi.forecasting.config import LEVELS
from htfi.forecasting.joint.dependence import draw_scores, learn_dependence, to_returns
from htfi.forecasting.shapes import student_quantiles

NUM = 5
QUANTILES = student_quantiles(LEVELS, 5.0) * np.array([[0.01], [0.02], [0.005], [0.03], [0.01]])


def dependence(correlation: float = 0.64, num: int = 500, seed: int = 1):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((num, 1)) * np.sqrt(correlation)
    return learn_dependence(common + np.sqrt(1.0 - correlation) * rng.standard_normal((num, NUM)), rng)


DEPENDENCE = dependence()


def test_one_series_alone_has_scenarios_of_its_own_forecast():
    alone = learn_dependence(np.random.default_rng(3).standard_normal((500, 1)), np.random.default_rng(4))
    returns = to_returns(alone.scores, QUANTILES[:1], LEVELS)[:, 0]
    assert np.quantile(returns, LEVELS, method="hazen") == pytest.approx(QUANTILES[0], abs=3e-4)


def test_without_any_past_scenarios_are_drawn():
    fresh = learn_dependence(np.full((0, NUM), np.nan), np.random.default_rng(5))
    assert fresh.scores.shape == (20, NUM)
    assert np.isfinite(fresh.scores).all()


def test_constant_series_stays_where_it_is():
    quantiles = QUANTILES.copy()
    quantiles[4] = 0.0
    returns = to_returns(DEPENDENCE.scores, quantiles, LEVELS)
    assert (returns[:, 4] == 0.0).all()


def test_draws_repeat_with_their_seed():
    first = draw_scores(DEPENDENCE, 101, np.random.default_rng(6), 4.0)
    again = draw_scores(DEPENDENCE, 101, np.random.default_rng(6), 4.0)
    assert first.shape == (101, NUM)
    assert (first == again).all()
