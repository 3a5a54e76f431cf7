"""Hand-written order streams for tests of the monitors: short forms of events, and one pass of a single check."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from htfi.domain.order_states import OrderStatus
from htfi.domain.orders import (
    CancelRequest,
    LimitsInForce,
    Liquidity,
    MarketSnapshot,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
    OrderRejected,
    OrderSide,
    RejectedBy,
    SessionPhase,
)
from htfi.domain.time import NS_PER_S
from htfi.governance.regulation.catalogue import CHECKS
from htfi.governance.regulation.findings import CheckOutcome
from htfi.governance.regulation.monitor import CheckResult, RecordItem, run_checks

START_NS = 20_000 * 86_400 * NS_PER_S + 10 * 3_600 * NS_PER_S
BUY, SELL = OrderSide.BUY, OrderSide.SELL
OPEN = OrderStatus.NEW


def at(seconds: float) -> int:
    """UTC ns, so many seconds after the tests' start."""
    return START_NS + round(seconds * NS_PER_S)


def new(
    order_id: str,
    seconds: float,
    side: OrderSide = BUY,
    quantity: int = 10,
    price: str | None = "100.00",
    **more: Any,
) -> NewOrder:
    names = {"algo": "a1", "trader": "t1", "desk": "d1", "client": "c1"} | more
    return NewOrder(
        at_ns=at(seconds), order_id=order_id, instrument=names.pop("instrument", "ACME"), venue="XTST", side=side,
        quantity=quantity, price=None if price is None else Decimal(price), **names,
    )  # fmt: skip


def ack(order_id: str, seconds: float) -> OrderAcknowledged:
    return OrderAcknowledged(at_ns=at(seconds), order_id=order_id)


def refused(order_id: str, seconds: float) -> OrderRejected:
    return OrderRejected(at_ns=at(seconds), order_id=order_id, by=RejectedBy.GATE, reason="limit")


def cancel(order_id: str, seconds: float) -> list[OrderEvent]:
    return [
        CancelRequest(at_ns=at(seconds), order_id=order_id),
        OrderCanceled(at_ns=at(seconds) + 1_000, order_id=order_id),
    ]


def fill(
    order_id: str,
    seconds: float,
    quantity: int = 10,
    price: str = "100.00",
    liquidity: Liquidity | None = Liquidity.REMOVED,
    match_id: str = "",
) -> OrderFilled:
    return OrderFilled(
        at_ns=at(seconds), order_id=order_id, exec_id=f"{order_id}-{seconds}", quantity=quantity, price=Decimal(price),
        liquidity=liquidity, match_id=match_id,
    )  # fmt: skip


def market(
    seconds: float, mid: float = 100.0, *, quantity: int = 0, phase: SessionPhase | None = None
) -> MarketSnapshot:
    return MarketSnapshot(
        at_ns=at(seconds), instrument="ACME", venue="XTST", bid=Decimal(f"{mid - 0.01:.2f}"),
        ask=Decimal(f"{mid + 0.01:.2f}"), last=Decimal(f"{mid:.2f}") if quantity else None, last_quantity=quantity,
        phase=phase,
    )  # fmt: skip


def limits(**fields: Any) -> LimitsInForce:
    return LimitsInForce(at_ns=START_NS, scope=fields.pop("scope", "firm"), **fields)


def judge(check: str, items: Iterable[RecordItem], **more: Any) -> CheckResult:
    """The result of one check of the catalogue."""
    (definition,) = [one for one in CHECKS if one.id == check]
    (result,), _ = run_checks(items, [definition], **more)
    return result


def found(check: str, items: Iterable[RecordItem], **more: Any) -> list[str]:
    """What one check found, in words."""
    return [one.what for one in judge(check, items, **more).findings]


def is_clear(check: str, items: Iterable[RecordItem]) -> bool:
    """Whether the check judged something and found nothing."""
    return judge(check, items).outcome is CheckOutcome.NOTHING_FOUND
