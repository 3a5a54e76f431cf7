"""What the events of a gate have brought about, followed plainly and slowly: orders, markets, limits, decisions."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from htfi.domain.orders import (
    CancelRejected,
    CancelRequest,
    DecisionNoted,
    FillBusted,
    InstrumentTerms,
    LimitOverride,
    LimitsInForce,
    MarketSnapshot,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderExpired,
    OrderFilled,
    OrderMessage,
    OrderRejected,
    OrderReplaced,
    ParentOrder,
    RejectedBy,
    ReplaceRequest,
    TradingDisabled,
    TradingEnabled,
    UrgencyChanged,
)

SECOND = 10**9


OPEN = ("pending_new", "new", "partially_filled")


@dataclass
class SeenOrder:
    """An order as the events so far left it."""

    new: NewOrder
    status: str
    quantity: int
    price: Fraction | None
    market_price: Fraction = Fraction(0)  # that an order at market is valued at
    fills: dict[str, tuple[int, Fraction]] = field(default_factory=dict[str, tuple[int, Fraction]])
    asked: list[str] = field(default_factory=list[str])
    num_asked: int = 0
    is_sent: bool = True

    @property
    def filled(self) -> int:
        return sum(lots for lots, _ in self.fills.values())

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def taken(self) -> int:
        """Lots of its decision."""
        return self.quantity if self.is_open else self.filled


@dataclass
class GateWorld:
    """Everything that the events say."""

    terms: dict[str, InstrumentTerms] = field(default_factory=dict[str, InstrumentTerms])
    limits: dict[str, LimitsInForce] = field(default_factory=dict[str, LimitsInForce])
    disabled: set[str] = field(default_factory=set[str])
    markets: dict[tuple[str, str], dict[str, Any]] = field(
        default_factory=dict[tuple[str, str], dict[str, Any]]
    )
    kept: dict[tuple[str, str], list[tuple[int, Fraction]]] = field(
        default_factory=dict[tuple[str, str], list[tuple[int, Fraction]]]
    )
    decisions: dict[int, DecisionNoted] = field(default_factory=dict[int, DecisionNoted])
    amended: set[int] = field(default_factory=set[int])
    orders: dict[str, SeenOrder] = field(default_factory=dict[str, SeenOrder])
    sent: list[tuple[int, str, NewOrder]] = field(default_factory=list[tuple[int, str, NewOrder]])
    overrides: list[LimitOverride] = field(default_factory=list[LimitOverride])
    parents: dict[str, ParentOrder] = field(default_factory=dict[str, ParentOrder])
    urgencies: dict[str, float] = field(default_factory=dict[str, float])
    newest: int = 0


def happen(world: GateWorld, event: OrderEvent) -> None:
    """Let one event happen."""
    world.newest = max(world.newest, event.at_ns)
    if isinstance(event, InstrumentTerms):
        world.terms[event.instrument] = event
    elif isinstance(event, LimitsInForce):
        world.limits[event.scope] = event
    elif isinstance(event, TradingDisabled):
        world.disabled.add(event.scope)
    elif isinstance(event, TradingEnabled):
        if event.by:
            world.disabled.discard(event.scope)
    elif isinstance(event, MarketSnapshot):
        see_market(world, event)
    elif isinstance(event, DecisionNoted):
        world.decisions[event.receipt.index] = event
        if event.amends is not None and event.amends in world.decisions:
            world.amended.add(event.amends)
    elif isinstance(event, LimitOverride):
        world.overrides.append(event)
    elif isinstance(event, ParentOrder):
        if event.order_id not in world.parents and event.at_ns >= world.newest - SECOND:
            world.parents[event.order_id] = event
            world.urgencies[event.order_id] = event.min_urgency
    elif isinstance(event, UrgencyChanged):
        world.urgencies[event.order_id] = event.urgency
    elif isinstance(event, NewOrder):
        enter(world, event)
    elif isinstance(event, OrderMessage) and event.order_id in world.orders:
        change(world, world.orders[event.order_id], event)


def see_market(world: GateWorld, event: MarketSnapshot) -> None:
    key = (event.instrument, event.venue)
    market = world.markets.setdefault(key, {"bid": None, "ask": None, "last": None, "phase": None})
    market["at"] = event.at_ns
    for name in ("bid", "ask", "last"):
        if getattr(event, name) is not None:
            market[name] = Fraction(getattr(event, name))
    if event.phase is not None:
        market["phase"] = event.phase.value
    windows = [one.collar_window_ns for one in world.limits.values() if one.window_collar is not None]
    middle = middle_of(market)
    if windows and middle is not None:
        kept = world.kept.setdefault(key, [])
        if not kept or event.at_ns - kept[-1][0] >= max(windows) // 32:
            kept.append((event.at_ns, middle))
        while len(kept) > 1 and kept[1][0] <= event.at_ns - max(windows):
            kept.pop(0)


def middle_of(market: dict[str, Any] | None) -> Fraction | None:
    if market is None:
        return None
    if market["bid"] and market["ask"]:
        return (market["bid"] + market["ask"]) / 2
    return market["last"]


def enter(world: GateWorld, event: NewOrder) -> None:
    if event.order_id in world.orders or event.quantity <= 0:
        return
    middle = middle_of(world.markets.get((event.instrument, event.venue)))
    price = None if event.price is None else Fraction(event.price)
    world.orders[event.order_id] = SeenOrder(
        event, "pending_new", event.quantity, price, middle or Fraction(0)
    )
    world.sent.append((event.at_ns, event.order_id, event))


def parent_of(world: GateWorld, index: int) -> tuple[str, int] | None:
    """The parent that acts on a decision: of the first order on it that was sent; None where there is none."""
    for one in world.orders.values():
        if one.is_sent and one.new.decision is not None and one.new.decision.index == index:
            return one.new.parent_id or one.new.order_id, one.new.parent_quantity or one.new.quantity
    return None


def change(world: GateWorld, order: SeenOrder, event: OrderMessage) -> None:
    filled = order.filled
    if isinstance(event, OrderAcknowledged):
        if order.status == "pending_new":
            order.status = "new"
    elif isinstance(event, OrderRejected):
        if order.status == "pending_new":
            order.status = "rejected"
            if event.by is RejectedBy.GATE:
                world.sent = [one for one in world.sent if one[1] != event.order_id]
                order.is_sent = False
    elif isinstance(event, CancelRequest | ReplaceRequest):
        order.asked.append(event.cl_ord_id)
        order.num_asked += 1
        world.sent.append((event.at_ns, event.cl_ord_id, order.new))
    elif isinstance(event, CancelRejected):
        if order.num_asked:
            order.num_asked -= 1
            forget(order, event.cl_ord_id)
    elif isinstance(event, OrderReplaced):
        if order.is_open and event.quantity >= filled:
            order.quantity = event.quantity
            order.num_asked = max(0, order.num_asked - 1)
            forget(order, event.cl_ord_id)
            if event.price is not None:
                order.price = Fraction(event.price)
            if filled == event.quantity:
                order.status = "filled"
                order.asked.clear()
            elif filled:
                order.status = "partially_filled"
    elif isinstance(event, OrderCanceled | OrderExpired):
        if order.is_open:
            order.status = "canceled" if isinstance(event, OrderCanceled) else "expired"
            order.asked.clear()
            order.num_asked = 0
    elif isinstance(event, OrderFilled):
        if (
            event.exec_id not in order.fills and event.quantity > 0
        ):  # also after its end, or beyond it: it was traded
            order.fills[event.exec_id] = (event.quantity, Fraction(event.price))
            if order.filled >= order.quantity:
                order.status = "filled"
                order.asked.clear()
            elif order.is_open:
                order.status = "partially_filled"
    elif isinstance(event, FillBusted) and event.exec_id in order.fills:  # the whole fill did not happen
        del order.fills[event.exec_id]
        if order.status == "filled" and order.filled < order.quantity:
            order.status = "canceled"


def forget(order: SeenOrder, cl_ord_id: str) -> None:
    while cl_ord_id in order.asked:
        order.asked.remove(cl_ord_id)


def taken_of(world: GateWorld, index: int) -> int:
    return sum(
        one.taken
        for one in world.orders.values()
        if one.new.decision is not None and one.new.decision.index == index
    )
