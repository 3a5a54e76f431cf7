"""The simulated venue: queue position, fills against quotes, trades and bars, refusals, latency."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from htfi.domain.events import Bar, Quote, Trade
from htfi.domain.orders import (
    CancelRejected,
    CancelRequest,
    InstrumentTerms,
    Liquidity,
    MarketSnapshot,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
    OrderRejected,
    OrderReplaced,
    OrderSide,
    OrderType,
    ReplaceRequest,
    TimeInForce,
)
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.execution.instruments import instrument_of
from htfi.simulation.venue.config import VenueConfig
from htfi.simulation.venue.simulated import SimulatedVenue

T = 1_000 * NS_PER_S
FEES = VenueConfig(request_ms=1.0, report_ms=2.0, take_fee_bps=1.0, make_fee_bps=-0.5)


class Exchange:
    """A venue with one instrument, quoted 100 at 99.99 and 200 at 100.01 from the instant T on."""

    def __init__(self, *, quoted: bool = True) -> None:
        self.venue = SimulatedVenue("XSIM", FEES)
        self.venue.list_instrument(
            instrument_of(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01")))
        )
        if quoted:
            self.quote()
            assert self.reports() == []

    def quote(
        self,
        bid: float = 99.99,
        ask: float = 100.01,
        bid_size: float = 100,
        ask_size: float = 200,
        at: int = T,
    ) -> None:
        self.venue.observe(Quote(at, at, "q", 1, "ACME", bid, bid_size, ask, ask_size))

    def trade(self, price: float, size: float, at: int = T) -> None:
        self.venue.observe(Trade(at, at, "t", 1, "ACME", price, size))

    def order(self, order_id: str = "o1", at: int = T, **changes: Any) -> None:
        stated = NewOrder(
            at_ns=at,
            order_id=order_id,
            instrument="ACME",
            venue="XSIM",
            side=OrderSide.BUY,
            quantity=50,
            price=Decimal("99.99"),
        )
        self.venue.send(structs.replace(stated, **changes))

    def reports(self, until: int = T + 60 * NS_PER_S) -> list[OrderEvent]:
        found: list[OrderEvent] = []
        while (event := self.venue.next(until)) is not None:
            if not isinstance(event, MarketSnapshot):
                found.append(event)
        return found

    def fills(self, until: int = T + 3_600 * NS_PER_S) -> list[tuple[int, Decimal, Liquidity | None]]:
        return [
            (one.quantity, one.price, one.liquidity)
            for one in self.reports(until)
            if isinstance(one, OrderFilled)
        ]


def test_requests_and_reports_take_their_time() -> None:
    exchange = Exchange()
    exchange.order()
    assert exchange.reports(T + 3 * NS_PER_MS - 1) == []
    (report,) = exchange.reports(T + 3 * NS_PER_MS)
    assert isinstance(report, OrderAcknowledged)
    assert report.at_ns == T + 3 * NS_PER_MS


def test_order_that_takes_is_filled_at_the_displayed_price_and_size() -> None:
    exchange = Exchange()
    exchange.order(quantity=250, price=Decimal("100.05"))
    reports = exchange.reports()
    assert [type(one) for one in reports] == [OrderAcknowledged, OrderFilled]
    fill = reports[1]
    assert isinstance(fill, OrderFilled)
    assert (fill.quantity, fill.price, fill.liquidity) == (200, Decimal("100.01"), Liquidity.REMOVED)
    assert fill.fee == Decimal("2.000200")  # a basis point of 20,002
    exchange.quote(ask=100.02, ask_size=30, at=T + NS_PER_S)  # the rest rests at 100.05 and is met there
    assert exchange.fills() == [(30, Decimal("100.05"), Liquidity.ADDED)]


def test_resting_order_waits_for_the_queue_before_it() -> None:
    exchange = Exchange()
    exchange.order()  # behind 100 at 99.99
    exchange.reports()
    exchange.trade(99.99, 80, T + NS_PER_S)
    assert exchange.fills() == []
    exchange.trade(99.99, 30, T + 2 * NS_PER_S)  # 20 were before it
    assert exchange.fills() == [(10, Decimal("99.99"), Liquidity.ADDED)]
    exchange.trade(99.98, 5, T + 3 * NS_PER_S)  # a worse price was paid: it was next
    assert exchange.fills() == [(5, Decimal("99.99"), Liquidity.ADDED)]


def test_order_at_a_new_price_has_no_queue_before_it() -> None:
    exchange = Exchange()
    exchange.order(price=Decimal("100.00"))
    exchange.reports()
    exchange.trade(100.00, 30, T + NS_PER_S)
    assert exchange.fills() == [(30, Decimal("100.00"), Liquidity.ADDED)]


def test_smaller_replace_keeps_its_place_and_a_new_price_loses_it() -> None:
    exchange = Exchange()
    exchange.order()
    exchange.reports()
    exchange.trade(99.99, 100, T + NS_PER_S)  # nobody is before it now
    exchange.venue.send(ReplaceRequest(at_ns=T + NS_PER_S, order_id="o1", cl_ord_id="r1", quantity=40))
    (replaced,) = [one for one in exchange.reports() if isinstance(one, OrderReplaced)]
    assert (replaced.quantity, replaced.price) == (40, Decimal("99.99"))
    exchange.trade(99.99, 10, T + 2 * NS_PER_S)
    assert exchange.fills() == [(10, Decimal("99.99"), Liquidity.ADDED)]
    exchange.quote(at=T + 2 * NS_PER_S)
    exchange.venue.send(
        ReplaceRequest(
            at_ns=T + 2 * NS_PER_S, order_id="o1", cl_ord_id="r2", quantity=60, price=Decimal("99.99")
        )
    )
    exchange.reports()
    exchange.trade(99.99, 10, T + 3 * NS_PER_S)  # more lots: to the end of the queue
    assert exchange.fills() == []


def test_immediate_or_cancel_and_fill_or_kill() -> None:
    exchange = Exchange()
    exchange.order(
        "ioc", quantity=250, price=Decimal("100.01"), time_in_force=TimeInForce.IMMEDIATE_OR_CANCEL
    )
    assert [type(one) for one in exchange.reports()] == [OrderAcknowledged, OrderFilled, OrderCanceled]
    exchange.quote(at=T + NS_PER_S)
    exchange.order(
        "fok", at=T + NS_PER_S, quantity=250, price=Decimal("100.01"), time_in_force=TimeInForce.FILL_OR_KILL
    )
    assert [type(one) for one in exchange.reports()] == [OrderAcknowledged, OrderCanceled]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instrument": "OTHER"}, "not listed"),
        ({"price": Decimal("99.995")}, "between two ticks"),
        ({"price": Decimal(-1)}, "above 0"),
        ({"quantity": 0}, "above 0"),
        ({"order_type": OrderType.MARKET, "price": None}, "market"),
    ],
)
def test_order_that_no_venue_takes_is_rejected(changes: dict[str, Any], words: str) -> None:
    exchange = Exchange()
    exchange.order(**changes)
    (report,) = exchange.reports()
    assert isinstance(report, OrderRejected)
    assert words in report.reason


def test_id_that_was_used_is_rejected() -> None:
    exchange = Exchange()
    exchange.order()
    exchange.order()
    assert [type(one) for one in exchange.reports()] == [OrderAcknowledged, OrderRejected]


def test_cancel_takes_an_order_off_and_comes_too_late_after_its_fill() -> None:
    exchange = Exchange()
    exchange.order("o1")
    exchange.order("o2", price=Decimal("100.01"))
    exchange.reports()
    for order_id in ("o1", "o2", "o3"):
        exchange.venue.send(CancelRequest(at_ns=T + NS_PER_S, order_id=order_id, cl_ord_id=f"x-{order_id}"))
    reports = exchange.reports()
    assert [(type(one), one.order_id) for one in reports] == [  # type: ignore[union-attr]
        (OrderCanceled, "o1"),
        (CancelRejected, "o2"),
        (CancelRejected, "o3"),
    ]
    exchange.trade(99.98, 500, T + 2 * NS_PER_S)
    assert exchange.fills() == []


def bar(start: int, opened: float, high: float, low: float, close: float, volume: float = 0.0) -> Bar:
    end = start + 3_600 * NS_PER_S
    return Bar(end, end, "b", 1, "ACME", "1h", start, end, opened, high, low, close, volume)


def test_order_before_a_bar_fills_at_its_open_and_pays_half_the_spread() -> None:
    exchange = Exchange(quoted=False)
    exchange.order(price=Decimal("101.00"), at=T)
    exchange.venue.observe(bar(T, 100.0, 102.0, 99.0, 101.0))
    assert exchange.fills() == [(50, Decimal("100.01"), Liquidity.REMOVED)]


def test_passive_order_fills_only_where_the_bar_goes_beyond_its_price() -> None:
    exchange = Exchange(quoted=False)
    exchange.order("touched", price=Decimal("99.00"))
    exchange.order("beyond", price=Decimal("99.50"))
    exchange.venue.observe(bar(T, 100.0, 102.0, 99.0, 101.0))
    assert exchange.fills() == [(50, Decimal("99.50"), Liquidity.ADDED)]


def test_order_that_comes_during_a_bar_knows_its_close_alone() -> None:
    exchange = Exchange(quoted=False)
    exchange.order(price=Decimal("100.50"), at=T + 1_800 * NS_PER_S)
    exchange.venue.observe(bar(T, 100.0, 102.0, 99.0, 101.0))
    assert [type(one) for one in exchange.reports(T + 3_600 * NS_PER_S)] == [OrderAcknowledged]


def test_bar_fills_no_more_than_a_share_of_its_volume() -> None:
    exchange = Exchange(quoted=False)
    exchange.order(price=Decimal("101.00"))
    exchange.venue.observe(bar(T, 100.0, 102.0, 99.0, 101.0, volume=120))
    assert exchange.fills() == [(12, Decimal("100.01"), Liquidity.REMOVED)]


def test_the_best_of_several_exchanges_fills_once_and_not_what_another_shows_worse() -> None:
    exchange = Exchange(quoted=False)
    quotes = [("N", 100.01, 50.0), ("P", 100.03, 900.0), ("N", 100.01, 50.0), ("P", 100.03, 900.0)]
    for number, (venue, ask, size) in enumerate(quotes):
        exchange.venue.observe(Quote(T + number, T + number, "q", 1, "ACME", 99.99, 100, ask, size, venue))
        if number == 1:
            exchange.order(quantity=200, price=Decimal("100.01"), at=T + 1 - NS_PER_MS)
    assert exchange.fills() == [(50, Decimal("100.01"), Liquidity.REMOVED)]


def test_a_price_of_another_exchange_that_crosses_an_order_is_taken_and_pays_the_fee() -> None:
    exchange = Exchange(quoted=False)
    for venue, ask in (("N", 100.05), ("P", 100.06)):
        exchange.venue.observe(Quote(T, T, "q", 1, "ACME", 99.99, 100, ask, 100, venue))
    exchange.order(price=Decimal("100.02"))
    exchange.reports()
    exchange.venue.observe(Quote(T + NS_PER_S, T + NS_PER_S, "q", 1, "ACME", 99.99, 100, 100.01, 100, "P"))
    (fill,) = exchange.reports()
    assert isinstance(fill, OrderFilled)
    assert (fill.quantity, fill.price, fill.liquidity) == (50, Decimal("100.02"), Liquidity.REMOVED)
    assert fill.fee == Decimal("0.500100")  # a basis point of 5,001


def test_same_data_and_requests_give_the_same_reports() -> None:
    def run() -> list[OrderEvent]:
        exchange = Exchange()
        exchange.order("o1")
        exchange.order("o2", side=OrderSide.SELL, price=Decimal("99.99"))
        exchange.trade(99.99, 300, T + NS_PER_S)
        return exchange.reports()

    assert run() == run()
    assert len(run()) == 4
