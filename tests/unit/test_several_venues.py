"""Several simulated venues at once: each its own latency, fee and data; reports in order of time."""

from decimal import Decimal

from htfi.domain.events import Quote, Trade
from htfi.domain.orders import (
    InstrumentTerms,
    MarketSnapshot,
    NewOrder,
    OrderEvent,
    OrderFilled,
    OrderSide,
    TimeInForce,
)
from htfi.execution.instruments import instrument_of
from htfi.simulation.venue.config import SimulatedVenueConfig
from htfi.simulation.venue.several import SimulatedVenues
from htfi.simulation.venue.simulated import SimulatedVenue

MS = 10**6


def venues() -> SimulatedVenues:
    slow = SimulatedVenueConfig(request_ms=5.0, report_ms=5.0, take_fee_bps=3.0)
    fast = SimulatedVenueConfig(request_ms=1.0, report_ms=1.0, take_fee_bps=-1.0)
    found = SimulatedVenues({"N": SimulatedVenue("SLOW", slow), "Q": SimulatedVenue("FAST", fast)})
    found.list_instrument(instrument_of(InstrumentTerms(at_ns=0, instrument="AAA", tick=Decimal("0.01"))))
    return found


def quote(at_ms: int, venue: str, bid: float = 9.99, ask: float = 10.0, size: float = 100.0) -> Quote:
    at = at_ms * MS
    return Quote(at, at, "t", 0, "AAA", bid, size, ask, size, venue)


def order(order_id: str, venue: str, at_ms: int) -> NewOrder:
    return NewOrder(
        at_ns=at_ms * MS, order_id=order_id, instrument="AAA", venue=venue, side=OrderSide.BUY, quantity=10,
        price=Decimal("10.00"), time_in_force=TimeInForce.IMMEDIATE_OR_CANCEL,
    )  # fmt: skip


def drain(market: SimulatedVenues, until_ms: int) -> list[OrderEvent]:
    found: list[OrderEvent] = []
    while (event := market.next(until_ms * MS)) is not None:
        found.append(event)
    return found


def test_each_venue_answers_after_its_own_latency_with_its_own_fee() -> None:
    market = venues()
    for name in ("N", "Q"):
        market.observe(quote(1, name))
    market.send(order("a", "SLOW", 2))
    market.send(order("b", "FAST", 3))
    events = drain(market, 100)
    fills = [one for one in events if isinstance(one, OrderFilled)]
    assert [(one.order_id, one.at_ns // MS) for one in fills] == [("b", 5), ("a", 12)]
    assert fills[0].fee is not None
    assert fills[1].fee is not None
    assert fills[0].fee < 0 < fills[1].fee
    times = [one.at_ns for one in events]
    assert times == sorted(times)


def test_data_reach_the_venue_that_they_name_and_all_where_they_name_none() -> None:
    market = venues()
    market.observe(quote(1, "N"))
    market.observe(Trade(2 * MS, 2 * MS, "t", 0, "AAA", 10.0, 5.0, "elsewhere"))
    assert [one.venue for one in drain(market, 2) if isinstance(one, MarketSnapshot)] == ["SLOW"]
    market.observe(quote(3, ""))
    assert {one.venue for one in drain(market, 3) if isinstance(one, MarketSnapshot)} == {"SLOW", "FAST"}


def test_nothing_is_handed_out_before_it_has_arrived() -> None:
    market = venues()
    market.observe(quote(1, "N"))
    market.send(order("a", "SLOW", 2))
    assert [type(one).__name__ for one in drain(market, 11)] == ["MarketSnapshot"]
    assert [type(one).__name__ for one in drain(market, 12)] == ["OrderAcknowledged", "OrderFilled"]


def test_a_side_that_is_withdrawn_is_stated_as_no_price() -> None:
    market = venues()
    market.observe(quote(1, "N"))
    market.observe(quote(2, "N", bid=0.0))
    last = [one for one in drain(market, 2) if isinstance(one, MarketSnapshot)][-1]
    assert last.bid == 0
    assert last.ask == Decimal("10.00")
