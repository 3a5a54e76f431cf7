"""GARCH experts against their recursion written plainly, and on series that tell little."""

import math

import numpy as np
import pytest
from scipy import stats

from checks import nonempty
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import LEVELS, SESSION_GAP_BARS, ForecastConfig
from htfi.forecasting.experts.garch import GarchTExpert, GjrTExpert
from htfi.forecasting.panel import Panel

CONFIG = ForecastConfig()
HIGH = LEVELS.index(0.95)


def bars_of(returns: np.ndarray, symbol: str = "A") -> list[Bar]:
    """Daily bars whose closes move by these log returns."""
    closes = 100.0 * np.exp(np.cumsum(returns))
    ends = (np.arange(len(returns)) + 1) * NS_PER_DAY
    before = np.concatenate([[100.0], closes[:-1]])
    return [
        Bar(end, end, "t", 1, symbol, "1d", end - NS_PER_DAY, end, a, max(a, b), min(a, b), b)
        for end, a, b in zip(ends.tolist(), before.tolist(), closes.tolist(), strict=True)
    ]


def fed(expert: GarchTExpert | GjrTExpert, *series: np.ndarray) -> np.ndarray:
    """Quantiles [n, H, Q] after all bars of series that end together."""
    panel = Panel(CONFIG.horizons, SESSION_GAP_BARS)
    expert.grow(len(series))
    for bars in zip(*(bars_of(each, f"S{k}") for k, each in enumerate(series)), strict=True):
        batch = panel.enter(bars)
        if batch is not None:
            expert.update(batch)
            expert.learn(batch)
    return expert.quantiles(slice(0, len(series)))


def normal(num: int, seed: int, sigma: float = 0.01) -> np.ndarray:
    return sigma * np.random.Generator(np.random.PCG64(seed)).standard_normal(num)


@pytest.mark.parametrize("expert", [GarchTExpert, GjrTExpert])
def test_forecast_is_the_recursion_summed_ahead_with_student_tails(expert: type):
    returns = normal(90, 1)
    gamma = {GarchTExpert: 0.0, GjrTExpert: 2.0 * 0.0588 * 0.6}[
        expert
    ]  # typical parameters, while too few bars are in for a fit
    alpha = 0.0588 - 0.5 * gamma
    beta, mean, var = 0.98 - 0.0588, 0.0, 0.0
    for age, move in enumerate(returns):
        mean += (move * move - mean) / (age + 1)
        var = var if age else mean
        var = 0.02 * mean + (alpha + gamma * (move < 0.0)) * move * move + beta * var
    quantiles = fed(expert(CONFIG), returns)[0]
    tails = stats.t.ppf(LEVELS, 5.0) * math.sqrt(3.0 / 5.0)
    for j, horizon in nonempty(enumerate(CONFIG.horizons)):
        total = sum(mean + 0.98**k * (var - mean) for k in range(horizon))
        np.testing.assert_allclose(quantiles[j], math.sqrt(total) * tails, rtol=2e-4, atol=1e-12)


@pytest.mark.parametrize("tail", [0.0172, 0.1, 0.207, 0.33, 0.4, 0.4721])
def test_tails_between_the_tables_nodes_are_those_of_the_student_t(tail: float):
    shape = GarchTExpert(CONFIG)._shape(np.array([tail]))[0, 0]
    expected = stats.t.ppf(LEVELS, 1.0 / tail) * math.sqrt(1.0 - 2.0 * tail)
    np.testing.assert_allclose(shape, expected, rtol=1e-3, atol=1e-9)


def test_fit_finds_the_persistence_and_the_tails_of_its_series():
    rng = np.random.Generator(np.random.PCG64(6))
    quick, slow = np.empty(600), np.empty(600)
    for returns, (alpha, beta) in ((quick, (0.3, 0.55)), (slow, (0.03, 0.96))):
        var = 1e-4
        for t in range(600):
            returns[t] = math.sqrt(var) * rng.standard_t(4.0) * math.sqrt(0.5)
            var = 1e-4 * (1.0 - alpha - beta) + alpha * returns[t] ** 2 + beta * var
    expert = GarchTExpert(CONFIG)
    fed(expert, quick, slow)
    climbed = expert.state()["climbed"]
    assert climbed[0, 1] < 0.97 < climbed[1, 1]
    assert climbed[0, 1] * climbed[0, 2] > 1.25 * climbed[1, 1] * climbed[1, 2]
    assert ((climbed[:2, 4] > 0.15) & (climbed[:2, 4] < 0.4)).all()


def test_a_fall_widens_the_band_of_gjr_more_than_a_rise():
    calm = normal(60, 2)
    falls, rises = fed(GjrTExpert(CONFIG), np.append(calm, -0.05), np.append(calm, 0.05))
    assert falls[0, HIGH] > 1.2 * rises[0, HIGH]
    alike = fed(GarchTExpert(CONFIG), np.append(calm, -0.05), np.append(calm, 0.05))
    np.testing.assert_allclose(alike[0], alike[1], rtol=1e-12)


@pytest.mark.parametrize("expert", [GarchTExpert, GjrTExpert])
def test_band_widens_in_a_storm_and_less_far_ahead(expert: type):
    calm, storm = normal(400, 3), np.concatenate([normal(385, 3), normal(15, 4, 0.04)])
    before, after = fed(expert(CONFIG), calm, storm)[:, :, HIGH]
    assert after[0] > 2.0 * before[0]
    assert after[2] / before[2] < 0.97 * after[0] / before[0]


@pytest.mark.parametrize("expert", [GarchTExpert, GjrTExpert])
def test_silent_until_twenty_bars_are_in(expert: type):
    assert np.isnan(fed(expert(CONFIG), normal(19, 5))).all()
    assert np.isfinite(fed(expert(CONFIG), normal(20, 5))).all()


@pytest.mark.parametrize("expert", [GarchTExpert, GjrTExpert])
def test_one_series_is_forecast_the_same_beside_others(expert: type):
    series = [normal(260, seed, sigma) for seed, sigma in enumerate((0.003, 0.01, 0.05))]
    panel = Panel(CONFIG.horizons, SESSION_GAP_BARS)
    alone = expert(CONFIG)
    alone.grow(1)
    for bar in bars_of(series[1], "S1"):
        batch = panel.enter([bar])
        assert batch is not None
        alone.update(batch)
        alone.learn(batch)
    np.testing.assert_array_equal(fed(expert(CONFIG), *series)[1], alone.quantiles(slice(0, 1))[0])


def wild(num: int, seed: int) -> np.ndarray:
    returns = normal(num, seed)
    returns[50:num:40] = 2.0 * (-1.0) ** np.arange(len(returns[50:num:40]))
    return returns


@pytest.mark.parametrize(
    ("expert", "returns"),
    [
        (GarchTExpert, wild(400, 8)),
        (GjrTExpert, wild(400, 8)),
        (GarchTExpert, np.concatenate([normal(300, 9), np.zeros(700), normal(60, 10)])),
        (GjrTExpert, np.concatenate([normal(300, 9), np.zeros(700), normal(60, 10)])),
        pytest.param(GjrTExpert, normal(12_600, 11), marks=pytest.mark.slow),
    ],
    ids=["wild prints", "wild prints, gjr", "a halt", "a halt, gjr", "fifty years"],
)
def test_ugly_history_leaves_a_sane_band(expert: type, returns: np.ndarray):
    usual = 0.01645 * np.sqrt(CONFIG.horizons)
    band = fed(expert(CONFIG), returns)[0, :, HIGH]
    assert (band > 0.5 * usual).all()
    assert (band < 4.0 * usual).all()


@pytest.mark.parametrize("expert", [GarchTExpert, GjrTExpert])
def test_price_that_stops_keeps_the_risk_it_had(expert: type):
    before, after = (fed(expert(CONFIG), np.append(normal(300, 9), np.zeros(num))) for num in (5, 400))
    np.testing.assert_array_equal(before, after)


def test_work_of_fitting_is_even_over_bars(monkeypatch: pytest.MonkeyPatch):
    expert, fitted = GarchTExpert(CONFIG), []
    refit = expert._refit
    monkeypatch.setattr(expert, "_refit", lambda rows: (fitted.append(len(rows)), refit(rows)))
    fed(expert, *(normal(160, seed) for seed in range(100)))
    assert sum(fitted) == pytest.approx(100 * 60 / 20, rel=0.25)
    assert (
        max(fitted) <= 30
    )  # of 100: the first fit comes at the tenth bars from 100 on, in the rota of names
