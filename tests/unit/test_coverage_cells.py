"""Shares and ratios in cells: known ones are recovered, and intervals hold what they state."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.forecasting.evaluation.cells import (
    block_length,
    ratios_by_cell,
    shares_by_cell,
)
from htfi.forecasting.evaluation.coverage_tables import (
    Dimension,
    ForecastOutcomes,
    calendar_dimensions,
    names_of,
    sum_cells,
    tabulate,
    tail_loss,
    tercile_dimension,
)
from htfi.forecasting.evaluation.differences import holm, student_cdf
from htfi.forecasting.evaluation.student import incomplete_beta, student_quantile

ALL = np.zeros((1, 1), np.int64)


def _dice(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _outcomes(held: np.ndarray, low: np.ndarray, crps: float = 1.0) -> ForecastOutcomes:
    losses = np.full(held.shape, crps)
    return ForecastOutcomes(
        held, low, low * (_dice(2).random(low.shape) < 0.2), losses, losses, 2.0 * losses, 4.0 * losses
    )


def test_quantiles_of_student_invert_its_distribution():
    freedom = np.array([1.0, 2.0, 3.0, 7.0, 40.0, 1e5])
    found = student_quantile(0.975, freedom)
    back = [student_cdf(value, of) for value, of in zip(found.tolist(), freedom.tolist(), strict=True)]
    assert back == pytest.approx([0.975] * 6, abs=2e-5)


def test_incomplete_beta_of_whole_numbers_is_the_binomial():
    chance = sum(math.comb(12, k) * 0.3**k * 0.7 ** (12 - k) for k in range(4, 13))
    assert incomplete_beta(4.0, 9.0, 0.3)[()] == pytest.approx(chance, rel=1e-12)
    assert np.isnan(incomplete_beta([0.0, 1.0], 1.0, [0.5, 2.0])).all()


def test_each_cell_gets_its_own_share():
    held = np.tile([[1.0, 0.0, np.nan], [1.0, 1.0, 0.0]], (100, 1))
    cells = np.tile([[0, 1, 0]], (200, 1))
    found = shares_by_cell(held, cells, 3, 1)
    assert found.num.tolist() == [300, 200, 0]
    assert found.share[:2] == pytest.approx([2 / 3, 0.5])
    assert np.isnan(found.share[2])
    assert np.isnan(found.p).all()


def test_series_that_move_as_one_are_worth_one():
    one = (_dice(1).random((3000, 1)) < 0.9).astype(np.float64)
    alone = shares_by_cell(one, ALL, 1, 1, 0.9)
    together = shares_by_cell(np.repeat(one, 40, axis=1), ALL, 1, 1, 0.9)
    assert together.num[0] == 40 * alone.num[0]
    assert together.low[0] == pytest.approx(alone.low[0], abs=0.003)
    assert together.high[0] == pytest.approx(alone.high[0], abs=0.003)


@pytest.mark.parametrize(("horizon", "num_instants"), [(1, 1200), (22, 3000)])
def test_intervals_hold_the_share_nineteen_times_in_twenty(horizon: int, num_instants: int):
    """Overlapping outcomes of three correlated series, each draw a cell of its own.

    Of 200 draws 180 hold the share, but for a chance of 1 in 1,000.
    """
    dice, edge, num_draws = _dice(7), 1.6448536, 200
    common = np.repeat(dice.standard_normal((num_instants + horizon, num_draws)), 3, axis=1)
    steps = 0.3**0.5 * common + 0.7**0.5 * dice.standard_normal(common.shape)
    path = np.cumsum(np.vstack([np.zeros((1, 3 * num_draws)), steps]), axis=0)
    outcome = (path[horizon : horizon + num_instants] - path[:num_instants]) / horizon**0.5
    cells = np.repeat(np.arange(num_draws), 3)[None, :]
    found = shares_by_cell((np.abs(outcome) <= edge).astype(np.float64), cells, num_draws, horizon, 0.9)
    num_held = int(((found.low <= 0.9) & (found.high >= 0.9)).sum())
    assert 180 <= num_held <= 199


def test_ratios_hold_their_own_value():
    losses = _dice(3).gamma(2.0, size=(2000, 5))
    found = ratios_by_cell(0.9 * losses, losses, ALL, 1, 5)
    assert found.ratio[0] == pytest.approx(0.9)
    assert found.low[0] == pytest.approx(0.9)
    noisy = ratios_by_cell(0.9 * losses * _dice(4).uniform(0.5, 1.5, losses.shape), losses, ALL, 1, 5)
    assert noisy.low[0] < 0.9 < noisy.high[0]


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_any_cells_give_shares_within_their_intervals(num: int, width: int, horizon: int, seed: int):
    dice = _dice(seed)
    held = np.where(dice.random((num, width)) < 0.1, np.nan, dice.random((num, width)) < 0.8)
    found = shares_by_cell(held, dice.integers(-1, 4, (num, width)), 4, horizon, 0.8)
    known = np.isfinite(found.low)
    assert (found.low[known] <= found.share[known] + 1e-7).all()
    assert (found.share[known] <= found.high[known] + 1e-7).all()
    assert (found.num_effective <= found.num).all()
    assert ((found.p[known] >= 0.0) & (found.p[known] <= 1.0)).all()


def test_a_cell_that_is_off_is_marked_and_one_that_is_right_is_not():
    dice = _dice(11)
    cells = np.tile(np.arange(4) % 2, (4000, 1))
    held = (dice.random((4000, 4)) < np.where(cells == 1, 0.8, 0.9)).astype(np.float64)
    low = (dice.random((4000, 4)) < 0.05).astype(np.float64)
    dimension = Dimension("half", ("right", "wrong"), cells)
    rows = tabulate(names_of([dimension]), sum_cells(_outcomes(held, low), [dimension], 1))
    assert [row.cell for row in rows] == ["right", "wrong"]
    assert rows[0].off == ()
    assert rows[1].off == ("coverage 90",)
    assert rows[0].crps_ratio == 0.5
    assert rows[0].tail_ratio == 0.25
    assert rows[0].kupiec05 > 0.01


def test_misses_that_follow_misses_fail_christoffersen():
    dice, low = _dice(5), np.zeros((6000, 1))
    for t in range(1, 6000):
        low[t, 0] = dice.random() < (0.4 if low[t - 1, 0] else 0.0316)
    every = Dimension("all", ("all",), np.zeros((6000, 1), np.int64))
    row = tabulate(names_of([every]), sum_cells(_outcomes(1.0 - low, low), [every], 1))[0]
    assert row.again05 == pytest.approx(0.4, abs=0.06)
    assert row.christoffersen05 < 1e-6


def test_a_false_alarm_among_many_cells_is_rare():
    """Of 60 tables of 50 right cells at most 8 mark any: false alarms of 5% a table exceed 8 of 60 once in 500."""
    held = (_dice(13).random((500, 3000)) < 0.9).astype(np.float64)
    chances = shares_by_cell(held, np.arange(3000)[None, :], 3000, 1, 0.9).p.reshape(60, 50)
    assert sum(min(holm(table.tolist())) < 0.05 for table in chances) <= 8


def test_calendar_and_terciles():
    at = np.array([np.datetime64("2019-12-31T23:30"), np.datetime64("2020-01-06T05:00")], "datetime64[ns]")
    year, weekday, hour = calendar_dimensions(at.astype(np.int64), intraday=True)
    assert year.labels == ("2019", "2020")
    assert year.cells.ravel().tolist() == [0, 1]
    assert [weekday.labels[k] for k in weekday.cells.ravel()] == ["Tuesday", "Monday"]
    assert [hour.labels[k] for k in hour.cells.ravel()] == ["23h", "05h"]
    width = np.array([[3.0, 1.0], [1.0, np.nan], [2.0, 9.0]])
    assert tercile_dimension(width).cells.tolist() == [[2, 0], [0, -1], [1, 1]]


def test_the_tail_loss_weighs_the_left():
    levels = np.array([0.05, 0.5, 0.95])
    quantiles = np.array([[-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])
    left, right = tail_loss(quantiles, np.array([-3.0, 3.0]), levels).tolist()
    assert left > 2.5 * right > 0.0


def test_blocks_span_three_horizons_and_are_not_too_many():
    assert block_length(1, 100) == 25
    assert block_length(22, 100) == 66
    assert block_length(1, 46_000) == 230
