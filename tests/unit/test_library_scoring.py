"""`htfi.scoring` on any arrays, beside the packages that others score with."""

import numpy as np
import pandas as pd
import pytest

import htfi
from htfi import scoring

RNG = np.random.default_rng(0)
OUTCOME = RNG.standard_normal((40, 3)) * 0.02
SAMPLES = RNG.standard_t(4, (40, 3, 25)) * 0.02
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
QUANTILES = np.sort(RNG.standard_normal((40, 3, 9)) * 0.02, axis=-1)
EXACT = {"rtol": 1e-12, "atol": 1e-14}


def test_scores_are_those_of_scoringrules():
    rules = pytest.importorskip("scoringrules", reason="needs scoringrules")
    middles = (np.arange(9) + 0.5) / 9
    np.testing.assert_allclose(
        scoring.crps(QUANTILES, OUTCOME, middles),
        rules.crps_quantile(OUTCOME, QUANTILES, middles, backend="numpy"),
        **EXACT,
    )
    np.testing.assert_allclose(
        scoring.crps_of_samples(SAMPLES, OUTCOME),
        rules.crps_ensemble(OUTCOME, SAMPLES, estimator="nrg", backend="numpy"),
        **EXACT,
    )
    for place, level in enumerate(LEVELS):
        np.testing.assert_allclose(
            scoring.pinball(QUANTILES, OUTCOME, LEVELS)[..., place],
            rules.quantile_score(OUTCOME, QUANTILES[..., place], level, backend="numpy"),
            **EXACT,
        )
    for coverage in (0.5, 0.9, 0.98):
        np.testing.assert_allclose(
            scoring.interval_score(QUANTILES[..., 1], QUANTILES[..., 7], OUTCOME, coverage=coverage),
            rules.interval_score(
                OUTCOME, QUANTILES[..., 1], QUANTILES[..., 7], 1 - coverage, backend="numpy"
            ),
            **EXACT,
        )


def test_the_crps_of_samples_is_that_of_properscoring():
    proper = pytest.importorskip("properscoring", reason="needs properscoring")
    np.testing.assert_allclose(
        scoring.crps_of_samples(SAMPLES, OUTCOME), proper.crps_ensemble(OUTCOME, SAMPLES), **EXACT
    )


def test_scores_are_those_of_their_definitions():
    apart = np.abs(SAMPLES[..., :, None] - SAMPLES[..., None, :]).mean(axis=(-2, -1))
    away = np.abs(SAMPLES - OUTCOME[..., None]).mean(axis=-1)
    np.testing.assert_allclose(scoring.crps_of_samples(SAMPLES, OUTCOME), away - apart / 2, **EXACT)
    low, high = QUANTILES[..., 1], QUANTILES[..., 7]
    outside = np.maximum(low - OUTCOME, 0) + np.maximum(OUTCOME - high, 0)
    np.testing.assert_allclose(
        scoring.interval_score(low, high, OUTCOME, coverage=0.9), high - low + 20 * outside, **EXACT
    )
    above = OUTCOME[..., None] >= QUANTILES
    losses = np.where(above, LEVELS, LEVELS - 1) * (OUTCOME[..., None] - QUANTILES)
    np.testing.assert_allclose(scoring.pinball(QUANTILES, OUTCOME, LEVELS), losses, **EXACT)


def test_the_scores_of_a_backtest_are_these():
    days = pd.bdate_range("2020-01-01", periods=60)
    prices = pd.Series(100.0 * np.exp(np.cumsum(0.01 * RNG.standard_normal(60))), days, name="AAA")
    walked = htfi.backtest(prices, horizons=[1])
    row = walked.scores.set_index("name").loc["fused"]
    outcome = walked.outcomes()[:, 0]
    losses = scoring.crps(walked.log_returns[:, 0], outcome, walked.levels)
    assert np.isnan(losses[-1])
    scored = losses[np.isfinite(losses)][-int(row["num"]) :]
    assert scored.mean() == pytest.approx(
        row["crps"], rel=1e-6
    )  # those that wait are kept in single precision


@pytest.mark.parametrize(
    ("score", "says"),
    [
        (lambda: scoring.crps([1.0, 2.0], 1.0, [0.5]), r"\(2,\) quantiles for 1 levels"),
        (
            lambda: scoring.crps([[1.0, 2.0]] * 3, [1.0] * 2, [0.1, 0.9]),
            r"\(3,\) forecasts and \(2,\) outcomes",
        ),
        (lambda: scoring.pinball([1.0, 2.0], 1.0, [0.9, 0.1]), "levels: give one or more, rising"),
        (lambda: scoring.pinball(["a", "b"], 1.0, [0.1, 0.9]), "quantiles: give numbers"),
        (lambda: scoring.crps_of_samples([], 1.0), r"samples of shape \(0,\)"),
        (
            lambda: scoring.interval_score(1.0, 2.0, 1.5, coverage=90),
            "coverage=90: give a share between 0 and 1",
        ),
    ],
)
def test_what_cannot_be_scored_is_one_line(score, says):
    with pytest.raises(htfi.HtfiError, match=says):
        score()
