"""Planners of execution algorithms: what is due when, within which bounds; the closed form of Almgren and Chriss."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.domain.time import NS_PER_S
from htfi.execution.algorithms.observed import ObservedMarket
from htfi.execution.algorithms.planning import (
    NOTHING,
    Algorithm,
    LotsFilled,
    Market,
    MarketMoved,
    ParentSpec,
    PlanState,
    UrgencyAsked,
    VolumeTraded,
    advance,
    lots_due,
    pace_of,
    start,
    target,
)
from htfi.execution.algorithms.schedules import almgren_chriss_kappa, curve_at, share_due, shortfall_urgency

S = NS_PER_S
MARKET = Market(9_999, 300, 10_001, 300)
WORKED = (Algorithm.TWAP, Algorithm.VWAP, Algorithm.SHORTFALL, Algorithm.POV, Algorithm.PEG, Algorithm.SNIPER)


def spec_of(algorithm: Algorithm, **more: float) -> ParentSpec:
    fields = {
        "sign": 1,
        "lots": 1_000,
        "start_ns": 0,
        "end_ns": 100 * S,
        "limit_ticks": 10_100,
        "patience_ns": 10 * S,
    }
    return ParentSpec(algorithm, **(fields | {"min_urgency": -2.0, "max_urgency": 4.0} | more))  # pyright: ignore


def seen(spec: ParentSpec, market: Market = MARKET) -> PlanState:
    return advance(spec, start(spec), MarketMoved(market))


def test_kappa_is_that_of_the_paper() -> None:
    # Almgren and Chriss (2000), table 1 and section 4.1: five days, κ about 0.61 a day.
    assert almgren_chriss_kappa(1e-6, 0.95, 2.5e-6, 2.5e-7, 1.0) == pytest.approx(0.607, abs=0.001)
    assert almgren_chriss_kappa(0.0, 0.95, 2.5e-6, 2.5e-7, 1.0) == 0.0
    small = almgren_chriss_kappa(1e-6, 0.95, 2.5e-6, 0.0, 1e-4)
    assert small == pytest.approx(math.sqrt(1e-6 * 0.95**2 / 2.5e-6), rel=1e-3)  # in continuous time √(λσ²/η)


def test_urgency_of_shortfall_grows_with_risk_and_falls_with_the_spread() -> None:
    base = shortfall_urgency(1e-2, 0.001, 0.01, 100.0, 300.0)
    assert 0.0 < base < shortfall_urgency(1e-2, 0.002, 0.01, 100.0, 300.0)
    assert base > shortfall_urgency(1e-2, 0.001, 0.02, 100.0, 300.0)
    assert shortfall_urgency(1e-2, 0.001, 0.0, 100.0, 300.0) == 0.0


@given(st.floats(-10, 20), st.floats(0, 1), st.floats(0, 1))
def test_schedules_rise_from_nothing_to_all(urgency: float, first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert share_due(urgency, 0.0) == pytest.approx(0.0, abs=1e-9)
    assert share_due(urgency, 1.0) == pytest.approx(1.0)
    assert 0.0 <= share_due(urgency, low) <= share_due(urgency, high) + 1e-9 <= 1.0 + 2e-9


@given(st.floats(-10, 20), st.floats(0, 5), st.floats(0, 1))
def test_more_urgency_is_never_later(urgency: float, more: float, at: float) -> None:
    assert share_due(urgency + more, at) >= share_due(urgency, at) - 1e-9


def test_twap_is_due_in_step_with_time_and_waits_before_it_takes() -> None:
    spec = spec_of(Algorithm.TWAP)
    state = seen(spec)
    assert target(spec, state, 50 * S) == (400, 10_100, 200, 9_999)  # due 10 s ago; due within 10 s
    state = advance(spec, state, LotsFilled(400))
    assert target(spec, state, 50 * S) == (0, 10_100, 200, 9_999)
    assert target(spec, state, 90 * S).take_lots == 600  # the rest, at the end
    assert target(spec, state, 100 * S) == NOTHING
    assert target(spec, start(spec), 50 * S) == NOTHING  # no market was seen


def test_vwap_follows_the_curve_of_volume() -> None:
    spec = spec_of(Algorithm.VWAP, curve=(0.0, 0.8, 1.0))  # pyright: ignore
    assert lots_due(spec, seen(spec), 50 * S) == 800
    assert curve_at((0.0, 0.8, 1.0), 0.75) == pytest.approx(0.9)


def test_pov_takes_its_part_of_what_traded_a_patience_ago_and_rests_that_of_the_next() -> None:
    spec = spec_of(Algorithm.POV, participation=0.1)
    patience_s = spec.patience_ns / S
    state = advance(spec, seen(spec), VolumeTraded(2_000))
    found = target(spec, state, round(4 * patience_s) * S)
    assert found[::2] == (150, 100)
    early = target(spec, state, 1 * S)
    assert early[::2] == (0, 400)
    urgent = advance(spec, state, UrgencyAsked(4.0))
    assert target(spec, urgent, round(4 * patience_s) * S)[::2] == (450, 300)
    filled = advance(spec, state, LotsFilled(170))
    assert target(spec, filled, round(4 * patience_s) * S)[::2] == (0, 80)


def test_peg_rests_all_and_never_beyond_its_limit() -> None:
    spec = spec_of(Algorithm.PEG, limit_ticks=9_990)
    assert target(spec, seen(spec), 10 * S) == (0, 9_990, 1_000, 9_990)


def test_sniper_waits_for_the_price_or_for_pressure() -> None:
    spec = spec_of(Algorithm.SNIPER)
    state = seen(spec)
    assert target(spec, state, 10 * S).take_lots == 0
    better = advance(spec, state, MarketMoved(Market(9_998, 300, 10_000, 300)))
    assert target(spec, better, 10 * S)[:2] == (1_000, 10_000)
    pressed = advance(spec, state, MarketMoved(Market(9_999, 900, 10_001, 100)))
    assert target(spec, pressed, 10 * S)[:2] == (1_000, 10_001)


@pytest.mark.parametrize("algorithm", WORKED)
def test_an_urgency_out_of_bounds_becomes_the_bound(algorithm: Algorithm) -> None:
    spec = spec_of(algorithm)
    assert advance(spec, start(spec), UrgencyAsked(99.0)).urgency == 4.0
    assert advance(spec, start(spec), UrgencyAsked(-99.0)).urgency == -2.0


@given(
    st.sampled_from(WORKED), st.integers(1, 5_000), st.floats(-5, 9), st.integers(0, 100), st.integers(0, 5_000),
    st.integers(0, 60_000), st.sampled_from((1, -1)),
)  # fmt: skip
def test_targets_stay_within_the_order_and_the_pace_that_the_gate_knows(
    algorithm: Algorithm, lots: int, urgency: float, at_s: int, filled: int, volume: int, sign: int
) -> None:
    limit = 10_100 if sign > 0 else 9_900
    spec = spec_of(algorithm, lots=lots, limit_ticks=limit, sign=sign)
    state = advance(spec, seen(spec), UrgencyAsked(urgency))
    due = lots_due(spec, state, at_s * S + spec.patience_ns)
    state = state._replace(filled=min(filled, lots, due), volume=volume)
    wanted = target(spec, state, at_s * S)
    assert min(wanted.take_lots, wanted.rest_lots) >= 0
    assert wanted.take_lots + wanted.rest_lots <= lots - state.filled
    if wanted != NOTHING:
        assert sign * (wanted.rest_ticks - limit) <= 0
        bound = next((one.max_lots for one in pace_of(spec) if at_s * S <= one.until_ns), lots)
        assert state.filled + wanted.take_lots + wanted.rest_lots <= bound


def test_the_volume_curve_is_that_of_the_times_of_day_before() -> None:
    market, day = ObservedMarket(), 86_400 * S
    for number in range(1, 4):
        for minute, lots in ((600, 300), (605, 100)):
            market.traded(lots, number * day + minute * 60 * S)
    curve = market.curve(9 * day + 600 * 60 * S, 9 * day + 610 * 60 * S)
    assert curve[0] == 0.0
    assert curve[-1] == pytest.approx(1.0)
    assert curve[len(curve) // 2] == pytest.approx(0.75)
    assert market.curve(9 * day, 9 * day + 60 * S) == ()
