"""The simulated venue's hours, auctions and halts, and orders with hidden lots."""

from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, Quote, Trade
from htfi.domain.orders import (
    CancelRequest,
    InstrumentTerms,
    MarketSnapshot,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderExpired,
    OrderFilled,
    OrderRejected,
    OrderSide,
    ReplaceRequest,
    SessionPhase,
    TimeInForce,
)
from htfi.domain.time import NS_PER_S
from htfi.execution.instruments import instrument_of
from htfi.simulation.venue.config import VenueConfig
from htfi.simulation.venue.phases import hours_of
from htfi.simulation.venue.simulated import SimulatedVenue

NEW_YORK = ZoneInfo("America/New_York")
HOURS = "09:30-16:00 America/New_York"


def at(clock: str, day: int = 5) -> int:
    """Of March 2024 in New York; the 5th is a Tuesday, the 10th the day on which clocks go forward."""
    return (
        round(datetime.fromisoformat(f"2024-03-{day:02d}T{clock}").replace(tzinfo=NEW_YORK).timestamp())
        * NS_PER_S
    )


class Exchange:
    """One instrument; no latency, so that what is sent is answered at its instant."""

    def __init__(self, **settings: Any) -> None:
        self.venue = SimulatedVenue(
            "XSIM", VenueConfig(request_ms=0.0, report_ms=0.0, max_bar_share=0.5, **settings)
        )
        self.venue.list_instrument(
            instrument_of(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01")))
        )
        self.events: list[OrderEvent] = []

    def quote(self, now_ns: int, bid: float = 99.99, ask: float = 100.01, size: float = 100) -> None:
        self.venue.observe(Quote(now_ns, now_ns, "q", 1, "ACME", bid, size, ask, size))
        self.take(now_ns)

    def trade(self, now_ns: int, price: float, size: float = 100) -> None:
        self.venue.observe(Trade(now_ns, now_ns, "t", 1, "ACME", price, size))
        self.take(now_ns)

    def order(self, now_ns: int, name: str, price: str = "100.05", **more: Any) -> None:
        fields: dict[str, Any] = {"side": OrderSide.BUY, "quantity": 40} | more
        self.venue.send(
            NewOrder(
                at_ns=now_ns, order_id=name, instrument="ACME", venue="XSIM", price=Decimal(price), **fields
            )
        )
        self.take(now_ns)

    def take(self, until_ns: int) -> None:
        while (event := self.venue.next(until_ns)) is not None:
            self.events.append(event)

    def of(self, kind: type[OrderEvent]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def phases(self) -> list[tuple[int, SessionPhase | None]]:
        """Changes of the phase, as the market data tells them."""
        found: list[tuple[int, SessionPhase | None]] = []
        for one in self.of(MarketSnapshot):
            if not found or found[-1][1] is not one.phase:
                found.append((one.at_ns, one.phase))
        return found


def test_hours_follow_the_zones_clock_and_leave_weekends_out() -> None:
    hours = hours_of(HOURS, 600, 300)
    assert hours is not None
    changes, now_ns = [], at("00:00:00")
    for _ in range(6):
        changes.append((hours.phase_at(now_ns), now_ns))
        now_ns = hours.next_change_ns(now_ns)
    assert changes == [
        (SessionPhase.PRE_OPEN, at("00:00:00")),
        (SessionPhase.OPENING_AUCTION, at("09:20:00")),
        (SessionPhase.CONTINUOUS, at("09:30:00")),
        (SessionPhase.CLOSING_AUCTION, at("15:55:00")),
        (SessionPhase.CLOSED, at("16:00:00")),
        (SessionPhase.PRE_OPEN, at("00:00:00", 6)),
    ]
    assert hours.phase_at(at("12:00:00", 9)) is SessionPhase.CLOSED
    assert hours.next_change_ns(at("17:00:00", 8)) == at("00:00:00", 9)
    monday = at("09:30:00", 11)  # an hour earlier by UTC than on the 8th
    assert (monday - at("09:30:00", 8)) // NS_PER_S == 3 * 86_400 - 3_600
    assert hours.phase_at(monday) is SessionPhase.CONTINUOUS


@pytest.mark.parametrize(
    "text", ["nine to five", "09:30-16:00 Mars/Olympus", "16:00-09:30", "09:30", "25:00-26:00 UTC"]
)
def test_hours_that_are_none_are_one_line(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"venue\.hours"):
        VenueConfig(hours=text)


def test_an_order_before_the_open_trades_in_the_opening_auction_at_its_price() -> None:
    exchange = Exchange(hours=HOURS, opening_call_s=600)
    exchange.quote(at("09:00:00"), 99.0, 99.5)
    exchange.order(at("09:21:00"), "early")
    exchange.trade(at("09:25:00"), 99.4)  # a report of another venue: nothing trades here yet
    exchange.quote(at("09:29:59"), 99.0, 99.2)
    assert exchange.of(OrderFilled) == []
    exchange.trade(at("09:30:01"), 99.70, 60)
    (fill,) = exchange.of(OrderFilled)
    assert (fill.price, fill.quantity, fill.at_ns) == (
        Decimal("99.70"),
        30,
        at("09:30:01"),
    )  # half of the 60 that traded
    exchange.trade(at("09:30:02"), 99.70, 500)
    assert sum(one.quantity for one in exchange.of(OrderFilled)) == 40


def test_without_an_opening_trade_the_first_quote_serves() -> None:
    exchange = Exchange(hours=HOURS)
    exchange.quote(at("09:00:00"), 99.0, 99.5)
    exchange.order(at("09:21:00"), "early")
    exchange.quote(at("09:30:00"), 100.00, 100.02, 25)
    (fill,) = exchange.of(OrderFilled)
    assert (fill.price, fill.quantity) == (Decimal("100.02"), 25)


def test_orders_of_the_day_end_with_it_after_the_closing_auction() -> None:
    exchange = Exchange(hours=HOURS, closing_call_s=300)
    exchange.quote(at("12:00:00"))
    exchange.order(at("12:00:01"), "low", "99.00")
    exchange.order(at("12:00:02"), "kept", "98.00", time_in_force=TimeInForce.GOOD_TILL_CANCEL)
    exchange.order(at("12:00:03"), "close", "100.50", time_in_force=TimeInForce.AT_THE_CLOSE)
    exchange.trade(at("12:00:04"), 100.0)
    assert exchange.of(OrderFilled) == []  # an order for the close takes no part before
    exchange.trade(at("15:56:00"), 100.10, 200)
    assert exchange.of(OrderFilled) == []
    exchange.take(at("16:00:00"))
    (fill,) = exchange.of(OrderFilled)
    assert (fill.order_id, fill.price, fill.quantity) == ("close", Decimal("100.10"), 40)
    assert [(one.order_id, one.at_ns) for one in exchange.of(OrderExpired)] == [("low", at("16:00:00"))]
    exchange.order(at("16:30:00"), "late")
    (refused,) = exchange.of(OrderRejected)
    assert refused.reason == "the venue is closed"
    exchange.quote(at("09:30:01", 6))
    exchange.trade(at("09:30:02", 6), 97.0)
    assert [one.order_id for one in exchange.of(OrderFilled)] == ["close", "kept"]


def test_a_price_out_of_its_band_halts_and_an_auction_opens_again() -> None:
    exchange = Exchange(band_share=0.05, halt_s=300)
    exchange.quote(at("12:00:00"))
    exchange.order(at("12:00:01"), "there", "93.00")
    exchange.trade(at("12:00:02"), 92.0)
    assert exchange.of(OrderFilled) == []  # the trade that breaks the band is not ours to share
    exchange.order(at("12:00:03"), "now", "93.00", time_in_force=TimeInForce.IMMEDIATE_OR_CANCEL)
    assert exchange.of(OrderRejected)[0].reason == "nothing trades at once in the phase halted"
    exchange.order(at("12:00:04"), "waits", "94.00")
    exchange.venue.send(CancelRequest(at_ns=at("12:00:05"), order_id="there", cl_ord_id="x"))
    exchange.take(at("12:00:05"))
    assert [one.order_id for one in exchange.of(OrderCanceled)] == ["there"]
    exchange.trade(at("12:04:00"), 91.0)
    exchange.take(at("12:05:01"))
    assert exchange.of(OrderFilled) == []
    exchange.trade(at("12:05:03"), 91.5, 200)
    (fill,) = exchange.of(OrderFilled)
    assert (fill.order_id, fill.price) == ("waits", Decimal("91.50"))
    assert exchange.phases == [
        (at("12:00:00"), SessionPhase.CONTINUOUS),
        (at("12:00:02"), SessionPhase.HALTED),
        (at("12:05:02"), SessionPhase.CONTINUOUS),
    ]


def test_a_halt_in_the_closing_auction_gives_way_to_the_close() -> None:
    exchange = Exchange(hours=HOURS, closing_call_s=300, band_share=0.05, halt_s=900)
    exchange.quote(at("15:50:00"))
    exchange.order(at("15:50:01"), "close", "100.50", time_in_force=TimeInForce.AT_THE_CLOSE)
    exchange.order(at("15:50:02"), "day", "99.00")
    exchange.trade(at("15:54:00"), 92.0)
    exchange.take(at("16:00:00"))
    assert [phase for _, phase in exchange.phases] == [
        SessionPhase.CONTINUOUS,
        SessionPhase.HALTED,
        SessionPhase.CLOSING_AUCTION,
        SessionPhase.CLOSED,
    ]
    fills = [(one.order_id, one.price, one.quantity) for one in exchange.of(OrderFilled)]
    assert fills == [
        ("close", Decimal("92.00"), 40),
        ("day", Decimal("92.00"), 10),
    ]  # half of the 100 that traded
    assert [one.order_id for one in exchange.of(OrderExpired)] == ["day"]


@pytest.mark.parametrize(
    ("kind", "when", "why"),
    [
        (TimeInForce.AT_THE_OPENING, "12:00:00", "the opening has passed"),
        (TimeInForce.AT_THE_CLOSE, "12:00:00", "there is no closing auction"),
        (TimeInForce.FILL_OR_KILL, "09:00:00", "nothing trades at once in the phase pre_open"),
    ],
)
def test_orders_for_another_time_are_refused(kind: TimeInForce, when: str, why: str) -> None:
    exchange = Exchange(hours=HOURS)
    exchange.quote(at(when))
    exchange.order(at(when) + NS_PER_S, "o", time_in_force=kind)
    assert [one.reason for one in exchange.of(OrderRejected)] == [why]


def test_an_order_for_the_opening_that_was_not_filled_expires_with_it() -> None:
    exchange = Exchange(hours=HOURS)
    exchange.quote(at("09:00:00"))
    exchange.order(at("09:00:01"), "o", "95.00", time_in_force=TimeInForce.AT_THE_OPENING)
    exchange.trade(at("09:30:00"), 100.0)
    assert [one.order_id for one in exchange.of(OrderExpired)] == ["o"]


def test_a_change_during_a_halt_waits_for_the_auction() -> None:
    exchange = Exchange(band_share=0.05, halt_s=60)
    exchange.quote(at("12:00:00"))
    exchange.order(at("12:00:01"), "o", "90.00")
    exchange.trade(at("12:00:02"), 80.0)
    exchange.venue.send(
        ReplaceRequest(
            at_ns=at("12:00:03"), order_id="o", cl_ord_id="r", quantity=40, price=Decimal("101.00")
        )
    )
    exchange.take(at("12:00:04"))
    assert exchange.of(OrderFilled) == []
    exchange.quote(at("12:02:00"), 89.0, 89.5)
    assert exchange.of(OrderFilled)[0].price == Decimal("89.50")


def test_an_instrument_that_has_bars_alone_knows_no_hours() -> None:
    exchange = Exchange(hours=HOURS)
    end_ns = at("16:00:00")
    begin_ns = end_ns - 86_400 * NS_PER_S
    exchange.venue.observe(
        Bar(end_ns, end_ns, "b", 1, "ACME", "1d", begin_ns, end_ns, 100.0, 101.0, 99.0, 100.0, 1e6)
    )
    exchange.take(end_ns)
    exchange.order(end_ns + NS_PER_S, "o")
    assert [phase for _, phase in exchange.phases] == [SessionPhase.CONTINUOUS]
    assert len(exchange.of(OrderAcknowledged)) == 1


def test_hidden_lots_queue_again_behind_what_is_displayed() -> None:
    exchange = Exchange()
    exchange.quote(at("12:00:00"), size=100)
    exchange.order(at("12:00:01"), "iceberg", "99.99", quantity=50, display_quantity=20)
    exchange.order(at("12:00:01"), "whole", "99.99", quantity=50)
    exchange.trade(at("12:00:02"), 99.99, 130)  # 100 were ahead
    filled = {one.order_id: one.quantity for one in exchange.of(OrderFilled)}
    assert filled == {"iceberg": 20, "whole": 30}
    exchange.trade(at("12:00:03"), 99.99, 50)
    filled = {
        name: sum(one.quantity for one in exchange.of(OrderFilled) if one.order_id == name) for name in filled
    }
    assert filled == {"iceberg": 20, "whole": 50}  # the next 20 stand behind the 100 displayed
    exchange.trade(at("12:00:04"), 99.99, 70)
    assert sum(one.quantity for one in exchange.of(OrderFilled) if one.order_id == "iceberg") == 40
