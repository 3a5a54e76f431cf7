"""The Forecaster as pipeline uses it: readiness, delayed scoring, records, and state that survives."""

import math

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.scores import crps

CONFIG = ForecastConfig()
LEVELS = np.array(CONFIG.levels)


def forecaster(config: ForecastConfig = CONFIG) -> Forecaster:
    return Forecaster(config, build_experts(config))


def day_of_bars(day: int, symbols: str, sigma: float = 0.01) -> list[Bar]:
    """One daily bar a symbol; the same day and symbol always give the same bar."""
    return [made(day, symbol, sigma) for symbol in symbols]


def made(day: int, symbol: str, sigma: float) -> Bar:
    rng = np.random.default_rng((day, ord(symbol)))
    low, open_, close, high = 100.0 * np.exp(np.sort(rng.normal(0.0, sigma, 4)))
    if rng.random() < 0.5:
        open_, close = close, open_
    start_ns = day * NS_PER_DAY
    end_ns = start_ns + NS_PER_DAY
    return Bar(end_ns, end_ns, "test", 1, symbol, "1d", start_ns, end_ns, open_, high, low, close)


def test_series_without_enough_history_is_not_ready_and_has_no_record():
    f = forecaster()
    for day in range(5):
        f.observe(day_of_bars(day, "A"))
    batch = f.forecast(["A/1d", "NEVER/1d"])
    assert batch.ready.tolist() == [False, False]
    with pytest.raises(InvalidInput, match="too short"):
        batch.item(0)


def test_forecaster_that_saw_nothing_answers_not_ready():
    assert forecaster().forecast(["A/1d"]).ready.tolist() == [False]
    assert len(forecaster().forecast([]).ready) == 0


def test_record_names_only_experts_that_spoke():
    f = forecaster()
    for day in range(21):
        f.observe(day_of_bars(day, "A"))
    item = f.forecast(["A/1d"]).item(0)
    assert sorted(item.experts) == ["ewma", "historical_simulation", "random_walk"]
    assert sorted(item.weights) == sorted(item.experts)
    assert [sum(shares) for shares in zip(*item.shares.values(), strict=True)] == pytest.approx([1.0] * 3)


def test_bands_of_baselines_know_nothing_of_other_series_and_the_fused_forecast_does():
    """What all of an interval share is the drift, by which every expert is moved."""
    f, alone = forecaster(), forecaster()
    for day in range(90):
        f.observe(day_of_bars(day, "AB" if day >= 40 else "A"))
        if day >= 40:
            alone.observe(day_of_bars(day, "B"))
    together, apart = f.forecast(["B/1d", "A/1d"]), alone.forecast(["B/1d"])
    own = [together.names.index(name) for name in ("ewma", "random_walk")]
    middle = together.levels.index(0.5)
    beside, by_itself = (
        one.experts[0, own] - one.experts[0, own, :, middle, None] for one in (together, apart)
    )
    np.testing.assert_allclose(beside, by_itself, atol=2e-10)
    moved = together.experts[0, own, 2, middle] - apart.experts[0, own, 2, middle]
    assert 0.0 < abs(moved[0]) < 0.1 * by_itself[0, 2, -1]
    assert moved[1] == pytest.approx(moved[0], abs=2e-10)
    assert not np.allclose(together.quantiles[0], apart.quantiles[0])
    assert not np.allclose(together.quantiles[1], apart.quantiles[0])


def test_forecasts_are_scored_when_their_horizon_has_passed_and_not_before():
    f, said, closes, expected = forecaster(), [], [], {h: [] for h in CONFIG.horizons}
    for day in range(120):
        bars = day_of_bars(day, "A")
        f.observe(bars)
        closes.append(math.log(bars[0].close))
        said.append(f.forecast(["A/1d"]))
        for j, h in enumerate(CONFIG.horizons):
            past = said[day - h] if day >= h else None
            if past is not None and np.isfinite(past.experts).all():
                outcome = np.array(closes[day] - closes[day - h])
                quantiles = past.quantiles[0, j].astype(np.float32).astype(float)
                expected[h].append(float(crps(quantiles, outcome, LEVELS)))
    rows = {row.horizon: row for row in f.scores() if row.name == "fused"}
    for h in nonempty(CONFIG.horizons):
        assert rows[h].num == len(expected[h]) == 120 - 21 - h
        assert rows[h].crps == pytest.approx(np.mean(expected[h]), rel=1e-6)


def test_reading_a_forecast_changes_nothing():
    f, unread = forecaster(), forecaster()
    for day in range(60):
        f.observe(day_of_bars(day, "AB"))
        f.forecast(["B/1d"])
        unread.observe(day_of_bars(day, "AB"))
    assert_same_state(f.state(), unread.state())


def test_a_batch_stands_still_while_the_forecaster_moves_on():
    f = forecaster()
    for day in range(40):
        f.observe(day_of_bars(day, "A"))
    batch = f.forecast(["A/1d"])
    before = batch.quantiles.copy()
    f.observe(day_of_bars(40, "A", sigma=0.05))
    np.testing.assert_array_equal(batch.quantiles, before)


def test_the_usual_width_lags_behind_a_forecast_that_widens():
    f = forecaster()
    for day in range(300):
        f.observe(day_of_bars(day, "A", sigma=0.01 if day < 290 else 0.04))
    batch = f.forecast(["A/1d"])
    item = batch.item(0)
    assert (item.quantiles[0][-2] - item.quantiles[0][1]) / 3.28971 > 1.5 * batch.usual_sigma[0] > 0.0


def test_restored_forecaster_continues_bit_for_bit():
    straight = forecaster()
    for day in range(75):
        straight.observe(day_of_bars(day, "ABC" if day > 10 else "A"))
    resumed = forecaster()
    resumed.restore(straight.state())
    for day in range(75, 130):
        straight.observe(day_of_bars(day, "ABCD"))
        resumed.observe(day_of_bars(day, "ABCD"))
    assert_same_state(straight.state(), resumed.state())
    assert straight.scores() == resumed.scores()


def test_saved_state_is_not_moved_by_later_bars():
    f = forecaster()
    for day in range(40):
        f.observe(day_of_bars(day, "A"))
    saved, again = f.state(), f.state()
    f.observe(day_of_bars(40, "A"))
    assert_same_state(saved, again)


def test_state_of_other_settings_is_refused():
    f = forecaster()
    f.observe(day_of_bars(0, "A"))
    with pytest.raises(IntegrityError, match="rows of shape"):
        forecaster(ForecastConfig(horizons=(1, 10))).restore(f.state())
    with pytest.raises(IntegrityError, match="start again"):
        Forecaster(CONFIG, build_experts(CONFIG)[:2]).restore(f.state())


def test_two_experts_of_one_name_are_refused():
    with pytest.raises(InvalidInput, match="its own name"):
        Forecaster(CONFIG, [*build_experts(CONFIG), build_experts(CONFIG)[0]])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("horizons", ()),
        ("horizons", (5, 1)),
        ("levels", (0.05, 0.5, 0.9)),
        ("levels", (0.0, 0.05, 0.5, 0.95)),
        ("ewma_decay", 1.0),
        ("history_bars", 1),
        ("residual_window_bars", 5),
        ("weight_half_life_bars", 0.0),
    ],
)
def test_setting_out_of_range_is_refused_by_name(key: str, value: object):
    with pytest.raises(InvalidInput, match=f"forecasting.{key}"):
        ForecastConfig(**{key: value})  # type: ignore[arg-type]


def assert_same_state(a: object, b: object) -> None:
    if isinstance(a, dict):
        assert isinstance(b, dict)
        assert a.keys() == b.keys()
        for key in a:
            assert_same_state(a[key], b[key])
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b
