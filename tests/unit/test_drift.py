"""Series that carry a premium share a drift in log return, whatever their volatility; others have none."""

import numpy as np
import pytest

from htfi.domain.decision import TICKS_PER_UNIT
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.kinds import trading_days

FIRST_NS = 1_000_000_000 * NS_PER_S // NS_PER_DAY * NS_PER_DAY
PRIOR = 0.075 / 252  # log return of a day


def walked(returns: dict[str, np.ndarray], interval: str = "1d", length_ns: int = NS_PER_DAY) -> Forecaster:
    """A forecaster after bars with these log returns."""
    config = ForecastConfig()
    forecaster = Forecaster(config, build_experts(config))
    price = dict.fromkeys(returns, 100.0)
    for t in range(len(next(iter(returns.values())))):
        bars: list[Bar] = []
        for symbol, moves in returns.items():
            first, last = price[symbol], price[symbol] * float(np.exp(moves[t]))
            price[symbol] = last
            start, end = FIRST_NS + t * length_ns, FIRST_NS + (t + 1) * length_ns
            low, high = 0.997 * min(first, last), 1.003 * max(first, last)
            bars.append(Bar(end, end, "t", t, symbol, interval, start, end, first, high, low, last, 1.0))
        forecaster.observe(bars)
    return forecaster


def expected(forecaster: Forecaster, series: str) -> np.ndarray:
    """What is expected of a series over 1, 5 and 22 bars, by the one expert whose bands are even about it."""
    batch = forecaster.forecast([series])
    middle = batch.levels.index(0.5)
    return batch.experts[0, batch.names.index("random_walk"), :, middle]


def noise(num: int, sigma: float, seed: int, mean: float = 0.0) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal(num)
    return mean + sigma * (found - found.mean()) / found.std()


def test_calm_and_wild_shares_drift_alike_and_further_over_more_bars() -> None:
    forecaster = walked({"CALM": noise(120, 0.01, 1), "WILD": noise(120, 0.03, 2)})
    calm, wild = expected(forecaster, "CALM/1d"), expected(forecaster, "WILD/1d")
    assert calm == pytest.approx(wild)
    assert calm == pytest.approx(calm[0] * np.array([1, 5, 22]), abs=2e-8)
    assert 0.7 * PRIOR < calm[0] < PRIOR  # 120 days without a drift move the prior little


def test_a_series_that_hardly_moves_drifts_no_further_than_a_share_of_its_deviation() -> None:
    forecaster = walked({"BILL": noise(120, 0.001, 1)})
    assert 0.0 < expected(forecaster, "BILL/1d")[0] < 0.8 / 252**0.5 * 0.004


def test_bands_that_were_even_about_zero_are_so_about_the_drift_to_the_tick() -> None:
    forecaster = walked({"CALM": noise(60, 0.01, 1), "WILD": noise(60, 0.03, 2)})
    batch = forecaster.forecast(["CALM/1d", "WILD/1d"])
    of_walk = batch.experts[:, batch.names.index("random_walk")]
    ticks = np.rint(of_walk * TICKS_PER_UNIT).astype(np.int64)
    middle = ticks[..., batch.levels.index(0.5)]
    assert (middle != 0).all()
    assert (ticks + ticks[..., ::-1] == 2 * middle[..., None]).all()


def test_pairs_yields_wild_series_and_parts_of_a_day_do_not_drift() -> None:
    daily = walked({"EURUSD": noise(60, 0.006, 1), "COIN": noise(60, 0.08, 2), "US10Y": noise(60, 0.01, 3)})
    assert not expected(daily, "US10Y/1d").any()
    assert not expected(daily, "EURUSD/1d").any()
    assert not expected(daily, "COIN/1d").any()
    hourly = walked({"SHARE": noise(60, 0.004, 1)}, "1h", 3600 * NS_PER_S)
    assert not expected(hourly, "SHARE/1h").any()


def test_what_came_moves_the_prior_as_far_as_it_says_anything() -> None:
    rising = expected(walked({"UP": noise(2_000, 0.01, 1, 0.0004)}), "UP/1d")[0]
    falling = expected(walked({"DOWN": noise(2_000, 0.01, 1, -0.0004)}), "DOWN/1d")[0]
    weight = 2_000 / (2_000 + (0.01 * 252 / 0.04) ** 2)  # of the mean of 2,000 returns beside the prior
    assert rising == pytest.approx(PRIOR + weight * (0.0004 - PRIOR), rel=0.05)
    assert falling == pytest.approx(PRIOR - weight * (0.0004 + PRIOR), rel=0.05)


def test_a_week_drifts_five_times_as_far_as_a_day() -> None:
    days = expected(walked({"SHARE": noise(40, 0.01, 1)}), "SHARE/1d")[0]
    weeks = expected(walked({"SHARE": noise(40, 0.02, 1)}, "7d", 7 * NS_PER_DAY), "SHARE/7d")[0]
    assert weeks == pytest.approx(5 * days, rel=0.1)
    assert trading_days(0) == 0.0
    assert trading_days(NS_PER_DAY // 2) == 0.5
    assert trading_days(7 * NS_PER_DAY) == 5.0


def test_experts_learn_from_what_the_drift_leaves() -> None:
    """Outcomes that are the drift and nothing else leave experts no median of their own."""
    moves = noise(700, 0.01, 3, PRIOR)
    forecaster = walked({"SHARE": moves})
    batch = forecaster.forecast(["SHARE/1d"])
    middle = batch.levels.index(0.5)
    assert batch.quantiles[0, 2, middle] == pytest.approx(22 * PRIOR, abs=0.05 * 0.01 * 22**0.5)


def test_a_restored_forecaster_drifts_on_as_it_did() -> None:
    forecaster = walked({"SHARE": noise(90, 0.01, 1, 0.002)})
    again = Forecaster(ForecastConfig(), build_experts(ForecastConfig()))
    again.restore(forecaster.state())
    assert expected(again, "SHARE/1d").tolist() == expected(forecaster, "SHARE/1d").tolist()
