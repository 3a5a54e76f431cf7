"""The hours' pattern: learnt, put back where the coming bars lie, over nights, weekends and changes of the clock."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_S
from htfi.forecasting.config import LEVELS, SESSION_GAP_BARS, ForecastConfig
from htfi.forecasting.experts.har import LogRangeHarExpert
from htfi.forecasting.experts.seasonal import SeasonalExpert
from htfi.forecasting.known_variance.coming_bars import week_slots
from htfi.forecasting.panel import Panel
from htfi.forecasting.ports import Expert

CONFIG = ForecastConfig()
HIGH = LEVELS.index(0.95)
HOUR = timedelta(hours=1)
MONDAY = datetime(2019, 1, 7, tzinfo=UTC)
STEPS = 16


def ns(at: datetime) -> int:
    return int(at.timestamp()) * NS_PER_S


def bars_at(
    starts: list[datetime], length: timedelta, sigma: Callable[[datetime], float], seed: int
) -> list[Bar]:
    """Bars of a Gaussian path whose volatility, by the bar's start, is `sigma`."""
    rng, level, bars = np.random.Generator(np.random.PCG64(seed)), 0.0, []
    name = f"{int(length.total_seconds())}s"
    for start in starts:
        path = level + np.concatenate(
            [[0.0], np.cumsum(rng.normal(0.0, sigma(start) / math.sqrt(STEPS), STEPS))]
        )
        prices = 100.0 * np.exp(path)
        begin, end = ns(start), ns(start + length)
        shape = (float(prices[0]), float(prices.max()), float(prices.min()), float(prices[-1]))
        bars.append(Bar(end, end, "test", 1, "A", name, begin, end, *shape))
        level = path[-1]
    return bars


def bands(expert: Expert, bars: list[Bar]) -> np.ndarray:
    """The 95% quantile [T, H] after each bar."""
    panel = Panel(CONFIG.horizons, SESSION_GAP_BARS)
    expert.grow(1)
    found = []
    for bar in bars:
        batch = panel.enter([bar])
        assert batch is not None
        expert.update(batch)
        found.append(expert.quantiles(slice(0, 1))[0, :, HIGH])
        expert.learn(batch)
    return np.array(found)


def around_the_clock(num_days: int) -> list[datetime]:
    return [MONDAY + hour * HOUR for hour in range(24 * num_days)]


def busy_at_14(start: datetime) -> float:
    return 0.03 if start.hour == 14 else 0.01


def test_band_before_the_busy_hour_is_as_wide_as_that_hour():
    starts = around_the_clock(45)
    found = bands(SeasonalExpert(CONFIG), bars_at(starts, HOUR, busy_at_14, 1))
    last_week = {hour: np.median(found[24 * 38 + hour :: 24, 0]) for hour in range(24)}
    quiet = np.median([last_week[hour] for hour in range(24) if hour not in (12, 13, 14)])
    assert last_week[13] / quiet == pytest.approx(3.0, rel=0.15)  # the bar to come begins at 14
    assert last_week[14] / quiet == pytest.approx(1.0, rel=0.15)


def test_longer_horizons_count_the_busy_hours_that_lie_within_them():
    starts = around_the_clock(45)
    found = bands(SeasonalExpert(CONFIG), bars_at(starts, HOUR, busy_at_14, 2))
    by_hour = [np.median(found[24 * 36 + hour :: 24, 1]) for hour in range(24)]  # five bars ahead
    with_it, without = np.median(by_hour[9:14]), np.median(by_hour[15:24])
    assert with_it / without == pytest.approx(math.sqrt((4 + 9) / 5), rel=0.12)


def test_band_is_nearer_the_truth_than_that_of_a_filter_without_hours():
    starts = around_the_clock(50)
    bars = bars_at(starts, HOUR, lambda at: 0.01 * math.exp(math.sin(at.hour / 24 * 2 * math.pi)), 3)
    truth = np.array([0.01 * math.exp(math.sin((at.hour + 1) / 24 * 2 * math.pi)) for at in starts])[
        24 * 30 :
    ]
    misses = [
        np.abs(np.log(bands(expert, bars)[24 * 30 :, 0] / (1.645 * truth))).mean()
        for expert in (SeasonalExpert(CONFIG), LogRangeHarExpert(CONFIG))
    ]
    assert misses[0] < 0.6 * misses[1]


def test_opening_is_foreseen_across_the_night_and_the_weekend():
    """A session of seven bars whose first is the wildest."""
    zone = ZoneInfo("America/New_York")
    days = [datetime(2019, 1, 7, 9, 30, tzinfo=zone) + timedelta(days=day) for day in range(140)]
    starts = [day + hour * HOUR for day in days if day.weekday() < 5 for hour in range(7)]
    bars = bars_at(starts, HOUR, lambda at: 0.03 if (at.hour, at.minute) == (9, 30) else 0.01, 4)
    found = bands(SeasonalExpert(CONFIG), bars)[350:, 0].reshape(-1, 7)
    after = np.median(found, axis=0)
    assert after[6] / np.median(after[:5]) == pytest.approx(
        3.0, rel=0.2
    )  # the bar to come opens the next session
    fridays = found[[day % 5 == 4 for day in range(len(found))], 6]
    assert np.median(fridays) / np.median(after[:5]) == pytest.approx(3.0, rel=0.25)


def test_hours_keep_their_slots_when_new_york_changes_its_clocks():
    winter, summer = datetime(2019, 3, 8, 14, 30, tzinfo=UTC), datetime(2019, 3, 15, 13, 30, tzinfo=UTC)
    at = np.array([ns(winter), ns(summer), ns(summer + 0.5 * HOUR), ns(winter - 48 * HOUR)])
    found = week_slots(at)
    assert found[0] == found[1]
    assert found[2] == found[0] + 1
    assert (found[0] - found[3]) % 336 == 96
    assert week_slots(np.array([0])).tolist() == [(336 - 10)]  # 1970-01-01 0:00 UTC is Wednesday 19:00
    assert week_slots(np.array([-(2**62), 2**62])).shape == (2,)


@pytest.mark.slow
def test_short_bars_share_the_slot_of_their_half_hour():
    step = timedelta(minutes=5)
    starts = [MONDAY + k * step for k in range(288 * 12)]
    bars = bars_at(starts, step, lambda at: 0.003 if at.hour in (13, 14) else 0.001, 5)
    found = bands(SeasonalExpert(CONFIG), bars)[-288:]
    quiet = np.median(found[12 * 12 : 13 * 12 - 5], axis=0)  # with nothing busy among the next five
    assert found[13 * 12 - 1, 0] / quiet[0] > 2.0  # the next bar is the first of the busy hours
    before = 13 * 12 - 4  # of the five bars ahead, three are quiet and two busy
    assert found[before, 1] / quiet[1] == pytest.approx(math.sqrt((3 + 2 * 9) / 5), rel=0.25)
    assert found[before, 0] / quiet[0] == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("length", [timedelta(days=1), timedelta(hours=6, minutes=30)])
def test_bars_of_a_day_are_forecast_without_a_pattern(length: timedelta):
    starts = [MONDAY + timedelta(days=day, hours=14, minutes=30) for day in range(300) if day % 7 < 5]
    expert = SeasonalExpert(CONFIG)
    found = bands(expert, bars_at(starts, length, lambda at: 0.02 if at.weekday() == 0 else 0.01, 6))
    assert not expert.state()["bars"]["by_week"].any()
    assert not expert.state()["bars"]["by_day"].any()
    assert found[-100:, 0].mean() == pytest.approx(0.0127 * 1.645, rel=0.25)


def test_silent_until_the_history_suffices():
    bars = bars_at(around_the_clock(1), HOUR, busy_at_14, 7)
    found = bands(SeasonalExpert(CONFIG), bars)
    assert np.isnan(found[:21]).all()
    assert np.isfinite(found[21:]).all()


def test_a_series_is_forecast_the_same_beside_others():
    starts = around_the_clock(12)
    mine = bars_at(starts, HOUR, busy_at_14, 8)
    half = [MONDAY + k * 0.5 * HOUR for k in range(2 * 24 * 12)]
    other = [
        Bar(*(getattr(bar, name) if name != "symbol" else "B" for name in Bar.__struct_fields__))
        for bar in bars_at(half, 0.5 * HOUR, busy_at_14, 9)
    ]
    panel, together = Panel(CONFIG.horizons, SESSION_GAP_BARS), SeasonalExpert(CONFIG)
    together.grow(2)
    by_end: dict[int, list[Bar]] = {}
    for bar in (*other, *mine):
        by_end.setdefault(bar.end_ns, []).append(bar)
    for end in sorted(by_end):
        batch = panel.enter(by_end[end])
        assert batch is not None
        together.update(batch)
        together.learn(batch)
    alone = SeasonalExpert(CONFIG)
    expected = bands(alone, mine)[-1]
    row = int(panel.rows_of(["A/3600s"])[0])
    np.testing.assert_array_equal(together.quantiles(slice(row, row + 1))[0, :, HIGH], expected)
