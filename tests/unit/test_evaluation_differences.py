"""Diebold-Mariano and its company against formulas written out, scipy, and data whose answer is known."""

import math

import numpy as np
import pytest
from scipy import stats

from htfi.domain.errors import InvalidInput
from htfi.forecasting.evaluation.differences import (
    bandwidth,
    benjamini_hochberg,
    diebold_mariano,
    holm,
    long_run_variance,
    loss_difference,
    mean_by_date,
    student_cdf,
)


def _dice(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize("freedom", [1, 3, 29, 1500])
@pytest.mark.parametrize("value", [-8.0, -1.3, 0.0, 0.4, 2.5])
def test_student_cdf_is_scipys(value: float, freedom: int) -> None:
    assert student_cdf(value, freedom) == pytest.approx(stats.t.cdf(value, freedom), rel=1e-9)


def test_one_step_without_memory_is_nearly_the_t_test() -> None:
    differences = _dice(1).standard_normal(4000) - 0.05
    found = loss_difference(differences, 1)
    assert found.p == pytest.approx(stats.ttest_1samp(differences, 0.0, alternative="less").pvalue, abs=0.01)


def test_long_run_variance_of_a_moving_average_is_its_closed_form() -> None:
    noise = _dice(2).standard_normal(200_000)
    overlapping = noise[2:] + noise[1:-1] + noise[:-2]  # spectral density at 0: 3² = 9
    assert long_run_variance(overlapping, 60) == pytest.approx(9.0, rel=0.05)


def test_long_run_variance_is_the_sum_written_out() -> None:
    values = _dice(3).standard_normal(50)
    away = values - values.mean()
    covariances = [float((away[k:] * away[: 50 - k]).sum()) / 50 for k in range(4)]
    expected = covariances[0] + 2 * sum((1 - k / 4) * covariances[k] for k in (1, 2, 3))
    assert long_run_variance(values, 3) == pytest.approx(expected)


def test_overlapping_outcomes_do_not_make_false_findings() -> None:
    """200 pairs of equally good forecasters: a test at 5% calls 2 to 22 of them but for 1 run in 1,000."""
    dice, found = _dice(4), 0
    for _ in range(200):
        noise = dice.standard_normal(1521)
        overlapping = np.convolve(noise, np.ones(22), "valid")
        found += loss_difference(overlapping, 22).p < 0.05
    assert 2 <= found <= 22


def test_the_better_forecaster_gets_the_low_chance_and_the_worse_the_high_one() -> None:
    dice = _dice(5)
    first = dice.random((500, 8))
    second = first + 0.02 + 0.05 * dice.standard_normal((500, 8))
    assert diebold_mariano(first, second, 1).p < 1e-6
    assert diebold_mariano(second, first, 1).p > 1 - 1e-6
    assert diebold_mariano(first, second, 1).statistic == pytest.approx(
        -diebold_mariano(second, first, 1).statistic
    )


def test_series_of_one_date_count_as_one() -> None:
    losses = np.array([[1.0, 3.0], [np.nan, 5.0], [np.nan, np.nan]])
    assert mean_by_date(losses).tolist() == [2.0, 5.0]
    one = _dice(6).standard_normal((300, 1))
    alone, copied = (
        loss_difference(one[:, 0], 1),
        diebold_mariano(np.repeat(one, 9, axis=1), np.zeros((300, 9)), 1),
    )
    assert copied.p == pytest.approx(alone.p)


def test_what_does_not_vary_has_no_chance() -> None:
    assert math.isnan(loss_difference(np.zeros(40), 1).p)
    assert math.isnan(loss_difference(np.array([0.3]), 1).p)


def test_losses_of_different_forecasts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="same forecasts"):
        diebold_mariano(np.zeros((3, 2)), np.zeros((3, 3)), 1)


def test_bandwidth_covers_the_overlap_and_never_the_whole_sample() -> None:
    assert bandwidth(1500, 1) == 7
    assert bandwidth(1500, 22) == 42
    assert bandwidth(10, 22) == 9


def test_holm_is_the_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_is_scipys() -> None:
    chances = _dice(7).random(25).tolist()
    assert benjamini_hochberg(chances) == pytest.approx(stats.false_discovery_control(chances).tolist())


def test_corrections_skip_what_was_not_tested() -> None:
    corrected = holm([0.01, float("nan"), 0.02])
    assert corrected[0] == pytest.approx(0.02)
    assert math.isnan(corrected[1])
    assert benjamini_hochberg([float("nan"), 0.5])[1] == pytest.approx(0.5)
