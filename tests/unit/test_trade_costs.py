"""What trading cost: worked by hand, and against sums over all orders."""

from decimal import Decimal

import pytest

from htfi.apps.cli.orders.costs import costs_page
from htfi.domain.orders import (
    FillBusted,
    InstrumentTerms,
    Liquidity,
    MarketSnapshot,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
    OrderRejected,
    OrderSide,
)
from htfi.execution.trade_costs import MARKOUTS_S, CostSurvey, OrderCosts, group_costs, sum_costs

S = 10**9
NANOS = 10**9


def market(at_s: float, bid: str, ask: str) -> MarketSnapshot:
    return MarketSnapshot(
        at_ns=int(at_s * S), instrument="ACME", venue="XA", bid=Decimal(bid), bid_quantity=9, ask=Decimal(ask),
        ask_quantity=9,
    )  # fmt: skip


def new(at_s: float, order_id: str, side: OrderSide, lots: int, algo: str = "twap") -> NewOrder:
    return NewOrder(
        at_ns=int(at_s * S), order_id=order_id, instrument="ACME", venue="XA", side=side, quantity=lots,
        price=Decimal("101"), algo=algo,
    )  # fmt: skip


def fill(
    at_s: float, order_id: str, lots: int, price: str, exec_id: str, *, took: bool = True
) -> OrderFilled:
    return OrderFilled(
        at_ns=int(at_s * S), order_id=order_id, exec_id=exec_id, quantity=lots, price=Decimal(price),
        fee=Decimal("0.1"), liquidity=Liquidity.REMOVED if took else Liquidity.ADDED,
    )  # fmt: skip


def acknowledged(at_s: float, order_id: str) -> OrderAcknowledged:
    return OrderAcknowledged(at_ns=int(at_s * S), order_id=order_id)


TERMS = InstrumentTerms(at_ns=0, instrument="ACME", venue="XA", tick=Decimal("0.01"), multiplier=Decimal(10))
BUY: list[OrderEvent] = [
    TERMS,
    market(1, "99.9", "100.1"),
    new(2, "b", OrderSide.BUY, 10),
    acknowledged(2.1, "b"),
    fill(3, "b", 4, "100.1", "e1"),
    market(4, "100.1", "100.3"),
    fill(5, "b", 2, "100.1", "e2", took=False),
    market(13, "100.2", "100.4"),
    market(16, "100.4", "100.6"),
    market(70, "99.9", "100.1"),
    OrderCanceled(at_ns=80 * S, order_id="b"),
]


def costs_of(events: list[OrderEvent]) -> list[OrderCosts]:
    return CostSurvey().take_all(events).costs()


def test_one_order_worked_by_hand() -> None:
    (one,) = costs_of(BUY)
    # lots of 10: the middle was 100 when it was sent, 100 at the first fill and 100.2 at the second
    assert one.spread == (4 * 10 * 1 + 2 * 10 * -1) * NANOS // 10
    assert one.move == 2 * 10 * 2 * NANOS // 10
    assert one.fees == 2 * NANOS // 10
    assert one.missed == 0  # the middle was 100 again when the last four lots were given up
    assert (one.wanted, one.filled, one.num_fills) == (10, 6, 2)
    assert one.value == 6 * 10 * 100 * NANOS
    assert one.taken == 4 * 10 * 100 * NANOS
    assert one.wait_ns == S
    # 10 s after: 100.3 at 13 s for the first, 100.5 at 16 s for the second
    assert one.markouts[0] == (4 * 10 * 2 + 2 * 10 * 4) * NANOS // 10
    assert one.markout_values[0] == 6 * 10 * 1001 * NANOS // 10
    # 60 s after: 70 s serves both; nothing is recorded as late as 300 s
    assert one.markouts[1] == -6 * 10 * NANOS // 10
    assert (one.markouts[2], one.markout_values[2]) == (0, 0)


def test_lots_that_were_not_filled_miss_what_the_market_did_until_the_end() -> None:
    events = [*BUY[:-2], market(70, "100.9", "101.1"), BUY[-1]]
    (one,) = costs_of(events)
    assert one.missed == 4 * 10 * NANOS
    assert sum_costs("all", [one]).missed_bps == pytest.approx(40)  # 1 of 100, on four lots of ten


def test_a_sale_has_the_signs_turned() -> None:
    events = [
        TERMS, market(1, "99.9", "100.1"), new(2, "s", OrderSide.SELL, 1), acknowledged(2.1, "s"),
        fill(3, "s", 1, "99.9", "e1"), market(14, "99.7", "99.9"),
    ]  # fmt: skip
    (one,) = costs_of(events)
    assert (one.spread, one.move, one.missed) == (NANOS, 0, 0)
    assert one.markouts[0] == -1 * 10 * (998 - 999) * NANOS // 10


def test_refusals_count_and_cost_nothing() -> None:
    refused = OrderRejected(at_ns=2 * S, order_id="r", reason="no_limits: none")
    events = [TERMS, market(1, "99.9", "100.1"), new(2, "r", OrderSide.BUY, 5), refused]
    group = sum_costs("all", costs_of(events))
    assert (group.num_orders, group.num_refused, group.wait_s) == (1, 1, None)
    assert (group.slippage_bps, group.cost_bps, group.filled_share) == (None, None, 0.0)


def test_a_busted_fill_is_no_fill() -> None:
    busted = FillBusted(at_ns=81 * S, order_id="b", exec_id="e2", quantity=2)
    (one,) = costs_of([*BUY[:-1], busted])
    assert (one.filled, one.num_fills, one.move) == (4, 1, 0)


def test_groups_add_up_to_all_and_have_errors_over_orders() -> None:
    events: list[OrderEvent] = [TERMS, market(1, "99.9", "100.1")]
    for number in range(8):
        at_s, name = 2 + number, f"o{number}"
        price = "100.1" if number % 2 else "100.3"
        events += [new(at_s, name, OrderSide.BUY, 1, "abc"[number % 3]), acknowledged(at_s, name),
                   fill(at_s, name, 1, price, f"e{number}")]  # fmt: skip
    costs = costs_of(events)
    groups, total = group_costs(costs, lambda one: one.algo), sum_costs("all", costs)
    assert [one.name for one in groups] == ["a", "b", "c"]
    assert sum(one.value for one in groups) == total.value
    assert sum(one.num_fills for one in groups) == total.num_fills == 8
    assert total.slippage_bps == pytest.approx(20)
    # of values 10 and 30 at even odds the mean of eight has this error
    assert total.error_bps == pytest.approx(10 * (8 / 7) ** 0.5 / 8**0.5)
    assert sum_costs("one", costs[:1]).error_bps is None


def test_the_page_escapes_names_and_holds_without_orders() -> None:
    page = costs_page(costs_of([*BUY[:2], new(2, "<b>", OrderSide.BUY, 1, "<script>"), *BUY[5:6]]), "<run>")
    assert "<script>" not in page.replace("<script>\n", "")
    assert "&lt;script&gt;" in page
    assert "&lt;run&gt;" in page
    assert "No order was sent." in costs_page([], "empty")
    assert len(MARKOUTS_S) == 3
