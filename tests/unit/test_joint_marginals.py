"""The map between returns and normal scores: exact at the levels, an exponential tail beyond, ties in the middle."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from htfi.forecasting.config import LEVELS
from htfi.forecasting.joint.history import MAX_SCORE, MarginalMap, normal_scores
from htfi.forecasting.shapes import student_quantiles

MARGINALS = MarginalMap(LEVELS)
STUDENT = student_quantiles(LEVELS, 5.0)[None] * 0.01
AT_LEVELS = np.array([NormalDist().inv_cdf(level) for level in LEVELS])


def test_scores_of_the_quantiles_are_those_of_their_levels():
    found = MARGINALS.scores(np.repeat(STUDENT, len(LEVELS), axis=0), STUDENT[0])
    assert found == pytest.approx(AT_LEVELS, abs=1e-11)


def test_returns_at_the_levels_are_the_quantiles():
    assert MARGINALS.returns(STUDENT, AT_LEVELS[:, None])[:, 0] == pytest.approx(STUDENT[0], abs=1e-12)


def test_tail_beyond_the_last_quantile_is_heavier_than_exponential_with_the_stated_mean():
    beta = (STUDENT[0, -1] - STUDENT[0, -2]) / math.log(5.0)
    shares = 0.01 * (np.arange(2000) + 0.5) / 2000
    scores = np.array([[NormalDist().inv_cdf(1.0 - share)] for share in shares.tolist()])
    beyond = (MARGINALS.returns(STUDENT, scores)[:, 0] - STUDENT[0, -1]) / beta
    assert beyond.mean() == pytest.approx(1.48, abs=0.01)
    assert (beyond >= -np.log(shares / 0.01) * 0.99).all()


def test_lower_tail_mirrors_the_upper():
    scores = np.linspace(0.0, 7.0, 50)[:, None]
    assert MARGINALS.returns(STUDENT, scores) == pytest.approx(
        -MARGINALS.returns(STUDENT, -scores), abs=1e-15
    )


def test_outcome_on_equal_quantiles_has_the_middle_of_their_scores():
    flat = np.zeros((2, len(LEVELS)))
    flat[1, -1] = 0.02
    found = MARGINALS.scores(flat, np.array([0.0, 0.0]))
    assert found[0] == pytest.approx(0.0, abs=1e-12)
    assert found[1] == pytest.approx((AT_LEVELS[0] + AT_LEVELS[-2]) / 2.0)


def test_outcome_beside_a_point_is_as_far_as_scores_go():
    flat = np.zeros((2, len(LEVELS)))
    assert MARGINALS.scores(flat, np.array([0.1, -0.1])).tolist() == [MAX_SCORE, -MAX_SCORE]


def test_missing_outcomes_and_quantiles_have_no_score():
    quantiles = np.concatenate([STUDENT, np.full_like(STUDENT, np.nan)])
    assert np.isnan(MARGINALS.scores(quantiles, np.array([np.nan, 0.01]))).all()


def test_ranked_scores_are_standard_normal_and_keep_gaps():
    values = np.random.default_rng(1).exponential(size=(400, 3))
    values[::7, 1] = np.nan
    found = normal_scores(values)
    assert np.isnan(found[::7, 1]).all()
    assert np.nanmean(found, axis=0) == pytest.approx(0.0, abs=1e-9)
    assert np.nanstd(found, axis=0) == pytest.approx(1.0, abs=1e-9)
    assert (np.argsort(found[:, 0]) == np.argsort(values[:, 0])).all()


def test_ties_broken_by_lot_do_not_follow_time():
    still = np.zeros((500, 1))
    found = normal_scores(still, np.random.default_rng(2))[:, 0]
    assert abs(np.corrcoef(found, np.arange(500))[0, 1]) < 0.2  # false alarms: 1 in 10^5
