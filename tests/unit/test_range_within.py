"""The range within a bar as a measure of variance, on Brownian bars whose prices jump before they open."""

import math

import numpy as np
import pytest

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.panel import Panel

STEPS, DAYS = 400, 600
SIGMA, JUMP = 0.01, 0.012


def measured(drift: float, jump: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Parkinson's variance within, of the true range, and the squared move of the bar itself, day by day."""
    rng, panel, level = np.random.default_rng(seed), Panel((1,), 5.0), 0.0
    found: dict[str, list[float]] = {"within": [], "spanning": [], "square": []}
    for day in range(DAYS):
        level += jump * rng.standard_normal()
        path = level + np.concatenate(
            [[0.0], np.cumsum(drift / STEPS + SIGMA / math.sqrt(STEPS) * rng.standard_normal(STEPS))]
        )
        level = path[-1]
        first, high, low, last = (100.0 * math.exp(x) for x in (path[0], path.max(), path.min(), path[-1]))
        end_ns = (day + 1) * NS_PER_DAY
        batch = panel.enter(
            [
                Bar(
                    end_ns,
                    end_ns,
                    "test",
                    day + 1,
                    "A",
                    "1d",
                    end_ns - NS_PER_DAY,
                    end_ns,
                    first,
                    high,
                    low,
                    last,
                )
            ]
        )
        assert batch is not None
        found["within"].append(float(np.exp(batch.within_log_variance[0])))
        found["spanning"].append(float(batch.variance[0]))
        found["square"].append(float((path[-1] - path[0]) ** 2))
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.parametrize("jump", [0.0, JUMP])
def test_unbiased_whatever_moves_the_price_before_the_open(jump: float):
    """400 steps miss some 7% of the variance of a continuous path's range (Garman and Klass 1980)."""
    within = measured(0.0, jump)["within"]
    error = within.std() / math.sqrt(DAYS)
    assert 0.90 * SIGMA**2 - 3.0 * error < within.mean() < SIGMA**2 + 3.0 * error


def test_true_range_holds_the_opening_move_as_well():
    found = measured(0.0, JUMP)
    assert found["spanning"].mean() > 1.5 * found["within"].mean()


def test_as_exact_as_four_squared_moves():
    """Parkinson (1980): the range is 4.9 times less noisy than the squared move; discrete paths lose a little."""
    found = measured(0.0, 0.0)
    noise = {name: found[name].var() / found[name].mean() ** 2 for name in ("within", "square")}
    assert noise["square"] / noise["within"] > 3.5


def test_drift_of_half_a_deviation_adds_less_than_a_fifth():
    steady, drifting = measured(0.0, 0.0)["within"].mean(), measured(0.5 * SIGMA, 0.0)["within"].mean()
    assert steady < drifting < 1.2 * steady


def test_bar_without_a_range_has_the_variance_of_its_move():
    panel, batch = Panel((1,), 5.0), None
    for day, close in enumerate((100.0, 101.0, 99.5)):
        end_ns = (day + 1) * NS_PER_DAY
        batch = panel.enter(
            [Bar(end_ns, end_ns, "t", 1, "A", "1d", end_ns - NS_PER_DAY, end_ns, close, close, close, close)]
        )
    assert batch is not None
    np.testing.assert_array_equal(batch.within_log_variance, batch.log_variance)
