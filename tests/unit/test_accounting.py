"""Positions and results of the order event stream: exact, and equal to a plain sum of cash and what is held."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.domain.orders import (
    FillBusted,
    InstrumentTerms,
    MarketSnapshot,
    NewOrder,
    OrderAcknowledged,
    OrderEvent,
    OrderFilled,
    OrderSide,
)
from htfi.execution.accounting import Accounts
from htfi.execution.instruments import NANOS


def trade(number: int, side: OrderSide, lots: int, price: str, fee: str = "0") -> list[OrderEvent]:
    order_id = f"o{number}"
    return [
        NewOrder(
            at_ns=number, order_id=order_id, instrument="ACME", venue="X", side=side, quantity=lots,
            price=Decimal(price), account="a",
        ),
        OrderAcknowledged(at_ns=number, order_id=order_id),
        OrderFilled(
            at_ns=number, order_id=order_id, exec_id="e", quantity=lots, price=Decimal(price), fee=Decimal(fee)
        ),
    ]  # fmt: skip


TERMS = InstrumentTerms(at_ns=1, instrument="ACME", venue="X", tick=Decimal("0.01"), multiplier=Decimal(10))


def mark(price: str) -> MarketSnapshot:
    return MarketSnapshot(at_ns=99, instrument="ACME", venue="X", bid=Decimal(price), ask=Decimal(price))


def test_a_position_is_opened_reduced_and_turned_round() -> None:
    accounts = Accounts().take_all(
        [
            TERMS,
            mark("100"),
            *trade(1, OrderSide.BUY, 10, "100", "1.5"),
            *trade(2, OrderSide.SELL, 4, "103", "0.5"),
            *trade(3, OrderSide.SELL, 9, "98"),
            mark("97"),
        ]
    )
    (position,) = accounts.positions.values()
    assert position.lots == -3
    assert position.realised == (4 * 30 - 6 * 20) * NANOS  # a lot at a price of 1 is worth 10
    assert position.unrealised(accounts.unit("ACME")) == 3 * 10 * NANOS
    assert accounts.money() == (0, 30 * NANOS, 2 * NANOS)
    assert position.shortfall == (-4 * 30 + 9 * 20) * NANOS
    assert accounts.problems == []


@pytest.mark.parametrize("stated", [10, 4, 11])
def test_a_bust_takes_its_whole_fill_back_whatever_lots_it_states(stated: int) -> None:
    accounts = Accounts().take_all([TERMS, mark("100"), *trade(1, OrderSide.BUY, 10, "101", "1")])
    accounts.take(FillBusted(at_ns=2, order_id="o1", exec_id="e", quantity=stated))
    assert accounts.orders["o1"].state.filled == 0
    assert accounts.problems == []
    (position,) = accounts.positions.values()
    assert (position.lots, position.cost, position.fees, position.shortfall) == (0, 0, 0, 0)
    assert accounts.num_fills == 0
    accounts.take(FillBusted(at_ns=3, order_id="o1", exec_id="e", quantity=10))
    assert len(accounts.problems) == 1


def test_what_cannot_follow_is_named() -> None:
    first = trade(1, OrderSide.BUY, 10, "100")
    accounts = Accounts().take_all([*first, first[0], first[2], OrderAcknowledged(at_ns=4, order_id="ghost")])
    assert [one.partition(": ")[0] for one in accounts.problems] == [
        "event 4 on order o1",
        "event 5 on order o1",
        "event 6 on order ghost",
    ]


FILLS = st.lists(
    st.tuples(st.booleans(), st.integers(1, 50), st.integers(9_000, 11_000)), min_size=1, max_size=30
)


@settings(max_examples=examples(200))
@given(fills=FILLS, last=st.integers(9_000, 11_000))
def test_the_result_is_the_cash_and_what_is_held(fills: list[tuple[bool, int, int]], last: int) -> None:
    """Realised and unrealised come to what was got less what was paid, plus the position at the newest price."""
    events: list[OrderEvent] = [TERMS]
    cash, held = Decimal(0), 0
    for number, (buys, lots, cents) in enumerate(fills, 1):
        price = Decimal(cents) / 100
        events += trade(number, OrderSide.BUY if buys else OrderSide.SELL, lots, str(price))
        cash += (-1 if buys else 1) * lots * price * 10
        held += lots if buys else -lots
    accounts = Accounts().take_all([*events, mark(str(Decimal(last) / 100))])
    realised, unrealised, _ = accounts.money()
    expected = cash + held * Decimal(last) / 100 * 10
    assert abs(Decimal(realised + unrealised) / NANOS - expected) < Decimal("1e-7")
    assert accounts.positions["a", "ACME"].lots == held
