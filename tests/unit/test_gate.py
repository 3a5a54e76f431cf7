"""The gate before orders: each check refuses what it is there for, and lets the next best thing pass."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from htfi.domain.decision import Receipt
from htfi.domain.orders import (
    DecisionNoted,
    FillBusted,
    InstrumentTerms,
    LimitOverride,
    LimitsInForce,
    MarketSnapshot,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
    OrderRejected,
    OrderReplaced,
    OrderSide,
    OrderType,
    RejectedBy,
    SessionPhase,
    TradingDisabled,
    TradingEnabled,
)
from htfi.domain.time import NS_PER_S
from htfi.execution.gate.judging import GateCheck, judge
from htfi.execution.gate.records import MAX_IDENTICAL_SEEN
from htfi.execution.gate.state import GateState
from htfi.execution.intents import CancelIntent, OrderIntent, ReplaceIntent

NOW = 1_000 * NS_PER_S
HASH = "ab" * 32
FIRM_LIMITS = LimitsInForce(
    at_ns=1,
    scope="firm",
    price_collar=0.05,
    window_collar=0.10,
    collar_window_ns=300 * NS_PER_S,
    max_book_distance=0.02,
    max_order_value=Decimal(10_000),
    max_order_quantity=200,
    max_messages_per_s=5,
    max_repeated_executions=3,
    max_open_value=Decimal(25_000),
    max_position_value=Decimal(30_000),
    max_market_age_ns=NS_PER_S,
    max_decision_age_ns=60 * NS_PER_S,
    max_identical_orders=2,
    restricted=("EVIL",),
)


class Gate:
    """A gate at an instant, with one instrument at 99.99 to 100.01 and a released decision for each order."""

    def __init__(self, limits: LimitsInForce = FIRM_LIMITS) -> None:
        self.state = GateState()
        self.num_decisions = 0
        self.take(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01")))
        self.take(limits)
        self.quote()

    def take(self, *events: OrderEvent) -> list[OrderEvent]:
        follows: list[OrderEvent] = []
        for event in events:
            more = self.state.apply(event)
            follows += more
            for one in more:
                self.state.apply(one)
        return follows

    def quote(self, bid: str = "99.99", ask: str = "100.01", at_ns: int = NOW, **more: Any) -> None:
        self.take(
            MarketSnapshot(
                at_ns=at_ns, instrument="ACME", venue="XSIM", bid=Decimal(bid), ask=Decimal(ask), **more
            )
        )

    def decide(self, *, is_released: bool = True, at_ns: int = NOW, amends: int | None = None) -> Receipt:
        receipt = Receipt(self.num_decisions, HASH)
        self.num_decisions += 1
        self.take(
            DecisionNoted(
                at_ns=at_ns, receipt=receipt, instrument="ACME", is_released=is_released, amends=amends
            )
        )
        return receipt

    def intent(self, order_id: str = "o1", **changes: Any) -> OrderIntent:
        receipt = changes.pop("receipt", None) or self.decide()
        stated = OrderIntent(
            at_ns=NOW,
            order_id=order_id,
            instrument="ACME",
            venue="XSIM",
            side=OrderSide.BUY,
            lots=10,
            price_ticks=10_000,
            receipt=receipt,
            algo="trend",
            trader="ann",
            desk="equities",
            client="fund",
        )
        return msgspec.structs.replace(stated, **changes)

    def send(self, intent: OrderIntent, *, acknowledged: bool = True) -> None:
        """Send an order that the gate lets pass."""
        assert judge(self.state, intent) == ()
        self.take(intent.message(self.state.instruments["ACME"]))
        if acknowledged:
            self.take(OrderAcknowledged(at_ns=intent.at_ns, order_id=intent.order_id))

    def fill(
        self, order_id: str, lots: int, price: str = "100", exec_id: str = "", at_ns: int = NOW
    ) -> list[OrderEvent]:
        return self.take(
            OrderFilled(
                at_ns=at_ns,
                order_id=order_id,
                exec_id=exec_id or f"{order_id}-{lots}",
                quantity=lots,
                price=Decimal(price),
            )
        )

    def objections(self, intent: OrderIntent | ReplaceIntent | CancelIntent) -> set[GateCheck]:
        return {one.check for one in judge(self.state, intent)}


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_order_within_all_limits_passes(gate: Gate) -> None:
    assert judge(gate.state, gate.intent()) == ()


CASES: dict[str, tuple[Callable[[Gate], OrderIntent], set[GateCheck]]] = {
    "no lots": (lambda gate: gate.intent(lots=0), {GateCheck.FORM}),
    "negative price": (
        lambda gate: gate.intent(price_ticks=-1),
        {GateCheck.FORM, GateCheck.PRICE_COLLAR, GateCheck.WINDOW_COLLAR},
    ),
    "limit order without price": (
        lambda gate: gate.intent(price_ticks=None),
        {GateCheck.FORM, GateCheck.UNPRICED},
    ),
    "market order": (
        lambda gate: gate.intent(price_ticks=None, order_type=OrderType.MARKET),
        {GateCheck.UNPRICED},
    ),
    "stop without a stop price": (
        lambda gate: gate.intent(order_type=OrderType.STOP_LIMIT),
        {GateCheck.FORM},
    ),
    "more shown than there is": (lambda gate: gate.intent(display_lots=11), {GateCheck.FORM}),
    "parent without its lots": (
        lambda gate: gate.intent(parent_id="p"),
        {GateCheck.FORM},
    ),
    "nobody's order": (
        lambda gate: gate.intent(algo="", trader="", desk="", client=""),
        {GateCheck.FORM},
    ),
    "unknown instrument": (
        lambda gate: gate.intent(instrument="OTHER"),
        {GateCheck.INSTRUMENT, GateCheck.DECISION_SYMBOL, GateCheck.MARKET_MISSING, GateCheck.UNPRICED},
    ),
    "other venue": (
        lambda gate: gate.intent(venue="XOTH"),
        {GateCheck.MARKET_MISSING},
    ),
    "empty id": (lambda gate: gate.intent(order_id=""), {GateCheck.ORDER_ID}),
    "clock behind": (
        lambda gate: gate.intent(at_ns=NOW - 2 * NS_PER_S),
        {GateCheck.CLOCK},
    ),
    "no decision": (
        lambda gate: msgspec.structs.replace(gate.intent(), receipt=None),
        {GateCheck.DECISION_MISSING},
    ),
    "decision that is not in the ledger": (
        lambda gate: gate.intent(receipt=Receipt(99, HASH)),
        {GateCheck.DECISION_UNKNOWN},
    ),
    "altered decision": (
        lambda gate: gate.intent(receipt=Receipt(gate.decide().index, "cd" * 32)),
        {GateCheck.DECISION_ALTERED},
    ),
    "withheld decision": (
        lambda gate: gate.intent(receipt=gate.decide(is_released=False)),
        {GateCheck.DECISION_WITHHELD},
    ),
    "old decision": (
        lambda gate: gate.intent(receipt=gate.decide(at_ns=NOW - 61 * NS_PER_S)),
        {GateCheck.DECISION_AGE},
    ),
    "above the collar": (
        lambda gate: gate.intent(price_ticks=10_501),
        {GateCheck.PRICE_COLLAR, GateCheck.BOOK_DISTANCE},
    ),
    "below the collar": (lambda gate: gate.intent(price_ticks=9_499), {GateCheck.PRICE_COLLAR}),
    "too far into the book": (lambda gate: gate.intent(price_ticks=10_202), {GateCheck.BOOK_DISTANCE}),
    "too large a value": (lambda gate: gate.intent(lots=101), {GateCheck.ORDER_VALUE}),
    "too many lots": (
        lambda gate: gate.intent(lots=201),
        {GateCheck.ORDER_VALUE, GateCheck.ORDER_QUANTITY},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_order_is_refused(gate: Gate, name: str) -> None:
    make, expected = CASES[name]
    assert gate.objections(make(gate)) == expected


def test_prices_at_the_very_limits_pass(gate: Gate) -> None:
    assert gate.objections(gate.intent(price_ticks=9_500)) == set()  # collar 5% of 100.00
    assert gate.objections(gate.intent(price_ticks=10_201)) == set()  # 2% of 100.01 beyond it
    assert gate.objections(gate.intent(lots=100)) == set()  # 10,000


def test_restricted_and_not_permitted_are_refused(gate: Gate) -> None:
    gate.take(msgspec.structs.replace(FIRM_LIMITS, restricted=("ACME",)))
    assert gate.objections(gate.intent()) == {GateCheck.PERMISSION}
    gate.take(FIRM_LIMITS)
    assert gate.objections(gate.intent()) == set()
    gate.take(LimitsInForce(at_ns=NOW, scope="client:fund", permitted=("OTHER",)))
    assert gate.objections(gate.intent()) == {GateCheck.PERMISSION}


def test_narrower_scope_may_only_tighten(gate: Gate) -> None:
    gate.take(
        LimitsInForce(at_ns=NOW, scope="trader:ann", max_order_quantity=5, max_order_value=Decimal(10**9))
    )
    assert gate.objections(gate.intent()) == {GateCheck.ORDER_QUANTITY}
    assert gate.objections(gate.intent(trader="bob")) == set()
    assert gate.objections(gate.intent(trader="ann", lots=101)) == {
        GateCheck.ORDER_QUANTITY,
        GateCheck.ORDER_VALUE,
    }


def test_without_limits_nothing_passes() -> None:
    gate = Gate(LimitsInForce(at_ns=1, scope="desk:other", max_order_quantity=1))
    assert GateCheck.NO_LIMITS in gate.objections(gate.intent())


def test_decision_is_used_once(gate: Gate) -> None:
    receipt = gate.decide()
    gate.send(gate.intent("o1", receipt=receipt))
    assert gate.objections(gate.intent("o2", receipt=receipt, price_ticks=9_999)) == {GateCheck.DECISION_USED}


def test_children_of_one_parent_share_its_decision_up_to_its_lots(gate: Gate) -> None:
    receipt = gate.decide()
    child = gate.intent("c1", receipt=receipt, parent_id="p", parent_lots=25)
    gate.send(child)
    gate.send(msgspec.structs.replace(child, order_id="c2", price_ticks=9_999))
    third = msgspec.structs.replace(child, order_id="c3", price_ticks=9_998)
    assert gate.objections(third) == {GateCheck.DECISION_USED}
    assert gate.objections(msgspec.structs.replace(third, lots=5)) == set()
    gate.take(OrderCanceled(at_ns=NOW, order_id="c2"))  # its lots are free again
    assert gate.objections(third) == set()
    assert gate.objections(msgspec.structs.replace(third, parent_lots=100)) == {GateCheck.DECISION_USED}


def test_decision_of_a_refused_order_may_be_acted_on_by_another(gate: Gate) -> None:
    receipt = gate.decide()
    refused = gate.intent("o1", receipt=receipt, lots=101)
    gate.take(
        refused.message(gate.state.instruments["ACME"]),
        OrderRejected(at_ns=NOW, order_id="o1", by=RejectedBy.GATE),
    )
    assert gate.objections(gate.intent("o2", receipt=receipt)) == set()
    assert gate.objections(gate.intent("o1", receipt=receipt)) == {GateCheck.ORDER_ID}


def test_refused_order_frees_no_decision_that_another_order_has_acted_on(gate: Gate) -> None:
    receipt = gate.decide()
    gate.send(gate.intent("o1", receipt=receipt))
    gate.take(OrderCanceled(at_ns=NOW, order_id="o1"))  # nothing of it was filled, but it was sent
    refused = gate.intent("o2", receipt=receipt)
    assert gate.objections(refused) == {GateCheck.DECISION_USED}
    gate.take(
        refused.message(gate.state.instruments["ACME"]),
        OrderRejected(at_ns=NOW, order_id="o2", by=RejectedBy.GATE),
    )
    assert gate.objections(gate.intent("o3", receipt=receipt)) == {GateCheck.DECISION_USED}


def test_amended_decision_gives_way_to_its_amendment(gate: Gate) -> None:
    first = gate.decide()
    gate.send(gate.intent("o1", receipt=first))
    second = gate.decide(amends=first.index)
    assert gate.objections(gate.intent("o2", receipt=first, price_ticks=9_999)) == {
        GateCheck.DECISION_AMENDED
    }
    assert gate.objections(gate.intent("o2", receipt=second, price_ticks=9_999)) == set()


@pytest.mark.parametrize(
    "scope", ["firm", "client:fund", "trader:ann", "desk:equities", "algo:trend", "instrument:ACME"]
)
def test_disabled_scope_refuses_orders_and_lets_cancels_pass(gate: Gate, scope: str) -> None:
    gate.send(gate.intent("o1"))
    gate.take(TradingDisabled(at_ns=NOW, scope=scope, cause="drill"))
    assert gate.objections(gate.intent("o2")) == {GateCheck.DISABLED}
    assert gate.objections(ReplaceIntent(at_ns=NOW, order_id="o1", cl_ord_id="r1", lots=9)) == {
        GateCheck.DISABLED
    }
    assert gate.objections(CancelIntent(at_ns=NOW, order_id="o1", cl_ord_id="x1")) == set()
    gate.take(TradingEnabled(at_ns=NOW, scope=scope, by=""))
    assert gate.objections(gate.intent("o2")) == {GateCheck.DISABLED}  # nobody is named
    gate.take(TradingEnabled(at_ns=NOW, scope=scope, by="Ann Lee", why="over"))
    assert gate.objections(gate.intent("o2")) == set()


def test_market_that_is_stale_crossed_or_closed_refuses(gate: Gate) -> None:
    late = NOW + NS_PER_S + 1
    assert gate.objections(gate.intent(at_ns=late)) == {GateCheck.MARKET_AGE}
    gate.quote("100.02", "100.01")
    assert gate.objections(gate.intent()) == {GateCheck.MARKET_CROSSED}
    gate.quote(phase=SessionPhase.HALTED)
    assert gate.objections(gate.intent()) == {GateCheck.MARKET_PHASE}
    gate.quote(phase=SessionPhase.CONTINUOUS)
    assert gate.objections(gate.intent()) == set()


def test_prices_that_run_away_meet_the_collar_over_time(gate: Gate) -> None:
    for step in range(1, 13):  # 12% in two minutes, each step within the collar of the moment
        price = 100 + step
        gate.quote(f"{price}.00", f"{price}.02", at_ns=NOW + step * 10 * NS_PER_S)
    end = NOW + 120 * NS_PER_S
    intent = gate.intent(at_ns=end, price_ticks=11_201, receipt=gate.decide(at_ns=end))
    assert gate.objections(intent) == {GateCheck.WINDOW_COLLAR}


def test_messages_of_a_second_are_counted_and_refused_ones_are_not(gate: Gate) -> None:
    for place in range(4):
        gate.send(gate.intent(f"o{place}", price_ticks=10_000 - place))
    gate.take(
        gate.intent("bad").message(gate.state.instruments["ACME"]),
        OrderRejected(at_ns=NOW, order_id="bad", by=RejectedBy.GATE),
    )
    gate.take(CancelIntent(at_ns=NOW, order_id="o0", cl_ord_id="x").message())
    assert gate.objections(gate.intent("o5", price_ticks=9_990)) == {GateCheck.MESSAGES}
    later = NOW + NS_PER_S
    gate.quote(at_ns=later)
    assert gate.objections(gate.intent("o5", price_ticks=9_990, at_ns=later)) == set()


def test_repeated_executions_lock_until_a_named_person_enables(gate: Gate) -> None:
    gate.send(gate.intent("o1"))
    for place in range(3):
        assert gate.fill("o1", 1, exec_id=f"e{place}") == []
    locks = gate.fill("o1", 1, exec_id="e3")
    assert [type(one) for one in locks] == [TradingDisabled]
    assert locks[0].scope == "algo:trend"  # type: ignore[union-attr]
    assert gate.objections(gate.intent("o2")) == {GateCheck.DISABLED}
    gate.take(TradingEnabled(at_ns=NOW, scope="algo:trend", by="Ann Lee"))
    assert gate.objections(gate.intent("o2")) == set()


def test_exposure_counts_open_orders_and_fills(gate: Gate) -> None:
    gate.take(msgspec.structs.replace(FIRM_LIMITS, max_messages_per_s=100))
    gate.send(gate.intent("o1", lots=100))
    gate.send(gate.intent("o2", lots=100, price_ticks=9_999))
    assert gate.objections(gate.intent("o3", lots=60)) == {GateCheck.OPEN_VALUE}
    gate.fill("o1", 100)
    gate.fill("o2", 100, "99.99")
    assert gate.objections(gate.intent("o3", lots=60)) == set()  # 19,999 filled and 6,000 open
    assert gate.objections(gate.intent("o3", lots=100)) == set()
    assert gate.objections(gate.intent("o3", lots=100, price_ticks=10_002)) == {
        GateCheck.ORDER_VALUE,
        GateCheck.POSITION_VALUE,
    }


def test_orders_alike_are_counted_while_they_are_open_and_not_pushed_out_by_newer_ones() -> None:
    gate = Gate(msgspec.structs.replace(FIRM_LIMITS, max_identical_orders=1))
    orders = [gate.intent(f"o{number}", lots=1) for number in range(MAX_IDENTICAL_SEEN + 2)]
    for one in orders:
        gate.take(one.message(gate.state.instruments["ACME"]))
    (alike,) = gate.state.recent.values()
    assert alike.num_open == MAX_IDENTICAL_SEEN
    gate.take(OrderCanceled(at_ns=NOW, order_id="o0"))  # it was pushed out
    assert alike.num_open == alike.num_since(NOW) == MAX_IDENTICAL_SEEN
    gate.take(*(OrderCanceled(at_ns=NOW, order_id=one.order_id) for one in orders[1:-1]))
    assert alike.num_open == alike.num_since(NOW) == 1
    assert GateCheck.IDENTICAL in gate.objections(gate.intent("more", lots=1))
    gate.take(OrderCanceled(at_ns=NOW, order_id=orders[-1].order_id))
    assert GateCheck.IDENTICAL not in gate.objections(gate.intent("more", lots=1))


@pytest.mark.parametrize("stated", [1, 60, 0])
def test_bust_takes_back_the_whole_fill_that_it_names_whatever_lots_it_states(
    gate: Gate, stated: int
) -> None:
    gate.send(gate.intent("o1", lots=100))
    gate.fill("o1", 40, exec_id="e1")
    gate.fill("o1", 30, exec_id="e2")
    gate.take(FillBusted(at_ns=NOW, order_id="o1", exec_id="e1", quantity=stated))
    order = gate.state.orders["o1"].state
    assert (order.filled, order.leaves, gate.state.positions["", "ACME"]) == (30, 70, 30)


def test_bust_gives_back_what_the_fill_took(gate: Gate) -> None:
    gate.send(gate.intent("o1", lots=100))
    gate.fill("o1", 40, exec_id="e1")
    gate.fill("o1", 40, exec_id="e1")  # sent twice
    assert gate.state.positions["", "ACME"] == 40
    assert gate.state.scopes["firm"].filled_value == 4_000 * 10**9
    gate.take(FillBusted(at_ns=NOW, order_id="o1", exec_id="e1", quantity=40))
    gate.take(FillBusted(at_ns=NOW, order_id="o1", exec_id="e1", quantity=40))
    assert gate.state.positions["", "ACME"] == 0
    assert gate.state.scopes["firm"].filled_value == 0
    assert gate.state.scopes["firm"].open_value == 10_000 * 10**9


def test_identical_orders_and_self_trades_are_refused(gate: Gate) -> None:
    gate.send(gate.intent("o1"))
    gate.send(gate.intent("o2"))
    assert gate.objections(gate.intent("o3")) == {GateCheck.IDENTICAL}
    assert gate.objections(gate.intent("o3", side=OrderSide.SELL)) == {GateCheck.SELF_TRADE}
    assert gate.objections(gate.intent("o3", side=OrderSide.SELL, price_ticks=10_001)) == set()
    gate.take(OrderCanceled(at_ns=NOW, order_id="o1"), OrderCanceled(at_ns=NOW, order_id="o2"))
    assert gate.objections(gate.intent("o3", side=OrderSide.SELL)) == set()


def test_replace_is_judged_by_what_the_order_would_become(gate: Gate) -> None:
    gate.send(gate.intent("o1", parent_id="p", parent_lots=300))

    def replaced(**changes: Any) -> ReplaceIntent:
        return msgspec.structs.replace(
            ReplaceIntent(at_ns=NOW, order_id="o1", cl_ord_id="r1", lots=20, price_ticks=9_999), **changes
        )

    assert gate.objections(replaced()) == set()
    assert gate.objections(replaced(lots=201)) == {GateCheck.ORDER_QUANTITY, GateCheck.ORDER_VALUE}
    assert gate.objections(replaced(lots=301)) == {
        GateCheck.ORDER_QUANTITY,
        GateCheck.ORDER_VALUE,
        GateCheck.OPEN_VALUE,
        GateCheck.POSITION_VALUE,
        GateCheck.DECISION_USED,
    }
    assert gate.objections(replaced(price_ticks=9_000)) == {GateCheck.PRICE_COLLAR}
    assert gate.objections(replaced(cl_ord_id="o1")) == {GateCheck.ORDER_ID}
    gate.fill("o1", 5)
    assert gate.objections(replaced(lots=5)) == {GateCheck.FORM}
    gate.take(replaced().message(gate.state.instruments["ACME"]))
    assert gate.objections(replaced(cl_ord_id="r2")) == {GateCheck.ORDER_STATE}  # the first awaits its answer
    gate.take(OrderReplaced(at_ns=NOW, order_id="o1", cl_ord_id="r1", quantity=20, price=Decimal("99.99")))
    assert gate.state.scopes["firm"].open_value == 15 * 9_999 * 10**7
    assert gate.objections(replaced(cl_ord_id="r2")) == set()
    gate.take(OrderCanceled(at_ns=NOW, order_id="o1"))
    assert gate.objections(replaced(cl_ord_id="r3")) == {GateCheck.ORDER_STATE}
    assert gate.objections(CancelIntent(at_ns=NOW, order_id="o1", cl_ord_id="x")) == {GateCheck.ORDER_STATE}
    assert gate.objections(CancelIntent(at_ns=NOW, order_id="o9", cl_ord_id="x")) == {GateCheck.ORDER_STATE}


def test_override_lets_one_order_pass_one_limit_until_its_end(gate: Gate) -> None:
    stated = LimitOverride(
        at_ns=NOW,
        order_id="o1",
        limit="max_order_value",
        asked_by="Ann Lee",
        authorised_by="Bo Chan",
        expires_at_ns=NOW + NS_PER_S,
    )
    big = gate.intent("o1", lots=101)
    gate.take(msgspec.structs.replace(stated, authorised_by="Ann Lee"))
    assert gate.objections(big) == {GateCheck.ORDER_VALUE}  # nobody authorises what they ask for
    gate.take(stated)
    assert gate.objections(big) == set()
    assert gate.objections(msgspec.structs.replace(big, order_id="o2")) == {GateCheck.ORDER_VALUE}
    assert gate.objections(msgspec.structs.replace(big, lots=201)) == {GateCheck.ORDER_QUANTITY}
    gate.quote(at_ns=NOW + 2 * NS_PER_S)
    assert gate.objections(msgspec.structs.replace(big, at_ns=NOW + 2 * NS_PER_S)) == {GateCheck.ORDER_VALUE}


def test_override_of_a_ban_or_a_decision_does_not_count(gate: Gate) -> None:
    gate.take(TradingDisabled(at_ns=NOW, scope="firm", cause="drill"))
    for limit in ("disabled", "permission", "decision_withheld"):
        gate.take(
            LimitOverride(
                at_ns=NOW, order_id="o1", limit=limit, asked_by="A", authorised_by="B", expires_at_ns=NOW * 2
            )
        )
    assert gate.objections(gate.intent("o1")) == {GateCheck.DISABLED}


def test_judging_changes_nothing(gate: Gate) -> None:
    gate.send(gate.intent("o1"))
    intent = gate.intent("o2", lots=500)
    before = repr(gate.state)
    assert judge(gate.state, intent)
    assert repr(gate.state) == before


def test_replay_of_the_stream_gives_the_same_state() -> None:
    events: list[OrderEvent] = []
    gate = Gate()
    take = gate.take

    def taken(*more: OrderEvent) -> list[OrderEvent]:
        events.extend(more)
        return take(*more)

    gate.state = GateState()
    gate.take = taken  # type: ignore[method-assign]
    gate.take(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01")), FIRM_LIMITS)
    gate.quote()
    gate.send(gate.intent("o1", lots=50))
    gate.fill("o1", 20)
    gate.send(gate.intent("o2", side=OrderSide.SELL, price_ticks=10_005))
    gate.take(OrderCanceled(at_ns=NOW, order_id="o1"))
    again = GateState()
    for event in events:
        again.apply(event)
    assert repr(again) == repr(gate.state)
    assert again.positions["", "ACME"] == 20
