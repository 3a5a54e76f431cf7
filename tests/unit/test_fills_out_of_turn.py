"""Fills that the state of an order does not allow were traded all the same: they count, with an alert."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from htfi.domain.decision import Receipt
from htfi.domain.order_limits import OrderLimits
from htfi.domain.orders import (
    AlertRaised,
    CancelRequest,
    DecisionNoted,
    FillBusted,
    InstrumentTerms,
    MarketSnapshot,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
    OrderSide,
    TradingDisabled,
)
from htfi.execution.accounting import Accounts
from htfi.execution.gate.audit import rejudge
from htfi.execution.gate.judging import GateCheck
from htfi.execution.intents import OrderIntent
from htfi.execution.order_entry import OrderEntry

T = 1_700_000_000_000_000_000
LIMITS = {"max_position_value": 25_000.0, "max_order_value": 1e6, "max_repeated_executions": 2}


class Desk:
    """One order of 100 lots at 100, which the venue has cancelled; events as they are recorded."""

    def __init__(self) -> None:
        self.events: list[OrderEvent] = []
        self.entry = OrderEntry(self, {"X": self})
        terms = InstrumentTerms(at_ns=T, instrument="AAA", tick=Decimal("0.01"))
        self.entry.put_in_force([terms, *OrderLimits(**LIMITS).in_force(T, "test")])
        self.send_order("d1")
        self.entry.receive(
            [OrderAcknowledged(at_ns=T, order_id="d1"), OrderCanceled(at_ns=T + 1, order_id="d1")]
        )

    def append(self, events: Sequence[OrderEvent]) -> None:
        self.events += events

    def send(self, request: object) -> None: ...

    def next(self, until_ns: int) -> None: ...

    def send_order(self, order_id: str, lots: int = 100) -> Sequence[GateCheck]:
        receipt = Receipt(int(order_id[1:]), "ab" * 32)
        market = MarketSnapshot(
            at_ns=T, instrument="AAA", venue="X", bid=Decimal("99.9"), ask=Decimal("100.1")
        )
        self.entry.observe(market)
        self.entry.put_in_force(
            [DecisionNoted(at_ns=T, receipt=receipt, instrument="AAA", is_released=True, as_of_ns=T)]
        )
        intent = OrderIntent(
            at_ns=T, order_id=order_id, instrument="AAA", venue="X", side=OrderSide.BUY, lots=lots, price_ticks=10_000,
            receipt=receipt, algo="a", trader="t",
        )  # fmt: skip
        (verdict,) = self.entry.submit([intent])
        return [one.check for one in verdict.objections]

    def fill(self, exec_id: str, lots: int = 100) -> list[OrderEvent]:
        price = Decimal("100.00")
        fill = OrderFilled(at_ns=T + 2, order_id="d1", exec_id=exec_id, quantity=lots, price=price)
        return self.entry.receive([fill])

    def position(self) -> int:
        """As the gate and the accounts have it; the record holds, and the gate decides again as it did."""
        accounts = Accounts().take_all(self.events)
        assert accounts.problems == []
        assert list(rejudge(self.events)) == []
        lots = sum(one.lots for one in accounts.positions.values())
        assert self.entry.state.positions.get(("", "AAA"), 0) == lots
        return lots


def test_a_fill_after_a_cancel_is_in_the_position_with_an_alert() -> None:
    desk = Desk()
    fill, alert = desk.fill("e1", 40)
    assert isinstance(fill, OrderFilled)
    assert isinstance(alert, AlertRaised)
    assert alert.order_id == "d1"
    assert alert.what == "OrderFilled: filled when it was canceled; it counts in the position"
    assert desk.position() == 40
    assert desk.entry.open_orders() == []


def test_a_fill_that_comes_again_counts_once_and_another_of_the_same_lots_twice() -> None:
    desk = Desk()
    assert len(desk.fill("e1")) == 2
    assert desk.fill("e1") == []
    _, alert = desk.fill("e2")
    assert isinstance(alert, AlertRaised)
    assert desk.position() == 200


def test_what_was_filled_late_may_be_busted_and_corrected_later() -> None:
    desk = Desk()
    desk.fill("e1")
    desk.fill("e2", 30)
    desk.entry.receive([FillBusted(at_ns=T + 3, order_id="d1", exec_id="e1", quantity=100)])
    corrected = OrderFilled(
        at_ns=T + 3, order_id="d1", exec_id="e3", quantity=90, price=Decimal(100), corrects="e1"
    )
    desk.entry.receive([corrected])
    assert desk.position() == 120


def test_the_gate_counts_what_was_filled_late_against_its_limits() -> None:
    desk = Desk()
    assert desk.send_order("d2") == []
    desk = Desk()
    desk.fill("e1")
    desk.fill("e2")
    assert GateCheck.POSITION_VALUE in desk.send_order("d2")


def test_what_follows_from_a_late_fill_is_recorded_between_it_and_its_alert() -> None:
    desk = Desk()
    desk.fill("e1", 10)
    desk.fill("e2", 10)
    kinds = [type(one) for one in desk.fill("e3", 10)]
    assert kinds == [OrderFilled, TradingDisabled, AlertRaised]
    assert desk.position() == 30


@pytest.mark.parametrize("lots", [40, 100])
def test_a_record_that_holds_a_late_fill_without_its_alert_does_not_add_up(lots: int) -> None:
    desk = Desk()
    desk.fill("e1", lots)
    silent = [one for one in desk.events if not isinstance(one, AlertRaised)]
    (problem,) = Accounts().take_all(silent).problems
    assert "on order d1: filled when it was canceled, and no alert says so" in problem


def test_a_cancel_in_flight_is_answered_by_the_fill_of_all_lots() -> None:
    desk = Desk()
    desk.send_order("d3")
    desk.entry.submit([desk.entry.cancel_intent(desk.entry.state.orders["d3"], T)])
    assert any(isinstance(one, CancelRequest) for one in desk.events)
    fill = OrderFilled(at_ns=T + 2, order_id="d3", exec_id="e1", quantity=100, price=Decimal(100))
    assert desk.entry.receive([fill]) == [fill]
    assert desk.position() == 100
