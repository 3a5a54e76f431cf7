"""Moves back to a level are expected of series that have shown them, and of no others."""

import numpy as np

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.mean_reversion import MeanReversion
from htfi.forecasting.panel import Panel

HORIZONS = (1, 5, 22)


def log_prices(num: int, pull: float, seed: int, sigma: float = 0.07) -> np.ndarray:
    """A log price that is drawn to 3 by a share `pull` of its distance a bar."""
    rng, path = np.random.default_rng(seed), [3.0]
    for noise in sigma * rng.standard_normal(num - 1):
        path.append(path[-1] + pull * (3.0 - path[-1]) + noise)
    return np.array(path)


def bars_of(path: np.ndarray, symbol: str = "FEAR") -> list[Bar]:
    prices = np.exp(path)
    found = []
    for t in range(1, len(prices)):
        start_ns = (1_000_000_000 * NS_PER_S) // NS_PER_DAY * NS_PER_DAY + t * NS_PER_DAY
        first, last = float(prices[t - 1]), float(prices[t])
        low, high = 0.99 * min(first, last), 1.01 * max(first, last)
        end_ns = start_ns + NS_PER_DAY
        found.append(Bar(end_ns, end_ns, "t", t, symbol, "1d", start_ns, end_ns, first, high, low, last, 1.0))
    return found


def walked(path: np.ndarray) -> tuple[MeanReversion, np.ndarray]:
    """The state after a path, and whether it was held to return after each bar."""
    panel, reversion = Panel(HORIZONS, 5.0), MeanReversion(HORIZONS)
    reversion.grow(1)
    on = []
    for bar in bars_of(path):
        batch = panel.enter([bar])
        assert batch is not None
        reversion.update(batch, panel.paths_of(batch.index))
        reversion.learn(batch, np.array([True]))
        on.append(bool(reversion.returns(batch.index)[0]))
    return reversion, np.array(on)


def test_a_series_that_returns_is_found_after_enough_bars_and_expected_to_move_back() -> None:
    path = log_prices(1500, 0.04, 3)
    reversion, on = walked(path)
    assert not on[:500].any()
    assert on[-200:].all()
    coming = reversion.coming(slice(0, 1))[0]
    assert np.sign(coming[0]) == np.sign(path.mean() - path[-1])
    assert abs(coming[0]) < abs(coming[1]) < abs(coming[2])


def test_few_random_walks_are_taken_for_series_that_return() -> None:
    shares = [walked(log_prices(1200, 0.0, seed))[1].mean() for seed in range(5)]
    assert np.mean(shares) < 0.05


def test_a_level_that_has_moved_for_good_ends_it() -> None:
    path = log_prices(1500, 0.06, 3)
    _, on = walked(np.concatenate([path, path[-1] + np.arange(1, 900) * 0.01]))
    assert on[1400]
    assert not on[-1]


def test_forecasts_of_a_series_that_returns_are_better_and_centred_on_the_way_back() -> None:
    path = np.append(log_prices(1000, 0.05, 6), 3.4)
    config = ForecastConfig(horizons=HORIZONS)
    f = Forecaster(config, build_experts(config))
    plain_config = ForecastConfig(
        horizons=HORIZONS,
        experts=("ewma", "historical_simulation", "log_range_har", "market_har", "random_walk"),
    )
    plain = Forecaster(plain_config, build_experts(plain_config))
    for bar in bars_of(path):
        f.observe([bar])
        plain.observe([bar])
    assert f.returning == ["FEAR/1d"]
    assert plain.returning == []
    middle = f.forecast(["FEAR/1d"]).quantiles[0, 2, config.levels.index(0.5)]
    assert np.sign(middle) == np.sign(3.0 - path[-1])
    ours, theirs = (
        {row.horizon: row.crps for row in one.scores() if row.name == "fused"} for one in (f, plain)
    )
    assert ours[22] < 0.97 * theirs[22]
    again = Forecaster(config, build_experts(config))
    again.restore(f.state())
    assert again.returning == ["FEAR/1d"]
