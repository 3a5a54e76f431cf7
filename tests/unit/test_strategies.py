"""Strategies by past prices: directions, and the weights that sizing makes of them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.execution.config import TradingConfig
from htfi.execution.sizing import SizingInput, target_weights
from htfi.execution.strategies import directions

DAY = 1 / 252


def test_trend_follows_the_sign_of_the_move_over_the_lookback() -> None:
    closes = {"UP": [10.0, 9.0, 11.0], "DOWN": [10.0, 12.0, 9.0], "FLAT": [5.0, 6.0, 5.0], "NEW": [1.0, 2.0]}
    assert directions("trend", closes, {}, 2) == {"UP": 1.0, "DOWN": -1.0, "FLAT": 0.0}


def test_reversal_holds_the_third_that_fell_most_against_the_third_that_rose_most() -> None:
    closes = {
        name: [100.0, 100.0 + move] for name, move in zip("ABCDEFG", (3, 1, -1, -3, 2, 0, -2), strict=True)
    }
    found = directions("reversal", closes, dict.fromkeys(closes, 0.1), 1)
    assert {name for name, way in found.items() if way > 0} == {"D", "G"}
    assert {name for name, way in found.items() if way < 0} == {"A", "E"}
    assert set(found) == set(closes)


def test_reversal_compares_moves_in_deviations_of_each_forecast() -> None:
    closes = {"CALM": [100.0, 98.0], "WILD": [100.0, 96.0], "OTHER": [100.0, 101.0]}
    found = directions("reversal", closes, {"CALM": 0.1, "WILD": 0.8, "OTHER": 0.2}, 1)
    assert found == {"CALM": 1.0, "WILD": 0.0, "OTHER": -1.0}


@pytest.mark.parametrize(
    "closes",
    [{}, {"A": [1.0, 2.0], "B": [2.0, 1.0]}, {name: [100.0, 101.0] for name in "ABC"}, {"A": [1.0, -1.0]}],
)
def test_reversal_stands_aside_where_there_is_no_cross_section(closes: dict[str, list[float]]) -> None:
    assert not any(directions("reversal", closes, dict.fromkeys(closes, 0.1), 1).values())


@given(st.lists(st.floats(1.0, 1e6), min_size=3, max_size=30), st.floats(0.01, 100.0))
def test_reversal_is_neutral_and_knows_no_currency(prices: list[float], unit: float) -> None:
    closes = {f"S{place}": [100.0, price] for place, price in enumerate(prices)}
    scaled = {name: [price * unit for price in path] for name, path in closes.items()}
    sigmas = dict.fromkeys(closes, 0.2)
    found = directions("reversal", closes, sigmas, 1)
    assert sum(found.values()) == 0.0
    ways = [directions("reversal", scaled, sigmas, 1)[name] * way for name, way in found.items()]
    ranks = sorted(prices)
    if min(after / before for before, after in pairwise(ranks)) > 1 + 1e-9:
        assert min(ways) >= 0.0


def test_a_direction_is_sized_to_constant_risk_and_ignores_the_forecasts_mean() -> None:
    rng = np.random.default_rng(1)
    calm, wild = (0.003 + sigma * rng.standard_normal(4_000) for sigma in (0.005, 0.02))
    config = TradingConfig(strategy="trend", max_weight=5.0, max_gross=20.0, max_shortfall=5.0)
    inputs = [
        SizingInput("CALM", calm, DAY, direction=-1.0),
        SizingInput("WILD", wild, DAY, direction=1.0),
        SizingInput("NONE", wild, DAY, direction=0.0),
    ]
    weights = target_weights(inputs, config)
    assert weights[0] < 0 < weights[1]
    assert -weights[0] / weights[1] == pytest.approx(4.0, rel=0.1)
    assert weights[2] == 0.0
