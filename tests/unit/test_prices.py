"""Returns as tokens: the bins, the volatility recursion, and the room that holds both for each series."""

import json
import math

import numpy as np
import pytest

from htfi.decoding.prices import (
    MIN_SIGMA,
    NUM_START_RETURNS,
    PriceBins,
    ScaledReturns,
)
from htfi.domain.errors import InvalidInput, ShapeMismatch
from return_scaling import bin_widths, from_bins, initial_sigma, scale_returns, to_path_bins, unscale_returns

BINS = PriceBins()


def student(num: int, seed: int) -> np.ndarray:
    """Student-t(4) of unit variance."""
    return np.random.Generator(np.random.PCG64(seed)).standard_t(4, num) / math.sqrt(2.0)


def test_bins_are_symmetric_with_zero_in_the_middle():
    assert BINS.to_bins(0.0) == BINS.middle == 64
    assert from_bins(BINS, 64) == 0.0
    np.testing.assert_array_equal(BINS.edges, -BINS.edges[::-1])
    np.testing.assert_array_equal(BINS.centres, -BINS.centres[::-1])
    assert BINS.edges[0] == -12.0
    assert BINS.to_bins([-1e9, 1e9]).tolist() == [0, 128]


def test_every_representative_lies_in_its_own_bin():
    everything = np.arange(BINS.num_bins)
    np.testing.assert_array_equal(BINS.to_bins(from_bins(BINS, everything)), everything)


def test_tails_keep_resolution_in_proportion_to_size():
    widths = bin_widths(BINS, np.arange(1, BINS.num_bins - 1))
    centres = BINS.centres[1:-1]
    assert widths.min() == pytest.approx(0.05, abs=0.002)
    assert np.all(widths <= 0.052 * np.hypot(1.0, centres))
    assert np.isinf(bin_widths(BINS, [0, 128])).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, [0.0, math.nan]])
def test_bins_refuse_what_is_not_finite(bad):
    with pytest.raises(InvalidInput, match="not finite"):
        BINS.to_bins(bad)


@pytest.mark.parametrize("settings", [{"num_bins": 128}, {"num_bins": 1}, {"limit": 0.0}, {"bend": math.inf}])
def test_bins_refuse_settings_without_sense(settings):
    with pytest.raises(InvalidInput, match="price bins"):
        PriceBins(**settings)


def test_binning_keeps_the_variance_and_the_quantiles_of_fat_tails():
    z = student(1_000_000, seed=7)
    binned = from_bins(BINS, BINS.to_bins(z))
    # The tail beyond 12 sigmas holds 2% of the variance at any draw; what binning did to the rest is exact.
    inside = np.abs(z) < 12.0
    assert np.mean(binned[inside] ** 2) == pytest.approx(np.mean(z[inside] ** 2), rel=0.001)
    for level in (0.05, 0.95):
        exact = np.quantile(z, level)
        assert abs(np.quantile(binned, level) - exact) < bin_widths(BINS, BINS.to_bins(exact)) / 2


def test_variance_of_the_representatives_is_one_under_their_own_law():
    t = BINS.edges * math.sqrt(2.0)
    s = t / np.sqrt(4.0 + t * t)
    mass = np.diff(np.concatenate([[0.0], 0.5 + 0.75 * (s - s**3 / 3.0), [1.0]]))
    assert np.sum(mass * BINS.centres**2) == pytest.approx(1.0, rel=1e-4)


def test_scaling_uses_only_the_volatility_before_each_return():
    returns = np.array([0.01, -0.02, 0.03])
    z, after = scale_returns(returns, 0.01)
    second = math.sqrt(0.94 * 1e-4 + 0.06 * 1e-4)
    assert z[:2] == pytest.approx([1.0, -0.02 / second])
    cut, _ = scale_returns(returns[:2], 0.01)
    np.testing.assert_array_equal(cut, z[:2])
    third = math.sqrt(0.94 * second**2 + 0.06 * 4e-4)
    assert after == pytest.approx(math.sqrt(0.94 * third**2 + 0.06 * 9e-4))


def test_rows_are_scaled_as_if_alone():
    returns = 0.01 * student(300, seed=1).reshape(3, 100)
    sigma = initial_sigma(returns[:, :8])
    z, after = scale_returns(returns, sigma)
    for row in range(3):
        alone, last = scale_returns(returns[row], sigma[row])
        np.testing.assert_array_equal(alone, z[row])
        assert last == after[row]


def test_a_path_read_from_its_bins_stays_within_a_bin_of_every_return():
    returns = 0.01 * np.clip(student(20 * 24, seed=2), -5, 5).reshape(20, 24)
    sigma = np.full(20, 0.01)
    path = to_path_bins(returns, sigma, BINS)
    read = unscale_returns(from_bins(BINS, path), sigma)
    again, _ = scale_returns(read, sigma)
    np.testing.assert_array_equal(BINS.to_bins(again), path)
    volatility = read / np.where(again == 0.0, 1.0, again)
    wide = np.where(again == 0.0, 1.0, bin_widths(BINS, path) * volatility)
    assert np.all(np.abs(read - returns) <= np.abs(wide))


def test_a_series_that_does_not_move_scales_to_zeros():
    z, after = scale_returns(np.zeros(400), 0.0)
    assert not z.any()
    assert after == MIN_SIGMA
    assert initial_sigma(np.zeros(5)) == MIN_SIGMA
    moved, _ = scale_returns(np.append(np.zeros(20_000), 0.05), 0.01)
    assert np.isfinite(moved).all()


def test_scaling_refuses_shapes_and_values_without_sense():
    with pytest.raises(ShapeMismatch):
        scale_returns(np.zeros((2, 3)), 0.01)
    with pytest.raises(ShapeMismatch):
        initial_sigma([])
    with pytest.raises(InvalidInput):
        scale_returns([0.1, math.nan], 0.01)
    with pytest.raises(InvalidInput):
        unscale_returns([0.1], -0.01)


def test_the_room_agrees_with_the_pure_functions_and_keeps_the_last():
    returns = 0.01 * student(100, seed=3)
    room = ScaledReturns()
    for value in returns:
        room.learn("A", float(value))
    sigma = initial_sigma(returns[:NUM_START_RETURNS])
    z, after = scale_returns(returns[NUM_START_RETURNS:], sigma)
    assert room.recent("A") == pytest.approx(z[-32:], rel=1e-12)
    assert len(room.recent("A")) == 32
    assert room.sigma("A") == pytest.approx(float(after), rel=1e-12)


def test_the_room_waits_for_a_start_that_moves():
    room = ScaledReturns()
    for _ in range(50):
        room.learn("A", 0.0)
    assert room.recent("A") == ()
    assert room.sigma("A") == 0.0
    assert room.recent("unknown") == ()
    room.learn("A", 0.02)
    assert room.recent("A") == ()
    assert room.sigma("A") == pytest.approx(0.02 / math.sqrt(8))
    room.learn("A", 0.0)
    assert room.recent("A") == (0.0,)


def test_the_room_survives_a_restart_anywhere():
    returns = [float(r) for r in 0.01 * student(60, seed=4)]
    for cut in (3, 8, 9, 50):
        through, before = ScaledReturns(), ScaledReturns()
        for value in returns:
            through.learn("A", value)
        for value in returns[:cut]:
            before.learn("A", value)
        after = ScaledReturns()
        after.restore(json.loads(json.dumps(before.state())))
        for value in returns[cut:]:
            before.learn("A", value)
            after.learn("A", value)
        assert after.state() == before.state() == through.state()


def test_the_room_refuses_a_return_that_is_not_finite():
    with pytest.raises(InvalidInput, match="returns of A"):
        ScaledReturns().learn("A", math.nan)
