"""Each expert against its formula written plainly, and against data whose law is known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import LEVELS, SESSION_GAP_BARS, ForecastConfig
from htfi.forecasting.experts import EXPERTS, build_experts
from htfi.forecasting.experts.baselines import EwmaExpert, HistoricalSimulationExpert, RandomWalkExpert
from htfi.forecasting.experts.har import LogRangeHarExpert
from htfi.forecasting.experts.market_har import COMMON, MarketHarExpert
from htfi.forecasting.panel import Panel
from htfi.forecasting.ports import Expert
from htfi.forecasting.shapes import gaussian_quantiles, student_quantiles

CONFIG = ForecastConfig()
HIGH = LEVELS.index(0.95)
ALL = slice(0, 1)
STEPS = 32


def daily(day: int, path: np.ndarray, symbol: str = "A") -> Bar:
    """A daily bar of the log prices `path`, the first being the open."""
    prices = 100.0 * np.exp(path)
    start_ns = day * NS_PER_DAY
    return Bar(
        available_at_ns=start_ns + NS_PER_DAY,
        event_time_ns=start_ns + NS_PER_DAY,
        source="test",
        row=day + 1,
        symbol=symbol,
        interval="1d",
        start_ns=start_ns,
        end_ns=start_ns + NS_PER_DAY,
        open=float(prices[0]),
        high=float(prices.max()),
        low=float(prices.min()),
        close=float(prices[-1]),
    )


def market(sigmas: np.ndarray, seed: int = 0) -> list[Bar]:
    """Daily bars of a Gaussian path of `STEPS` steps a day with these daily volatilities."""
    rng, level, bars = np.random.default_rng(seed), 0.0, []
    for day, sigma in enumerate(sigmas):
        path = level + np.concatenate([[0.0], np.cumsum(rng.normal(0.0, sigma / math.sqrt(STEPS), STEPS))])
        bars.append(daily(day, path))
        level = path[-1]
    return bars


def fed(expert: Expert, bars: list[Bar]) -> np.ndarray:
    """Quantiles [H, Q] after all bars."""
    panel = Panel(CONFIG.horizons, SESSION_GAP_BARS)
    expert.grow(1)
    for bar in bars:
        batch = panel.enter([bar])
        assert batch is not None
        expert.update(batch)
        expert.learn(batch)
    return expert.quantiles(ALL)[0]


def returns_of(bars: list[Bar]) -> np.ndarray:
    closes = np.log([bar.close for bar in bars])
    return np.diff(closes, prepend=math.log(bars[0].open))


def test_random_walk_is_the_sample_deviation_of_twenty_returns_times_root_h():
    bars = market(np.full(60, 0.01))
    sigma = returns_of(bars)[-20:].std(ddof=1)
    expected = sigma * np.sqrt([[1.0], [5.0], [22.0]]) * gaussian_quantiles(LEVELS)
    np.testing.assert_allclose(fed(RandomWalkExpert(CONFIG), bars), expected, rtol=1e-9)


def test_ewma_is_the_riskmetrics_recursion_with_student_tails():
    bars = market(np.full(90, 0.01))
    var = 0.0
    for age, move in enumerate(returns_of(bars)):
        var += max(1.0 / (age + 1), 0.06) * (move * move - var)
    shapes = np.array([student_quantiles(LEVELS, freedom) for freedom in (5.0, 9.0, 26.0)])
    expected = math.sqrt(var) * np.sqrt([[1.0], [5.0], [22.0]]) * shapes
    np.testing.assert_allclose(fed(EwmaExpert(CONFIG), bars), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("expert", "needed"),
    [(RandomWalkExpert, 20), (EwmaExpert, 20), (HistoricalSimulationExpert, 20), (LogRangeHarExpert, 22)],
)
def test_expert_is_silent_until_its_history_suffices(expert: type, needed: int):
    bars = market(np.full(needed, 0.01))
    assert np.isnan(fed(expert(CONFIG), bars[:-1])).all()
    assert np.isfinite(fed(expert(CONFIG), bars)).all()


@pytest.mark.parametrize("expert", [HistoricalSimulationExpert, LogRangeHarExpert])
def test_constant_volatility_is_found_whatever_the_unit_of_the_range(expert: type):
    quantiles = fed(expert(CONFIG), market(np.full(1200, 0.01), seed=1))
    assert quantiles[0, HIGH] == pytest.approx(0.01645, rel=0.25)  # one day's range moves it
    assert quantiles[2, HIGH] == pytest.approx(0.01645 * math.sqrt(22), rel=0.25)


@pytest.mark.parametrize(
    "expert", [RandomWalkExpert, EwmaExpert, HistoricalSimulationExpert, LogRangeHarExpert]
)
def test_band_widens_when_the_market_turns_wild(expert: type):
    calm, wild = np.full(300, 0.005), np.full(15, 0.03)
    before = fed(expert(CONFIG), market(calm))[0, HIGH]
    after = fed(expert(CONFIG), market(np.concatenate([calm, wild])))[0, HIGH]
    assert after > 2.0 * before


def test_har_learns_that_volatility_reverts():
    rng = np.random.default_rng(4)
    log_vol = np.zeros(1500)
    for day in range(1, len(log_vol)):  # a half-life of two days: no month of memory
        log_vol[day] = 0.7 * log_vol[day - 1] + 0.3 * rng.standard_normal()
    log_vol[-1] = 1.2
    quantiles = fed(LogRangeHarExpert(CONFIG), market(0.01 * np.exp(log_vol), seed=4))
    a_day, a_month = quantiles[0, HIGH], quantiles[2, HIGH] / math.sqrt(22)
    assert a_day > 1.25 * a_month


def test_historical_simulation_shows_the_fat_tails_of_its_residuals():
    rng = np.random.default_rng(8)
    shocks = 0.01 * np.where(rng.random(1500) < 0.04, 5.0, 0.7)
    quantiles = fed(HistoricalSimulationExpert(CONFIG), market(shocks, seed=9))[0]
    assert quantiles[LEVELS.index(0.99)] / quantiles[LEVELS.index(0.8)] > 1.15 * (2.326 / 0.842)


def test_historical_simulation_shows_skew_where_residuals_are_many():
    rng, level, bars = np.random.default_rng(3), 0.0, []
    for day in range(1200):
        fall = -0.03 if rng.random() < 0.08 else 0.0026
        path = level + np.linspace(0.0, fall + 0.004 * rng.standard_normal(), 9)
        bars.append(daily(day, path))
        level = path[-1]
    quantiles = fed(HistoricalSimulationExpert(CONFIG), bars)[0]
    assert -quantiles[LEVELS.index(0.05)] > 1.3 * quantiles[LEVELS.index(0.95)]
    assert quantiles[LEVELS.index(0.5)] == 0.0


@pytest.mark.parametrize("expert", [HistoricalSimulationExpert, LogRangeHarExpert])
def test_one_wild_print_widens_the_band_for_days_not_for_years(expert: type):
    bars = market(np.full(500, 0.01), seed=2)
    spiked = [*bars[:300], daily(300, np.array([0.0, 2.3])), *bars[301:]]
    clean, after = fed(expert(CONFIG), bars), fed(expert(CONFIG), spiked)
    np.testing.assert_allclose(after[0, HIGH], clean[0, HIGH], rtol=0.2)


def test_every_expert_but_that_on_the_market_is_vectorised_the_same_as_alone():
    config = replace(CONFIG, experts=tuple(name for name in EXPERTS if name != "market_har"))
    together = build_experts(config)
    panel = Panel(config.horizons, SESSION_GAP_BARS)
    series = [market(np.full(80, sigma), seed=seed) for seed, sigma in enumerate((0.003, 0.01, 0.03))]
    for expert in together:
        expert.grow(3)
    for day in range(80):
        batch = panel.enter([daily_as(bars[day], name) for bars, name in zip(series, "ABC", strict=True)])
        assert batch is not None
        for expert in together:
            expert.update(batch)
            expert.learn(batch)
    for expert, alone in zip(together, build_experts(config), strict=True):
        expected = fed(alone, [daily_as(bar, "B") for bar in series[1]])
        np.testing.assert_allclose(expert.quantiles(slice(0, 3))[1], expected, rtol=1e-12)


def daily_as(bar: Bar, symbol: str) -> Bar:
    fields = {name: getattr(bar, name) for name in Bar.__struct_fields__} | {"symbol": symbol}
    return Bar(**fields)


@pytest.mark.parametrize("num_active", [0, 300])
@pytest.mark.parametrize("expert", [HistoricalSimulationExpert, LogRangeHarExpert])
def test_series_that_wakes_from_years_of_one_price_is_soon_forecast_well(expert: type, num_active: int):
    active, later = market(np.full(num_active, 0.01), seed=5), market(np.full(250, 0.01), seed=6)
    last = math.log(active[-1].close / 100.0) if active else 0.0
    still = [daily(day, np.full(2, last)) for day in range(num_active, num_active + 1000)]
    awake = [*active, *still, *(shifted(bar, num_active + 1000) for bar in later)]
    clean = fed(expert(CONFIG), later)
    np.testing.assert_allclose(fed(expert(CONFIG), awake)[0, HIGH], clean[0, HIGH], rtol=0.4)


def shifted(bar: Bar, days: int) -> Bar:
    fields = {name: getattr(bar, name) for name in Bar.__struct_fields__}
    return Bar(
        **fields | {"start_ns": bar.start_ns + days * NS_PER_DAY, "end_ns": bar.end_ns + days * NS_PER_DAY}
    )


def test_expert_on_the_market_knows_of_a_storm_that_has_not_reached_its_series():
    """Two worlds alike but for the other series of the last days: the quiet one's band is wider beside wild ones."""
    calm = [market(np.full(400, 0.01), seed=seed) for seed in range(8)]
    wild = [
        market(np.concatenate([np.full(395, 0.01), np.full(5, 0.05)]), seed=seed) if seed else bars
        for seed, bars in enumerate(calm)
    ]
    bands = []
    for world in (calm, wild):
        expert, panel = MarketHarExpert(CONFIG), Panel(CONFIG.horizons, SESSION_GAP_BARS)
        expert.grow(8)
        for day in range(400):
            batch = panel.enter([daily_as(bars[day], f"S{place}") for place, bars in enumerate(world)])
            assert batch is not None
            expert.update(batch)
            expert.learn(batch)
        bands.append(expert.quantiles(slice(0, 1))[0, :, HIGH])
    assert (bands[1] > 1.05 * bands[0]).all()


def walk_together(series: list[list[Bar]]) -> MarketHarExpert:
    expert, panel = MarketHarExpert(CONFIG), Panel(CONFIG.horizons, SESSION_GAP_BARS)
    expert.grow(len(series))
    for day in range(len(series[0])):
        batch = panel.enter([daily_as(bars[day], f"S{place}") for place, bars in enumerate(series)])
        assert batch is not None
        expert.update(batch)
        expert.learn(batch)
    return expert


def driven(loading: float, common: np.ndarray, seed: int) -> list[Bar]:
    """Bars whose moves are a common one times a loading, and a little of their own."""
    rng, level, bars = np.random.default_rng(seed), 0.0, []
    for day, move in enumerate(common.tolist()):
        path = level + np.array([0.0, loading * move + 0.003 * rng.standard_normal()])
        bars.append(daily(day, path))
        level = path[-1]
    return bars


def test_common_move_counts_those_that_move_against_the_others_with_their_sign():
    """Three series rise together and one falls: the plain mean would halve, the common move is that of all four."""
    common = 0.01 * np.random.default_rng(2).standard_normal(600)
    common[-1] = 0.03
    expert = walk_together(
        [driven(loading, common, seed) for seed, loading in enumerate((1.0, 1.0, 1.0, -1.0))]
    )
    loadings = expert.state()["bars"]["loading"][:4]
    assert loadings[:3] == pytest.approx(np.ones(3), abs=0.3)
    assert loadings[3] == pytest.approx(-1.0, abs=0.3)
    moved = expert.state()["bars"]["newest"][:4, COMMON]
    assert moved[0] > 2.5  # in usual deviations, of 0.03 where 0.01 is usual
    assert (moved == moved[0]).all()


def test_common_move_of_series_that_have_none_is_small_on_a_day_on_which_all_are_wild():
    rng = np.random.default_rng(5)
    series = [driven(1.0, np.append(0.01 * rng.standard_normal(249), 0.03 * (-1) ** k), k) for k in range(8)]
    assert walk_together(series).state()["bars"]["newest"][0, COMMON] < 1.0


def test_too_few_series_have_no_common_move():
    expert = walk_together([market(np.full(60, 0.01), seed=seed) for seed in range(2)])
    assert (expert.state()["bars"]["newest"][:2, COMMON] == 0.0).all()


def test_expert_on_the_market_goes_on_bit_for_bit_from_its_state():
    bars = market(np.full(200, 0.01), seed=3)
    whole, first, second = MarketHarExpert(CONFIG), MarketHarExpert(CONFIG), MarketHarExpert(CONFIG)
    expected = fed(whole, bars)
    panel = Panel(CONFIG.horizons, SESSION_GAP_BARS)
    first.grow(1)
    second.grow(1)
    for day, bar in enumerate(bars):
        batch = panel.enter([bar])
        assert batch is not None
        expert = first if day < 120 else second
        if day == 120:
            second.restore(first.state())
        expert.update(batch)
        expert.learn(batch)
    np.testing.assert_array_equal(second.quantiles(slice(0, 1))[0], expected)
