"""The router against a plain model of the rule that no order trades through a better protected price."""

import random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from htfi.domain.time import NS_PER_S
from htfi.execution.order_routing.router import route_rest, route_take
from htfi.execution.order_routing.venues import RouterState, VenueTerms

NOW = 100 * NS_PER_S
MAX_AGE = 10 * NS_PER_S


class Displayed(NamedTuple):
    """A venue as it stands in a drawn market."""

    name: str
    bid: int
    bid_lots: int
    ask: int
    ask_lots: int
    age_s: int
    fee: float
    is_protected: bool


@st.composite
def markets(draw: st.DrawFn) -> list[Displayed]:
    num = draw(st.integers(1, 6))
    found: list[Displayed] = []
    for number in range(num):
        bid = draw(st.sampled_from((0, 95, 97, 98, 99, 100)))
        ask = draw(st.sampled_from((0, 99, 100, 101, 102, 104)))
        found.append(
            Displayed(
                f"V{number}", bid, draw(st.integers(0, 9)) if bid else 0, ask, draw(st.integers(0, 9)) if ask else 0,
                draw(st.sampled_from((0, 1, 5, 11))), draw(st.sampled_from((-1.0, 0.0, 0.3))), draw(st.booleans()),
            )
        )  # fmt: skip
    return found


def state_of(market: list[Displayed]) -> RouterState:
    state = RouterState.of(VenueTerms(one.name, one.fee, -one.fee, 10**6, one.is_protected) for one in market)
    state.max_age_ns = MAX_AGE
    for one in sorted(market, key=lambda each: -each.age_s):
        state.quoted(one.name, one.bid, one.bid_lots, one.ask, one.ask_lots, NOW - one.age_s * NS_PER_S)
    state.newest_ns = NOW
    return state


def check_take(
    market: list[Displayed], sign: int, lots: int, limit: int, levels: int, asked: dict[str, int]
) -> set[int]:
    """Hold the routes of what takes against the rule, plainly; the prices at which something is sent."""
    routes = route_take(state_of(market), sign, lots, limit, NOW, asked=asked, max_levels=levels)
    by_name = {one.name: one for one in market}
    sent = {route.venue: route.lots for route in routes}
    assert len(sent) == len(routes)
    assert sum(sent.values()) <= lots
    for route in routes:
        own = by_name[route.venue]
        price, displayed = (own.ask, own.ask_lots) if sign > 0 else (own.bid, own.bid_lots)
        assert counts(own)
        assert route.ticks == price
        assert sign * (route.ticks - limit) <= 0
        assert 0 < route.lots <= displayed - asked[route.venue]
        assert 0.0 <= route.expected <= 1.0
        for other in market:
            there, size = (other.ask, other.ask_lots) if sign > 0 else (other.bid, other.bid_lots)
            if other.is_protected and counts(other) and there and size and sign * (there - route.ticks) < 0:
                assert asked[other.name] + sent.get(other.name, 0) >= size, "a better protected price is left"
    return {route.ticks for route in routes}


def counts(one: Displayed) -> bool:
    return one.age_s <= 10 and not (one.bid and one.ask and one.bid >= one.ask)


@given(
    markets(),
    st.sampled_from((1, -1)),
    st.integers(1, 40),
    st.integers(94, 105),
    st.integers(1, 4),
    st.data(),
)
def test_no_better_protected_price_is_traded_through(
    market: list[Displayed], sign: int, lots: int, limit: int, levels: int, data: st.DataObject
) -> None:
    asked = {one.name: data.draw(st.integers(0, 5)) for one in market}
    check_take(market, sign, lots, limit, levels, asked)


def test_sweeps_of_thousands_of_markets_leave_no_better_protected_price() -> None:
    rng, num_sweeps = random.Random(5), 0
    for _ in range(4_000):
        market = [
            Displayed(
                f"V{number}", rng.choice((0, 95, 97, 98)), rng.randrange(10), rng.choice((99, 100, 101, 102)),
                rng.randrange(10), rng.choice((0, 1, 11)), rng.choice((-1.0, 0.0, 0.3)), rng.random() < 0.7,
            )
            for number in range(rng.randrange(1, 7))
        ]  # fmt: skip
        asked = {one.name: rng.choice((0, 0, 3)) for one in market}
        sign = rng.choice((1, -1))
        prices = check_take(
            market, sign, rng.randrange(1, 40), 102 if sign > 0 else 95, rng.randrange(1, 5), asked
        )
        num_sweeps += len(prices) > 1
    assert num_sweeps > 500


@given(markets(), st.sampled_from((1, -1)), st.integers(1, 40), st.integers(94, 105))
def test_what_rests_neither_locks_nor_crosses_a_protected_price(
    market: list[Displayed], sign: int, lots: int, ticks: int
) -> None:
    routes = route_rest(state_of(market), sign, lots, ticks, NOW, 10.0)
    opposite = [
        one.ask if sign > 0 else one.bid
        for one in market
        if one.is_protected
        and counts(one)
        and (one.ask and one.ask_lots if sign > 0 else one.bid and one.bid_lots)
    ]
    assert sum(route.lots for route in routes) <= lots
    if any(sign * (ticks - one) >= 0 for one in opposite):
        assert routes == []


@given(markets(), st.sampled_from((1, -1)), st.integers(1, 40))
def test_the_same_market_gives_the_same_routes(market: list[Displayed], sign: int, lots: int) -> None:
    first, second = (route_take(state_of(market), sign, lots, 100, NOW, max_levels=3) for _ in range(2))
    assert first == second
