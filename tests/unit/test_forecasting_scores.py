"""Scores against closed forms and against sums written out by hand."""

import math

import numpy as np
import pytest

from htfi.forecasting.config import LEVELS
from htfi.forecasting.scores import (
    coverage,
    crps,
    integration_weights,
    pinball,
    pit,
)
from htfi.forecasting.shapes import gaussian_quantiles

GRID = np.linspace(-6.0, 6.0, 4001)


def gaussian_crps(y: np.ndarray) -> np.ndarray:
    """Gneiting and Raftery 2007, eq. 21, for the standard normal."""
    cdf = np.array([0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in y])
    return y * (2.0 * cdf - 1.0) + 2.0 * density(y) - 1.0 / math.sqrt(math.pi)


def density(y: np.ndarray) -> np.ndarray:
    return np.exp(-y * y / 2.0) / math.sqrt(2.0 * math.pi)


def scored(levels: tuple[float, ...], y: np.ndarray) -> np.ndarray:
    quantiles = np.broadcast_to(gaussian_quantiles(levels), (len(y), len(levels)))
    return crps(quantiles, y, np.array(levels))


def test_crps_on_many_levels_is_the_gaussian_closed_form():
    levels = tuple(np.linspace(0.0025, 0.9975, 200).tolist())
    inner = np.abs(GRID) < 3.0
    np.testing.assert_allclose(scored(levels, GRID)[inner], gaussian_crps(GRID)[inner], atol=5e-4)


def test_crps_on_the_default_levels_is_within_three_percent_everywhere_and_one_on_average():
    ours, exact = scored(LEVELS, GRID), gaussian_crps(GRID)
    np.testing.assert_allclose(ours, exact, rtol=0.03)
    weight = density(GRID) * (GRID[1] - GRID[0])
    assert (ours * weight).sum() / (exact * weight).sum() == pytest.approx(0.992, abs=0.002)


def test_crps_is_least_for_the_true_scale():
    weight = density(GRID) * (GRID[1] - GRID[0])
    means = {}
    for scale in (0.7, 0.9, 1.0, 1.1, 1.4):
        quantiles = np.broadcast_to(scale * gaussian_quantiles(LEVELS), (len(GRID), len(LEVELS)))
        means[scale] = (crps(quantiles, GRID, np.array(LEVELS)) * weight).sum()
    assert min(means, key=means.__getitem__) == 1.0


def test_integration_cells_fill_the_unit_interval():
    np.testing.assert_allclose(integration_weights((0.1, 0.5, 0.6)), [0.3, 0.25, 0.45])
    assert integration_weights(LEVELS).sum() == pytest.approx(1.0, abs=1e-15)


def test_pinball_charges_each_side_by_its_level():
    losses = pinball(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([3.0, 0.0]), np.array([0.1, 0.9]))
    np.testing.assert_allclose(losses, [[0.2, 1.8], [0.9, 0.1]])


def test_coverage_counts_the_ends_as_inside():
    inside = coverage(np.zeros(4), np.ones(4), np.array([0.0, 0.5, 1.0, 1.1]))
    assert inside == 0.75
    assert math.isnan(coverage(np.zeros(0), np.zeros(0), np.zeros(0)))


def test_pit_of_draws_from_the_forecast_itself_is_uniform():
    # False alarm: a decile of 20,000 draws leaves 0.1 ± 0.0098 with probability below 4e-6; ten are read.
    draws = np.random.default_rng(7).standard_normal(20_000)
    levels = np.linspace(0.01, 0.99, 99)
    quantiles = np.broadcast_to(gaussian_quantiles(levels.tolist()), (len(draws), 99))
    share = np.histogram(pit(quantiles, draws, levels), bins=10, range=(0, 1))[0] / len(draws)
    np.testing.assert_allclose(share, 0.1, atol=0.0098)


def test_pit_beyond_the_outermost_quantiles_is_the_middle_of_the_tail():
    values = pit(np.array([[-1.0, 0.0, 1.0]] * 3), np.array([-5.0, 0.5, 5.0]), np.array([0.1, 0.5, 0.9]))
    np.testing.assert_allclose(values, [0.05, 0.7, 0.95])
