"""The factor model of scores: recovers correlations, fills gaps, stays sane on ugly input."""

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.forecasting.joint.dependence import (
    FactorModel,
    draw_scores,
    fit_degrees_of_freedom,
    fit_factors,
    learn_dependence,
)


def correlation(model: FactorModel) -> np.ndarray:
    return model.multiply(np.eye(model.num_series))


def sample(num: int, loadings: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    own = np.sqrt(1.0 - (loadings**2).sum(axis=1))
    return rng.standard_normal((num, loadings.shape[1])) @ loadings.T + own * rng.standard_normal(
        (num, len(own))
    )


@pytest.mark.parametrize("num_series", [2, 12, 700])
def test_model_finds_the_correlations(num_series: int):
    rng = np.random.default_rng(num_series)
    loadings = np.stack([rng.uniform(0.4, 0.8, num_series), rng.uniform(-0.4, 0.4, num_series)], axis=1)
    loadings = loadings[:, :1] if num_series == 2 else loadings
    model = fit_factors(sample(500, loadings, 1))
    error = model.loadings @ model.loadings.T - loadings @ loadings.T
    np.fill_diagonal(error, 0.0)
    # the correlation of 500 pairs has a deviation of 0.045
    assert np.sqrt((error**2).sum() / (num_series * (num_series - 1))) < 0.07
    assert (model.loadings**2).sum(axis=1) + model.specific == pytest.approx(np.ones(num_series))


def test_gaps_do_not_dilute_the_correlations():
    loadings = np.full((8, 1), 0.7)
    scores = sample(500, loadings, 2)
    scores[np.random.default_rng(3).random(scores.shape) < 0.3] = np.nan
    found = correlation(fit_factors(scores))
    assert found[np.triu_indices(8, 1)].mean() == pytest.approx(0.49, abs=0.06)


def test_filled_gaps_keep_what_is_there_and_follow_the_others():
    loadings = np.full((10, 1), 0.9)
    truth = sample(400, loadings, 4)
    scores = truth.copy()
    scores[:200, 0] = np.nan
    model = fit_factors(scores)
    filled = model.fill(scores, np.random.default_rng(5))
    assert (filled[200:] == scores[200:]).all()
    assert np.corrcoef(filled[:200, 0], truth[:200, 1:].mean(axis=1))[0, 1] > 0.7
    assert np.std(filled[:200, 0]) == pytest.approx(1.0, abs=0.25)


def test_series_hardly_seen_is_taken_for_an_average_one():
    scores = sample(500, np.full((9, 1), 0.7), 6)
    scores[:-3, 0] = np.nan
    found = correlation(fit_factors(scores))[0, 1:]
    assert found.mean() == pytest.approx(0.49, abs=0.12)


def test_factors_come_strongest_first_and_point_with_most_series():
    loadings = np.stack([np.full(20, -0.7), np.repeat([0.4, -0.4], 10)], axis=1)
    model = fit_factors(sample(800, loadings, 7))
    strength = (model.loadings**2).sum(axis=0)
    assert model.loadings.shape[1] == 2
    assert strength[0] > strength[1]
    assert (model.loadings.sum(axis=0) >= 0.0).all()


def test_noise_has_one_factor_that_explains_little():
    model = fit_factors(np.random.default_rng(8).standard_normal((500, 30)))
    assert model.loadings.shape[1] == 1
    assert model.specific.mean() > 0.9


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (2, 3), (50, 1)])
def test_too_little_history_gives_independence(shape: tuple[int, int]):
    model = fit_factors(np.random.default_rng(9).standard_normal(shape))
    assert np.abs(model.loadings).max() == 0.0


def test_identical_series_leave_a_correlation_that_can_be_inverted():
    one = np.random.default_rng(10).standard_normal((300, 1))
    model = fit_factors(np.repeat(one, 5, axis=1))
    assert correlation(model)[0, 1] > 0.98
    assert np.linalg.cond(correlation(model)) < 1e5


def test_no_series_at_all_is_refused():
    with pytest.raises(InvalidInput, match="at least one series"):
        fit_factors(np.zeros((5, 0)))


def test_ten_thousand_series_with_gaps_are_learnt():
    scores = sample(60, np.full((10_000, 1), 0.5), 11).astype(np.float32)
    scores[:30, ::10] = np.nan
    scores[:, 5] = np.nan
    found = learn_dependence(scores, np.random.default_rng(12))
    assert found.scores.shape == (60, 10_000)
    assert np.isfinite(found.scores).all()


def test_degrees_of_freedom_of_a_t_copula_are_found():
    rng = np.random.default_rng(13)
    scores = sample(500, np.full((40, 1), 0.6), 14)
    heavy = scores / np.sqrt(rng.chisquare(4.0, (500, 1)) / 4.0)
    found = fit_degrees_of_freedom(learn_dependence(heavy, rng), rng)
    assert found is not None
    assert found <= 6.0
    light = fit_degrees_of_freedom(learn_dependence(scores, rng), rng)
    assert light is None or light >= 20.0


def test_drawn_scores_have_exact_margins_and_the_correlation():
    dependence = learn_dependence(sample(500, np.full((6, 1), 0.8), 15), np.random.default_rng(16))
    drawn = draw_scores(dependence, 4000, np.random.default_rng(17), 5.0)
    assert drawn.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-9)
    assert drawn.std(axis=0) == pytest.approx(np.ones(6), abs=1e-9)
    expected = correlation(dependence.factors)[0, 1]
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(expected, abs=0.06)
