"""Faults of prices: splits that they are not adjusted for, renamed series, series that start in a crisis."""

import msgspec
import numpy as np
import pytest

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting import compiled
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.panel import Panel
from htfi.forecasting.splits import find_splits, follow_volume

DAYS = 80


def _bar(symbol: str, day: int, first: float, close: float, spread: float = 0.004) -> Bar:
    high, low = max(first, close) * (1 + spread), min(first, close) * (1 - spread)
    start, end = day * NS_PER_DAY, (day + 1) * NS_PER_DAY
    return Bar(end, end, "test", day, symbol, "1d", start, end, first, high, low, close, 1.0)


def _walk(panel: Panel, change, num_series: int = 1, day_of: int = 60) -> list:
    """Batches of an ordinary walk; `change` gives the factor of prices from a day on."""
    dice = np.random.Generator(np.random.PCG64(4))
    prices, batches = np.full(num_series, 100.0), []
    for day in range(DAYS):
        bars = []
        for n in range(num_series):
            first = prices[n] * np.exp(0.002 * dice.standard_normal())
            close = first * np.exp(0.01 * dice.standard_normal())
            prices[n] = close
            factor = change(n, day >= day_of)
            bars.append(_bar(f"S{n}", day, first * factor, close * factor))
        batches.append(panel.enter(bars))
    return batches


@pytest.mark.parametrize("core", [compiled.core, None], ids=["compiled", "plain"])
@pytest.mark.parametrize("ratio", [2.0, 7.0, 0.1])
def test_a_split_is_no_move(monkeypatch: pytest.MonkeyPatch, core: object, ratio: float):
    monkeypatch.setattr(compiled, "core", core)
    split, plain = Panel((1, 5), 5.0), Panel((1, 5), 5.0)
    found = _walk(split, lambda _, after: 1.0 / ratio if after else 1.0)
    wanted = _walk(plain, lambda *_: 1.0)
    assert [(one.symbol, one.end_ns // NS_PER_DAY, one.ratio) for one in split.splits] == [("S0", 61, ratio)]
    assert not plain.splits
    returns = [[float(batch.returns[0]) for batch in batches] for batches in (found, wanted)]
    # The open after a split differs from the last close by the night's move, of which all but a little is kept.
    assert returns[0] == pytest.approx(returns[1], abs=1e-9)
    assert float(found[-1].usual[0]) == pytest.approx(float(wanted[-1].usual[0]))
    assert float(found[62].outcomes[0, 1]) == pytest.approx(float(wanted[62].outcomes[0, 1]))


def test_the_line_names_symbol_day_ratio_and_act():
    panel = Panel((1,), 5.0)
    _walk(panel, lambda _, after: 0.25 if after else 1.0)
    assert panel.price_faults[0] == (
        "S0/1d 1970-03-02: prices are not adjusted for a split of 4 to 1, whose jump counts as no move; adjust them, "
        'or set market.splits = {"S0" = {"1970-03-02" = 4}}'
    )
    panel = Panel((1,), 5.0)
    _walk(panel, lambda _, after: 5.0 if after else 1.0)
    assert panel.price_faults[0].endswith(
        "reverse split of 5 to 1, whose jump counts as no move; adjust them, or set market.splits = "
        '{"S0" = {"1970-03-02" = 0.2}}'
    )


def test_a_crash_of_the_market_is_no_split():
    panel = Panel((1,), 5.0)
    batches = _walk(panel, lambda *_: 1.0, num_series=6)
    last = [float(batches[-1].usual[n]) for n in range(6)]
    assert len(last) == 6
    found = _walk(panel2 := Panel((1,), 5.0), lambda _, after: 0.5 if after else 1.0, num_series=6)
    assert len(found) == DAYS
    assert len(panel2.splits) == 6  # every candidate at once: there is no other series to tell a crash by
    crash = Panel((1,), 5.0)
    _walk(crash, lambda n, after: (0.5 if n == 0 else 0.85) if after else 1.0, num_series=6)
    assert not crash.splits


def test_a_fall_by_half_in_a_wild_session_is_no_split():
    prices = np.log(np.array([100.0]))
    usual, volume, age = np.array([1e-4]), np.array([0.0]), np.array([50])
    calm, wild = _bar("A", 60, 50.0, 50.2), _bar("A", 60, 50.0, 50.2, spread=0.1)
    assert [place for place, _ in find_splits([calm], prices, usual, volume, age)] == [0]
    assert find_splits([wild], prices, usual, volume, age) == []
    assert find_splits([_bar("A", 60, 55.0, 55.2)], prices, usual, volume, age) == []
    assert find_splits([calm], prices, usual, volume, np.array([3])) == []
    assert find_splits([calm], np.array([np.nan]), usual, volume, age) == []


@pytest.mark.parametrize(
    ("times", "found"), [(1.5, True), (0.8, True), (2.9, True), (0.7, False), (3.1, False), (0.0, False)]
)
def test_a_split_of_three_for_two_needs_the_volume_that_it_makes(times: float, found: bool):
    usual = np.array([1e-4]), np.array([1000.0]), np.array([50])
    bar = msgspec.structs.replace(_bar("A", 60, 66.7, 66.9), volume=1000.0 * times)
    places = find_splits([bar], np.log(np.array([100.0])), *usual)
    assert [(place, round(np.exp(ratio), 6)) for place, ratio in places] == ([(0, 1.5)] if found else [])
    reverse = msgspec.structs.replace(_bar("A", 60, 150.0, 150.1), volume=1000.0 / 1.5)
    assert find_splits([reverse], np.log(np.array([100.0])), *usual) == []


@pytest.mark.parametrize(
    ("volume", "found"), [(2_000.0, True), (1_000.0, True), (39_000.0, True), (41_000.0, False)]
)
def test_twenty_times_the_volume_of_a_split_is_none(volume: float, found: bool):
    bar = msgspec.structs.replace(_bar("A", 60, 50.0, 50.2), volume=volume)
    usual = np.array([1e-4]), np.array([1000.0]), np.array([50])
    assert len(find_splits([bar], np.log(np.array([100.0])), *usual)) == found


def test_usual_volume_follows_bars_that_have_one():
    usual = follow_volume(np.array([0.0, 0.0, 100.0, 100.0, 100.0]), np.array([7.0, 0.0, 0.0, 200.0, 9e9]))
    assert usual.tolist() == [7.0, 0.0, 100.0, 110.0, 130.0]


def test_bars_within_a_day_are_not_looked_at():
    panel = Panel((1,), 5.0)
    for hour in range(60):
        start = hour * NS_PER_DAY // 24
        price = 100.0 if hour < 50 else 50.0
        end = start + NS_PER_DAY // 24
        panel.enter(
            [Bar(end, end, "t", hour, "S", "1h", start, end, price, price * 1.001, price, price, 1.0)]
        )
    assert not panel.splits


def _days(panel: Panel, symbol: str, days: range, price: float) -> None:
    for day in days:
        panel.enter(
            [
                _bar(symbol, day, price, price * (1.002 if day % 2 else 1.0)),
                _bar("OTHER", day, 7.0, 7.0 + day % 2),
            ]
        )


def test_a_series_that_begins_where_another_ends_is_said_and_not_joined():
    panel = Panel((1,), 5.0)
    _days(panel, "OLD", range(30), 40.0)
    _days(panel, "NEW", range(32, 40), 40.05)
    assert panel.price_faults == [
        "OLD/1d ends on 1970-01-30 where NEW/1d begins on 1970-02-02 at its price: if it was renamed, set "
        'market.renames = {"OLD" = "NEW"}, so that its history counts'
    ]
    assert panel.age(panel.rows_of(["NEW/1d"])[0]) == 7
    panel.enter([_bar("OLD", 41, 40.0, 40.1)])  # it was only missing
    assert panel.renames == []


@pytest.mark.parametrize(
    ("first_day", "price"), [(30, 60.0), (60, 40.0)], ids=["another price", "much later"]
)
def test_other_new_series_are_no_renames(first_day: int, price: float):
    panel = Panel((1,), 5.0)
    _days(panel, "OLD", range(30), 40.0)
    _days(panel, "NEW", range(first_day, first_day + 5), price)
    assert panel.renames == []


def test_series_that_start_in_a_crisis_are_covered_from_their_twentieth_bar():
    """Volatility falls from 5 to 2% a day over 60 bars; of 900 forecasts within the first 60 bars 80 to 98% hold."""
    dice, config = np.random.Generator(np.random.PCG64(8)), ForecastConfig(horizons=(1,))
    forecaster = Forecaster(config, build_experts(config))
    names, prices = [f"S{n}" for n in range(24)], np.full(24, 50.0)
    low, high = config.levels.index(0.05), config.levels.index(0.95)
    held: list[bool] = []
    for day in range(60):
        size = 0.05 - 0.0005 * day
        before = forecaster.forecast([f"{name}/1d" for name in names]).quantiles[:, 0] if day else None
        moves = size * (0.6 * dice.standard_normal() + 0.8 * dice.standard_normal(24))
        bars = [_bar(name, day, price, price * np.exp(move), size / 2)
                for name, price, move in zip(names, prices, moves, strict=True)]  # fmt: skip
        if before is not None:
            known = np.isfinite(before[:, low])
            held += ((before[:, low] <= moves) & (moves <= before[:, high]))[known].tolist()
        forecaster.observe(bars)
        prices = prices * np.exp(moves)
    assert len(held) >= 900
    assert 0.80 <= sum(held) / len(held) <= 0.98
