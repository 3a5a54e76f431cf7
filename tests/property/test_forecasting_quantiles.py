"""Whatever the bars: quantiles finite and never crossing, and no memory lost between runs."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.domain.decision import Forecast
from htfi.domain.events import Bar
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.fusion import combine

CONFIG = ForecastConfig(residual_window_bars=40)
LENGTH_NS = 60 * 10**9
price = st.one_of(
    st.floats(min_value=90.0, max_value=110.0),
    st.sampled_from([100.0, 100.0, 1e-300, 1e300, 5e-324, float("nan"), float("inf"), 0.0, -1.0]),
)
step = st.tuples(price, price, price, price, st.sampled_from([0, 0, 0, 400 * LENGTH_NS]), st.integers(0, 7))


def bars_of(steps: list[tuple[float, float, float, float, int, int]], interval: str) -> list[list[Bar]]:
    """Up to three series; a bit of the last number says which of them have a bar at that instant."""
    clock_ns, instants = 0, []
    for open_, high, low, close, pause_ns, members in steps:
        clock_ns += LENGTH_NS + pause_ns
        end_ns = clock_ns + LENGTH_NS
        shape = (interval, clock_ns, end_ns, open_, high, low)
        instants.append(
            [
                Bar(end_ns, end_ns, "test", 1, name, *shape, close * (1.0 + 0.01 * k))
                for k, name in enumerate("ABC")
                if members >> k & 1
            ]
        )
    return instants


def assert_sound(record: Forecast) -> None:
    for table in (record.quantiles, *record.experts.values()):
        array = np.array(table)
        assert np.isfinite(array).all()
        assert (np.diff(array, axis=1) >= 0.0).all()
    weights = np.array(list(record.weights.values()))  # [K, H, Z]
    assert (weights >= 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, atol=1e-9)
    assert combine(record.experts, record.weights, record.calibration, record.levels) == record.quantiles


# The wild steps come in blocks, so that short examples still pass the experts' warm-up.
wild_market = st.lists(
    st.tuples(st.lists(step, min_size=1, max_size=6), st.integers(1, 12)), min_size=1, max_size=12
).map(lambda blocks: [each for block, times in blocks for each in block * times])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wild_market, st.sampled_from(["60s", "1d", "volume:5000"]))
def test_quantiles_are_finite_and_never_cross_over_any_bars(steps, interval):
    assert num_sound_forecasts(steps, interval) <= 3 * len(steps)  # a wild market may leave none


def test_a_steady_market_is_forecast_once_the_experts_are_warm() -> None:
    steps = [(100.0, 101.0, 99.0, 100.0 + k % 3, 0, 7) for k in range(60)]
    assert num_sound_forecasts(steps, "1d") > 60


def num_sound_forecasts(steps: list[tuple[float, float, float, float, int, int]], interval: str) -> int:
    """How many forecasts were made over these bars; each of them is asserted to be sound."""
    forecaster = Forecaster(CONFIG, build_experts(CONFIG))
    names = [f"{name}/{interval}" for name in "ABC"]
    num = 0
    for bars in bars_of(steps, interval):
        forecaster.observe(bars)
        batch = forecaster.forecast(names)
        for i in np.flatnonzero(batch.ready):
            assert_sound(batch.item(i))
            num += 1
    return num


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wild_market, st.integers(0, 10**6))
def test_stopping_anywhere_changes_no_bit(steps, cut):
    instants = bars_of(steps, "60s")
    straight, first, second = (Forecaster(CONFIG, build_experts(CONFIG)) for _ in range(3))
    for bars in instants:
        straight.observe(bars)
    cut %= len(instants) + 1
    for bars in instants[:cut]:
        first.observe(bars)
    second.restore(first.state())
    for bars in instants[cut:]:
        second.observe(bars)
    names = [f"{name}/60s" for name in "ABC"]
    np.testing.assert_array_equal(straight.forecast(names).quantiles, second.forecast(names).quantiles)
    assert straight.scores() == second.scores()


@pytest.mark.slow
def test_ten_thousand_series_are_forecast_together():
    rng = np.random.default_rng(0)
    forecaster = Forecaster(CONFIG, build_experts(CONFIG))
    names = [f"S{k}/1d" for k in range(10_000)]
    closes = np.full(10_000, 100.0)
    for day in range(30):
        closes = closes * np.exp(0.01 * rng.standard_normal(10_000))
        end_ns = (day + 1) * 86_400 * 10**9
        forecaster.observe(
            [
                Bar(end_ns, end_ns, "test", 1, f"S{k}", "1d", end_ns - 1, end_ns, c, c * 1.01, c * 0.99, c)
                for k, c in enumerate(closes.tolist())
            ]
        )
    batch = forecaster.forecast(names)
    assert batch.ready.all()
    assert (np.diff(batch.quantiles, axis=2) >= 0.0).all()
