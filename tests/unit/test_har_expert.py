"""HAR in levels against least squares written plainly, and where it must not follow its regression."""

import math

import numpy as np
import pytest

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import LEVELS, SESSION_GAP_BARS, ForecastConfig
from htfi.forecasting.experts.har import HarExpert
from htfi.forecasting.panel import Panel

CONFIG = ForecastConfig()
HIGH = LEVELS.index(0.95)
STEPS = 24


def bars_of(sigmas: np.ndarray, seed: int) -> list[Bar]:
    """Daily bars of Gaussian paths with these volatilities."""
    rng, level, bars = np.random.Generator(np.random.PCG64(seed)), math.log(100.0), []
    for day, sigma in enumerate(sigmas.tolist()):
        steps = np.concatenate([[0.0], rng.normal(0.0, sigma / math.sqrt(STEPS), STEPS)])
        prices = np.exp(level + np.cumsum(steps))
        end = (day + 1) * NS_PER_DAY
        shape = (float(prices[0]), float(prices.max()), float(prices.min()), float(prices[-1]))
        bars.append(Bar(end, end, "t", 1, "A", "1d", end - NS_PER_DAY, end, *shape))
        level = math.log(prices[-1])
    return bars


def fed(expert: HarExpert, bars: list[Bar]) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles [H, Q] after all bars, and every bar's variance [T]."""
    panel, variances = Panel(CONFIG.horizons, SESSION_GAP_BARS), []
    expert.grow(1)
    for bar in bars:
        batch = panel.enter([bar])
        assert batch is not None
        variances.append(batch.variance[0])
        expert.update(batch)
        expert.learn(batch)
    return expert.quantiles(slice(0, 1))[0], np.array(variances)


def wandering(num: int, seed: int, memory: float) -> np.ndarray:
    rng, log_vol = np.random.Generator(np.random.PCG64(seed)), np.zeros(num)
    for day in range(1, num):
        log_vol[day] = memory * log_vol[day - 1] + 0.25 * rng.standard_normal()
    return 0.01 * np.exp(log_vol)


def test_coefficients_are_those_of_weighted_least_squares():
    expert = HarExpert(CONFIG)
    _, variance = fed(expert, bars_of(wandering(900, 1, 0.9), 2))
    num, keep = len(variance), 0.5 ** (1 / 350)
    level = np.empty(num)
    total = 0.0
    for t in range(num):
        total += (variance[t] - total) / min(t + 1, 500)
        level[t] = total
    week, month = (np.convolve(variance, np.ones(w) / w)[:num] for w in (5, 22))
    x = np.stack([level, variance, week, month], axis=1)
    prior = np.array([0.1, 0.25, 0.35, 0.30])
    fitted = expert._fit.columns["beta"][0, 0]
    # one bar ahead; the weights follow from the coefficients known at the time, here those at the end
    gram, moment = 100.0 * np.eye(4), 100.0 * prior
    for t in range(21, num - 1):
        expected = x[t] @ fitted
        row, outcome = x[t] / expected, min(variance[t + 1] / expected, 10.0)
        gram = gram * keep + np.outer(row, row) + (1 - keep) * 100.0 * np.eye(4)
        moment = moment * keep + row * outcome + (1 - keep) * 100.0 * prior
    np.testing.assert_allclose(fitted, np.linalg.solve(gram, moment), atol=0.04)


def test_where_volatility_reverts_yesterday_counts_less_the_further_the_horizon():
    expert = HarExpert(CONFIG)
    fed(expert, bars_of(wandering(1500, 4, 0.6), 5))
    level, day, _, _ = expert._fit.columns["beta"][0].T
    assert day[0] > 1.5 * day[2]
    assert level[2] > 1.2 * level[0]


def test_constant_volatility_is_found():
    """The mean of six paths; that of one is off by 13%, being read off its own 900 bars."""
    found = [fed(HarExpert(CONFIG), bars_of(np.full(900, 0.01), seed))[0][:, HIGH] for seed in range(6)]
    np.testing.assert_allclose(np.mean(found, axis=0), 0.01645 * np.sqrt(CONFIG.horizons), rtol=0.15)


def test_variance_stays_positive_where_the_regression_says_otherwise():
    expert = HarExpert(CONFIG)
    bars = bars_of(np.full(60, 0.01), 7)
    fed(expert, bars)
    expert._fit.columns["beta"][:] = [-1.0, -1.0, -1.0, -1.0]
    panel = Panel(CONFIG.horizons, SESSION_GAP_BARS)
    for bar in bars:
        batch = panel.enter([bar])
    assert batch is not None
    expert.update(batch)
    quantiles = expert.quantiles(slice(0, 1))[0]
    assert (quantiles[:, HIGH] > 0.2 * 0.01645).all()


def test_one_wild_print_widens_the_band_for_weeks_not_for_years():
    bars = bars_of(np.full(420, 0.01), 8)
    last = bars[299]
    spiked = Bar(
        *(getattr(last, name) if name != "high" else 3.0 * last.high for name in Bar.__struct_fields__)
    )
    clean, _ = fed(HarExpert(CONFIG), bars)
    after, _ = fed(HarExpert(CONFIG), [*bars[:299], spiked, *bars[300:]])
    np.testing.assert_allclose(after[:, HIGH], clean[:, HIGH], rtol=0.35)


@pytest.mark.parametrize(("num", "speaks"), [(21, False), (22, True)])
def test_silent_until_a_month_is_in(num: int, speaks: bool):
    quantiles, _ = fed(HarExpert(CONFIG), bars_of(np.full(num, 0.01), 9))
    assert np.isfinite(quantiles).all() == speaks
