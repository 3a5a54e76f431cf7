"""The gate on children of an algorithm's parent order: each keeps to what its parent states."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from htfi.domain.decision import Receipt
from htfi.domain.order_limits import OrderLimits
from htfi.domain.orders import (
    DecisionNoted,
    InstrumentTerms,
    MarketSnapshot,
    OrderSide,
    PaceBound,
    ParentOrder,
    UrgencyChanged,
)
from htfi.domain.time import NS_PER_S
from htfi.execution.gate.judging import GateCheck, judge
from htfi.execution.gate.state import GateState
from htfi.execution.intents import OrderIntent

S = NS_PER_S
T0 = 1_000 * S
RECEIPT = Receipt(7, "a" * 64)
PARENT = ParentOrder(
    at_ns=T0, order_id="p", instrument="AAA", side=OrderSide.BUY, quantity=1_000, algo="vwap", end_ns=T0 + 300 * S,
    limit_price=Decimal("100.10"), decision=RECEIPT, min_urgency=-1.0, max_urgency=2.0,
    pace=(PaceBound(T0 + 100 * S, 400), PaceBound(T0 + 200 * S, 800)), trader="t",
)  # fmt: skip
CHILD = OrderIntent(
    at_ns=T0 + 10 * S, order_id="p.1", instrument="AAA", venue="X", side=OrderSide.BUY, lots=100, price_ticks=10_000,
    receipt=RECEIPT, algo="vwap", trader="t", parent_id="p", parent_lots=1_000,
)  # fmt: skip


def gate(parent: ParentOrder = PARENT, limits: OrderLimits | None = None) -> GateState:
    state = GateState()
    for event in (limits or OrderLimits(max_order_value=1e9)).in_force(T0, "test"):
        state.apply(event)
    state.apply(InstrumentTerms(at_ns=T0, instrument="AAA", tick=Decimal("0.01")))
    state.apply(DecisionNoted(at_ns=T0, receipt=RECEIPT, instrument="AAA", is_released=True))
    state.apply(parent)
    return state


def checks(state: GateState, intent: OrderIntent) -> list[GateCheck]:
    """Objections to a child; the market is as fresh as it is."""
    state.apply(
        MarketSnapshot(
            at_ns=intent.at_ns, instrument="AAA", venue="X", bid=Decimal("99.99"), ask=Decimal("100.01")
        )
    )
    return [one.check for one in judge(state, intent)]


def test_a_child_may_be_sent_long_after_its_decision_while_its_parent_is_worked() -> None:
    late = structs.replace(CHILD, at_ns=T0 + 290 * S)
    assert checks(gate(), late) == []
    alone = structs.replace(late, parent_id="", parent_lots=0)
    assert checks(gate(), alone) == [GateCheck.DECISION_AGE]


def test_a_parent_on_an_old_decision_has_no_children() -> None:
    state = gate(structs.replace(PARENT, at_ns=T0 + 100 * S, end_ns=T0 + 300 * S))
    assert GateCheck.DECISION_AGE in checks(state, structs.replace(CHILD, at_ns=T0 + 150 * S))


@pytest.mark.parametrize(
    "change",
    [
        {"at_ns": T0 + 301 * S},
        {"price_ticks": 10_011},
        {"lots": 401},
        {"side": OrderSide.SELL},
        {"algo": "twap"},
        {"trader": "somebody"},
        {"account": "another"},
    ],
    ids=[
        "after its end",
        "beyond its limit",
        "faster than its pace",
        "side",
        "algorithm",
        "trader",
        "account",
    ],
)
def test_a_child_that_leaves_its_parents_bounds_is_refused(change: dict[str, Any]) -> None:
    assert checks(gate(), CHILD) == []
    assert checks(gate(), structs.replace(CHILD, **change)) == [GateCheck.PARENT]


def test_pace_loosens_with_time_and_counts_what_is_open() -> None:
    state = gate()
    first = structs.replace(CHILD, lots=400)
    assert checks(state, first) == []
    state.apply(first.message(state.instruments["AAA"]))
    second = structs.replace(CHILD, order_id="p.2", lots=400, price_ticks=9_998)
    assert checks(state, second) == [GateCheck.PARENT]
    assert checks(state, structs.replace(second, at_ns=T0 + 150 * S)) == []
    assert checks(state, structs.replace(second, at_ns=T0 + 250 * S, lots=601)) == [
        GateCheck.DECISION_USED, GateCheck.PARENT,
    ]  # fmt: skip


def test_an_urgency_out_of_bounds_stops_children() -> None:
    state = gate()
    state.apply(UrgencyChanged(at_ns=T0 + S, order_id="p", urgency=2.5, why="news"))
    assert checks(state, CHILD) == [GateCheck.PARENT]
    state.apply(UrgencyChanged(at_ns=T0 + S, order_id="p", urgency=2.0, why="news"))
    assert checks(state, CHILD) == []


def test_a_parent_may_last_no_longer_than_the_limits_allow() -> None:
    limits = OrderLimits(max_order_value=1e9, max_parent_s=299.0)
    assert checks(gate(limits=limits), CHILD) == [GateCheck.PARENT]


def test_the_first_parent_of_an_id_counts() -> None:
    state = gate()
    state.apply(structs.replace(PARENT, at_ns=T0 + S, limit_price=Decimal(200)))
    assert checks(state, structs.replace(CHILD, price_ticks=10_011)) == [GateCheck.PARENT]


def test_a_parent_that_claims_an_earlier_time_is_not_known() -> None:
    state = gate(structs.replace(PARENT, at_ns=T0 - 10 * S))
    assert state.parents == {}
