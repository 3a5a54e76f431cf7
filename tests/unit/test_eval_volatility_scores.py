"""QLIKE, what variance quantiles imply, and scaling by what had matured."""

import numpy as np
import pytest
from scipy import stats

from htfi.forecasting.config import LEVELS
from htfi.forecasting.scores import implied_variance, qlike
from htfi_eval.eval.volatility import close_to_close, past_mean, score
from htfi_eval.eval.walk import RealisedOutcomes


def test_qlike_is_zero_where_they_agree_and_harder_on_too_little() -> None:
    assert qlike(np.array([2.0]), np.array([2.0]))[0] == 0.0
    assert qlike(np.array([1.0]), np.array([0.5]))[0] > qlike(np.array([1.0]), np.array([2.0]))[0]
    assert qlike(np.array([4.0]), np.array([1.0]))[0] == pytest.approx(3.0 - np.log(4.0))


def test_qlike_is_least_for_the_true_variance_under_a_noisy_measure() -> None:
    measured = 3.0 * np.random.Generator(np.random.PCG64(1)).chisquare(1, 200_000)
    losses = {guess: qlike(measured, np.full_like(measured, guess)).mean() for guess in (2.4, 3.0, 3.6)}
    assert min(losses, key=losses.__getitem__) == 3.0


def test_implied_variance_of_a_gaussian_is_nearly_its_own() -> None:
    quantiles = 0.02 * stats.norm.ppf(LEVELS)
    assert implied_variance(quantiles, np.array(LEVELS)) == pytest.approx(0.02**2, rel=0.03)


def test_scaling_uses_only_ratios_that_had_matured() -> None:
    ratios = np.full((100, 1, 2), 3.0)
    measured = _measured(100)
    factor = past_mean(ratios, measured, (1, 5))
    assert (factor[:1, 0, 0] == 1.0).all()
    assert (factor[:5, 0, 1] == 1.0).all()
    assert factor[5, 0, 1] > 1.0
    other = ratios.copy()
    other[60:] = 99.0
    assert (past_mean(other, measured, (1, 5))[:61, 0, 0] == factor[:61, 0, 0]).all()
    assert (past_mean(other, measured, (1, 5))[:65, 0, 1] == factor[:65, 0, 1]).all()


def test_a_constant_bias_costs_nothing_in_the_long_run() -> None:
    measured = _measured(4000)
    truth = close_to_close(measured)
    forecasts = {"fused": truth.copy(), "biased": 4.0 * truth}
    scores = score(forecasts, measured, (1, 5), 2000)
    assert scores.mean("fused", 0) == pytest.approx(0.0, abs=1e-9)
    assert scores.mean("biased", 0) < 2e-3  # of 0.64 without scaling
    assert scores.bias("biased", 1) == pytest.approx(0.25)


def _measured(num: int) -> RealisedOutcomes:
    dice = np.random.Generator(np.random.PCG64(2))
    returns = 0.01 * dice.standard_normal((num, 1))
    variance = 1e-4 * dice.chisquare(5, (num, 1)) / 5
    realised = np.full((num, 1, 2), np.nan)
    for j, h in enumerate((1, 5)):
        for t in range(num - h):
            realised[t, 0, j] = variance[t + 1 : t + 1 + h, 0].sum()
    return RealisedOutcomes(returns, variance, np.full((num, 1, 2), np.nan), realised)
