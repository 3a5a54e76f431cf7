"""Shapes pooled over the series of an interval, and the scales of falls and rises."""

import numpy as np
import pytest

from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.panel import BarBatch
from htfi.forecasting.pooled_shapes import PooledShape, half_quantiles, half_scales, half_slopes
from htfi.forecasting.shapes import ResidualShapes, student_quantiles

CONFIG = ForecastConfig()
LOW, Q05, MEDIAN, Q95 = (LEVELS.index(level) for level in (0.01, 0.05, 0.5, 0.95))
SKEWED = (-1.944, 0.226, 1.162)  # quantiles at 5, 50 and 95% of what `skewed` draws


def skewed(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Outcomes with unit variance and a long left tail: a gamma turned round. Mean 0."""
    draws = np.random.default_rng(seed).gamma(2.0, 1.0, shape)
    return (2.0 - draws) / np.sqrt(2.0)


def batch(age: int, outcomes: np.ndarray) -> BarBatch:
    """Bars at one instant of series of one group; all but rows, age, group and outcomes is at rest."""
    num = len(outcomes)
    still, whole = np.zeros(num), np.zeros(num, np.int64)
    return BarBatch(
        rows=slice(0, num), index=np.arange(num), age=np.full(num, age), returns=still, variance=still,
        log_variance=still, within_log_variance=still, usual=still, outcomes=outcomes,
        due=np.full(num, age % 10 == 0), start_ns=whole, end_ns=whole, group=whole, volume=still,
        covariates=np.zeros((num, 0)),
    )  # fmt: skip


def fed(part: PooledShape | ResidualShapes, outcomes: np.ndarray) -> None:
    """Feed outcomes [T, n, H] that were forecast with scale 1."""
    part.grow(outcomes.shape[1])
    halves = np.ones((outcomes.shape[1], len(CONFIG.horizons), 2))
    for age, at in enumerate(outcomes):
        part.learn(batch(age, np.where(age >= np.array(CONFIG.horizons), at, np.nan)), halves)


def pooled(outcomes: np.ndarray) -> np.ndarray:
    """Quantiles [H, Q] of the first series at scale 1."""
    part = PooledShape(CONFIG)
    fed(part, outcomes)
    size, shape = part.of(slice(0, 1), np.zeros(1, np.int64))
    return (size[:, :, None] * shape)[0]


def skew(quantiles: np.ndarray) -> float:
    """How much further 5% lies from the median than 95%, as a share of both."""
    away = quantiles - quantiles[MEDIAN]
    return float((-away[Q05] - away[Q95]) / (away[Q95] - away[Q05]))


def test_skew_is_found_where_outcomes_are_many_and_not_where_they_are_few():
    low, middle, high = SKEWED
    truth = (2.0 * middle - low - high) / (high - low)
    few, some, many = (skew(pooled(skewed((num, 3, 3), 1))[0]) for num in (12, 150, 2500))
    assert 0.0 <= few < 0.4 * many
    assert few < some < many
    assert many == pytest.approx(truth, rel=0.1)


def test_a_longer_horizon_shows_less_of_the_same_skew_for_its_outcomes_overlap():
    quantiles = pooled(skewed((600, 3, 3), 2))
    assert skew(quantiles[0]) > skew(quantiles[1]) > skew(quantiles[2]) > 0.0


def test_many_series_of_one_market_are_worth_no_more_than_three():
    once = skewed((400, 1, 3), 3)
    one, three, hundred = (skew(pooled(np.repeat(once, num, axis=1))[2]) for num in (1, 3, 100))
    assert one < 0.7 * three
    assert hundred == pytest.approx(three, rel=0.05)


def test_the_tail_of_a_month_is_that_of_the_prior_until_months_are_many():
    gaussian = np.random.default_rng(4).standard_normal((60, 2, 3))
    month = pooled(gaussian)[2]
    heavy = student_quantiles(LEVELS, 4.0)
    assert month[LOW] / month[Q05] == pytest.approx(heavy[LOW] / heavy[Q05], rel=0.04)


def test_own_residuals_of_a_month_count_as_the_few_that_they_are():
    mild = np.random.default_rng(5).uniform(-1.0, 1.0, (500, 1, 3))
    part = ResidualShapes(CONFIG, 250.0)
    fed(part, mild)
    day, _, month = part.shape(slice(0, 1))[0]
    assert month[LOW] < -1.3  # none of the 478 was below -1: a heavier tail is not yet excluded
    assert day[LOW] > month[LOW]


def test_a_series_twice_as_wide_as_the_others_shows_it_as_far_as_its_outcomes_are_independent():
    outcomes = np.random.default_rng(6).standard_normal((1500, 4, 3))
    outcomes[:, 0] *= 2.0
    part = PooledShape(CONFIG)
    fed(part, outcomes)
    size, _ = part.of(slice(0, 4), np.zeros(4, np.int64))
    day, week, month = (size[0] / size[1]).tolist()
    assert 2.0 > day > week > month > 1.2


def test_a_group_that_starts_in_a_crisis_has_nearly_forgotten_it_after_years():
    rng = np.random.default_rng(7)
    crisis = -np.abs(6.0 * rng.standard_normal((40, 3, 3)))
    after = pooled(np.concatenate([crisis, rng.standard_normal((1500, 3, 3))]))
    assert after[0, Q95] - after[0, Q05] == pytest.approx(3.29, rel=0.2)
    assert abs(skew(after[0])) < 0.1
    assert abs(after[2, MEDIAN]) < 0.1


def test_before_the_first_outcome_of_a_long_horizon_its_shape_is_the_prior():
    pooled = PooledShape(CONFIG)
    fed(pooled, skewed((20, 3, len(CONFIG.horizons)), 4))  # no outcome over 22 bars yet
    _, shape = pooled.of(slice(0, 3), np.zeros(3, np.int64))
    blank = PooledShape(CONFIG)
    blank.grow(3)
    _, before = blank.of(slice(0, 3), np.zeros(3, np.int64))
    assert shape[:, -1] == pytest.approx(before[:, -1])
    assert (shape[:, -1, Q95] > 1.0).all()


def test_outcomes_that_are_all_zero_leave_finite_quantiles_in_order():
    quantiles = pooled(np.zeros((200, 2, 3)))
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) >= 0.0).all()


def test_halves_are_equal_up_to_a_week_and_at_the_usual_volatility():
    slopes = half_slopes(CONFIG.horizons)
    scale = np.ones((1, 3))
    assert slopes[:2].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(half_scales(scale, np.full((1, 3), 0.8), slopes)[:, :2], 1.0)
    np.testing.assert_array_equal(half_scales(scale, np.zeros((1, 3)), slopes), 1.0)


def test_above_the_usual_volatility_rises_are_narrowed_and_below_it_both_widened():
    slopes, scale = half_slopes(CONFIG.horizons), np.ones((1, 3))
    wild, calm, calmest = (half_scales(scale, np.full((1, 3), at), slopes)[0, 2] for at in (0.8, -0.5, -9.0))
    assert wild[0] == 1.0
    assert wild[1] == pytest.approx((22 / 5) ** (-0.0675 * 0.8))
    assert calm.tolist() == [calm[0], calm[0]]
    assert calm[0] == pytest.approx((22 / 5) ** (0.0675 * 0.5))
    assert calmest[0] == pytest.approx((22 / 5) ** (0.0675 * 1.5))  # no further


def test_quantiles_below_zero_are_of_falls_and_those_above_of_rises():
    scale, above = np.full((1, 1), 2.0), np.full((1, 1), 1.0)
    found = half_quantiles(scale, above, np.array([np.log(2.0)]), np.array([[[-3.0, -1.0, 0.0, 1.0]]]))
    np.testing.assert_allclose(found[0, 0], [-6.0, -2.0, 0.0, 1.0], rtol=1e-12)
