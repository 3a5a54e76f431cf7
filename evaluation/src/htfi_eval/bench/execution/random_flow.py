"""Random sessions of intents and events for the gate: mostly sound, often at a limit, sometimes nonsense; seeded."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec import structs

from htfi.domain.decision import Receipt
from htfi.domain.orders import (
    CancelRejected,
    DecisionNoted,
    FillBusted,
    InstrumentTerms,
    LimitOverride,
    LimitsInForce,
    MarketSnapshot,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderExpired,
    OrderFilled,
    OrderRejected,
    OrderReplaced,
    OrderSide,
    OrderType,
    PaceBound,
    ParentOrder,
    RejectedBy,
    SessionPhase,
    TimeInForce,
    TradingDisabled,
    TradingEnabled,
    UrgencyChanged,
)
from htfi.execution.intents import CancelIntent, Intent, OrderIntent, ReplaceIntent

SECOND = 10**9
SYMBOLS, VENUES = ("AAA", "BBB"), ("X1", "X2")
OVERRIDABLE = (
    "price_collar",
    "max_order_value",
    "max_order_quantity",
    "max_open_value",
    "disabled",
    "permission",
)
INTENTS_A_SESSION = 40


@dataclass
class RandomSession:
    """One session's world as its generator knows it; `next_intent` and `after` take turns."""

    rng: random.Random
    now: int = 1_000 * SECOND
    mids: dict[str, int] = field(default_factory=lambda: {"AAA": 10_000, "BBB": 400})
    orders: list[str] = field(default_factory=list[str])
    lots: dict[str, int] = field(default_factory=dict[str, int])
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    decided: dict[int, str] = field(default_factory=dict[int, str])  # decision → instrument
    parents: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    worked: dict[str, ParentOrder] = field(default_factory=dict[str, ParentOrder])  # by algorithms
    newest: OrderIntent | None = None  # that was sent
    num: int = 0

    def start(self) -> Iterator[OrderEvent]:
        """Terms, limits and first prices."""
        rng = self.rng
        for symbol in SYMBOLS:
            if rng.random() < 0.97:
                yield InstrumentTerms(
                    at_ns=self.now,
                    instrument=symbol,
                    tick=Decimal("0.01") if symbol == "AAA" else Decimal("0.25"),
                    lot_size=rng.choice((1, 10)),
                    multiplier=Decimal(rng.choice(("1", "0.5"))),
                )
        if rng.random() < 0.97:
            yield self.limits("firm", complete=rng.random() < 0.97)
        for scope in ("desk:d1", "trader:t1", "algo:a1", "client:c1", "instrument:AAA"):
            if rng.random() < 0.3:
                yield self.limits(scope, complete=False)
        for symbol in SYMBOLS:
            for venue in VENUES:
                if rng.random() < 0.95:
                    yield self.market(symbol, venue)

    def limits(self, scope: str, *, complete: bool) -> LimitsInForce:
        rng = self.rng

        def maybe(value: Any) -> Any:
            return value if complete or rng.random() < 0.5 else None

        return LimitsInForce(
            at_ns=self.now,
            scope=scope,
            price_collar=maybe(rng.choice((0.01, 0.05, 0.1))),
            window_collar=maybe(rng.choice((0.02, 0.08))),
            collar_window_ns=rng.choice((2, 60)) * SECOND,
            max_book_distance=maybe(rng.choice((0.001, 0.03))),
            max_order_value=maybe(Decimal(rng.choice(("5000", "20000.5", "100000", "100000")))),
            max_order_quantity=maybe(rng.choice((50, 300))),
            max_messages_per_s=maybe(rng.choice((2, 5, 50, 50, 0 if rng.random() < 0.1 else 50))),
            max_repeated_executions=maybe(rng.choice((2, 50))),
            max_open_value=maybe(Decimal(rng.choice((30_000, 200_000)))),
            max_position_value=maybe(Decimal(rng.choice((50_000, 400_000)))),
            max_market_age_ns=maybe(rng.choice((3 * SECOND, 60 * SECOND, 60 * SECOND))),
            max_decision_age_ns=maybe(rng.choice((SECOND, 30 * SECOND, 30 * SECOND))),
            max_identical_orders=maybe(rng.choice((1, 2))),
            max_parent_ns=maybe(rng.choice((20 * SECOND, 600 * SECOND))),
            permitted=rng.choice(((), (), ("*",), ("AAA", "BBB"), ("AAA",) if rng.random() < 0.3 else ())),
            restricted=rng.choice(((), (), (), ("BBB",) if rng.random() < 0.3 else ())),
        )

    def market(self, symbol: str, venue: str) -> MarketSnapshot:
        rng = self.rng
        self.mids[symbol] = max(
            10,
            round(
                self.mids[symbol]
                * (1 + rng.choice((0, 0, 0, 0.001, -0.001, 0.002, -0.002, 0.03 * (rng.random() < 0.2))))
            ),
        )
        tick, mid = (Decimal("0.01") if symbol == "AAA" else Decimal("0.25")), self.mids[symbol]
        kind = rng.random()
        bid = ask = last = None
        if kind < 0.9:
            bid, ask = mid - rng.choice((0, 1, 1, 2)), mid + rng.choice((0, 1, 1, 2))
        if kind > 0.8:
            last = mid + rng.choice((-1, 0, 1))
        return MarketSnapshot(
            at_ns=self.now,
            instrument=symbol,
            venue=venue,
            bid=None if bid is None else bid * tick,
            ask=None if ask is None else ask * tick,
            last=None if last is None else last * tick,
            phase=rng.choice(
                (None, None, None, SessionPhase.CONTINUOUS, SessionPhase.PRE_OPEN, SessionPhase.HALTED)
            )
            if rng.random() < 0.2
            else None,
        )

    def between(self) -> Iterator[OrderEvent]:
        """What happens before the next intent."""
        rng = self.rng
        self.now += rng.choice((0, 1, SECOND // 10, SECOND // 10, SECOND // 2, SECOND, 3 * SECOND))
        for _ in range(rng.choice((0, 1, 2, 3))):
            yield self.market(rng.choice(SYMBOLS), rng.choice(VENUES))
        if rng.random() < 0.9:
            yield self.decide()
        if self.receipts and rng.random() < 0.2:
            yield self.parent(self.receipts[-1])
        if self.worked and rng.random() < 0.05:
            urgency = rng.choice((-1.0, 0.0, 2.0, 2.5))
            yield UrgencyChanged(at_ns=self.now, order_id=rng.choice(list(self.worked)), urgency=urgency)
        if rng.random() < 0.03:
            yield self.limits(rng.choice(("firm", "desk:d1", "algo:a1")), complete=rng.random() < 0.9)
        if rng.random() < 0.01:
            yield TradingDisabled(at_ns=self.now, scope=self.scope(), cause="random")
        if rng.random() < 0.1:
            yield TradingEnabled(at_ns=self.now, scope=self.scope(), by=rng.choice(("", "Ann")))
        if rng.random() < 0.05:
            yield LimitOverride(
                at_ns=self.now,
                order_id=f"o{self.num + 1}",
                limit=rng.choice(OVERRIDABLE),
                asked_by=rng.choice(("Ann", "")),
                authorised_by=rng.choice(("Ann", "Bo", "Bo")),
                expires_at_ns=self.now + rng.choice((0, SECOND)),
            )
        for _ in range(rng.choice((0, 0, 1, 2))):
            if self.orders:
                yield self.report(rng.choice(self.orders))

    def decide(self) -> DecisionNoted:
        rng = self.rng
        receipt = Receipt(len(self.receipts), f"{rng.getrandbits(64):016x}")
        symbol = self.decided[receipt.index] = rng.choice(SYMBOLS)
        amends = rng.randrange(len(self.receipts)) if self.receipts and rng.random() < 0.1 else None
        self.receipts.append(receipt)
        return DecisionNoted(
            at_ns=self.now,
            receipt=receipt,
            instrument=symbol,
            is_released=rng.random() < 0.95,
            amends=amends,
        )

    def parent(self, receipt: Receipt) -> ParentOrder:
        rng, symbol = self.rng, self.decided[receipt.index]
        tick = Decimal("0.01") if symbol == "AAA" else Decimal("0.25")
        side, lots = rng.choice((OrderSide.BUY, OrderSide.SELL)), rng.choice((20, 100))
        order_id, _ = self.parents.setdefault(receipt.index, (f"p{self.num}", lots))
        limit = round(self.mids[symbol] * (1 + side.sign * rng.choice((0, 0.002, 0.05))))
        self.worked[order_id] = ParentOrder(
            at_ns=self.now - rng.choice((0, 0, 0, SECOND, 2 * SECOND)),
            order_id=order_id,
            instrument=symbol,
            side=side,
            quantity=lots,
            algo=rng.choice(("a1", "a2")),
            end_ns=self.now + rng.choice((2, 30, 300)) * SECOND,
            limit_price=rng.choice((None, limit * tick)),
            decision=receipt,
            min_urgency=-1.0,
            max_urgency=2.0,
            pace=rng.choice(
                ((), (PaceBound(self.now + SECOND, lots // 4), PaceBound(self.now + 9 * SECOND, lots)))
            ),
            trader=rng.choice(("t1", "t2")),
        )
        return self.worked[order_id]

    def scope(self) -> str:
        return self.rng.choice(("firm", "desk:d1", "trader:t2", "algo:a1", "client:c1", "instrument:BBB"))

    def report(self, order_id: str) -> OrderEvent:
        rng, at = self.rng, self.now
        lots = self.lots.get(order_id, 10)
        match rng.randrange(12):
            case 0 | 1 | 2:
                return OrderAcknowledged(at_ns=at, order_id=order_id)
            case 3 | 4 | 5 | 6:
                price = Decimal(self.mids["AAA"]) / 100
                return OrderFilled(
                    at_ns=at,
                    order_id=order_id,
                    exec_id=f"e{rng.randrange(40)}",
                    quantity=rng.choice((1, max(1, lots // 2), lots)),
                    price=price,
                )
            case 7:
                return OrderCanceled(at_ns=at, order_id=order_id, cl_ord_id=f"r{rng.randrange(8)}")
            case 8:
                return OrderReplaced(
                    at_ns=at,
                    order_id=order_id,
                    cl_ord_id=f"r{rng.randrange(8)}",
                    quantity=rng.choice((1, lots, lots + 5)),
                    price=rng.choice((None, Decimal(self.mids["AAA"]) / 100)),
                )
            case 9:
                return FillBusted(
                    at_ns=at,
                    order_id=order_id,
                    exec_id=f"e{rng.randrange(40)}",
                    quantity=rng.choice((1, lots)),
                )
            case 10:
                return CancelRejected(at_ns=at, order_id=order_id, cl_ord_id=f"r{rng.randrange(8)}")
            case _:
                if rng.random() < 0.5:
                    return OrderExpired(at_ns=at, order_id=order_id)
                return OrderRejected(at_ns=at, order_id=order_id, by=RejectedBy.VENUE, reason="random")

    def next_intent(self) -> Intent:
        rng = self.rng
        kind = rng.random()
        if self.orders and kind < 0.12:
            return ReplaceIntent(
                at_ns=self.now,
                order_id=rng.choice(self.orders) if rng.random() < 0.95 else "none",
                cl_ord_id=f"r{rng.randrange(8)}" if rng.random() < 0.97 else "",
                lots=rng.choice((1, 5, 20, 60, 400, 0)),
                price_ticks=rng.choice((None, self.mids["AAA"], self.mids["BBB"] + 1)),
            )
        if self.orders and kind < 0.2:
            return CancelIntent(
                at_ns=self.now, order_id=rng.choice(self.orders), cl_ord_id=f"r{rng.randrange(8)}"
            )
        if self.newest is not None and kind > 0.93:  # the same once more
            self.num += 1
            return structs.replace(
                self.newest,
                at_ns=self.now,
                order_id=f"o{self.num}",
                receipt=self.receipt(),
                parent_id="",
                parent_lots=0,
            )
        return self.order()

    def order(self) -> OrderIntent:
        rng = self.rng
        self.num += 1
        receipt = self.receipt()
        symbol = self.decided.get(-1 if receipt is None else receipt.index, "AAA")
        if rng.random() < 0.04:
            symbol = rng.choice((*SYMBOLS, "ZZZ"))
        mid = self.mids.get(symbol, 100)
        parent_id, parent_lots = "", 0
        lots = rng.choice((1, 1, 5, 5, 10, 10, 40, 60, 250))
        if rng.random() < 0.3 and receipt is not None:
            parent_id, parent_lots = self.parents.setdefault(
                receipt.index, (f"p{self.num}", rng.choice((20, 100)))
            )
        order_type = OrderType.LIMIT if rng.random() < 0.95 else rng.choice(tuple(OrderType))
        order = OrderIntent(
            at_ns=self.now - (2 * SECOND if rng.random() < 0.01 else 0),
            order_id=f"o{self.num}" if rng.random() < 0.98 else rng.choice(("", "x" * 65, *self.orders[-1:])),
            instrument=symbol,
            venue=rng.choice(VENUES),
            side=rng.choice((OrderSide.BUY, OrderSide.SELL)),
            lots=lots if rng.random() < 0.98 else rng.choice((0, -5, 10**13)),
            price_ticks=round(
                mid * (1 + rng.choice((0, 0, 0, 0, 0, 0.002, -0.002, 0.01, -0.01, 0.05, -0.05, 0.2)))
            )
            if rng.random() < 0.97
            else rng.choice((None, -1, 0)),
            receipt=receipt,
            order_type=order_type,
            stop_ticks=mid if rng.random() < 0.03 else None,
            time_in_force=rng.choice((TimeInForce.DAY, TimeInForce.AT_THE_OPENING)),
            display_lots=None if rng.random() < 0.97 else rng.choice((0, lots, lots + 1)),
            algo=rng.choice(("a1", "a2", "")),
            trader=rng.choice(("t1", "t2", "")),
            desk=rng.choice(("d1", "d2", "")),
            client=rng.choice(("c1", "")),
            parent_id=parent_id if rng.random() < 0.99 else "other",
            parent_lots=parent_lots,
        )
        parent = self.worked.get(order.parent_id)
        if parent is None or rng.random() < 0.1:
            return order
        return structs.replace(
            order,
            side=parent.side,
            algo=parent.algo,
            trader=parent.trader,
            desk="",
            client="",
            receipt=parent.decision if rng.random() < 0.95 else receipt,
            parent_lots=parent.quantity,
        )

    def receipt(self) -> Receipt | None:
        rng = self.rng
        if not self.receipts or rng.random() < 0.01:
            return None
        receipt = self.receipts[-1] if rng.random() < 0.9 else rng.choice(self.receipts)
        if rng.random() < 0.02:
            return Receipt(receipt.index + rng.choice((0, 1, 1_000)), "00" * 8)
        return receipt

    def sent(self, intent: Intent) -> None:
        """Note an order that was sent."""
        if isinstance(intent, OrderIntent):
            self.orders.append(intent.order_id)
            self.lots[intent.order_id] = intent.lots
            self.newest = intent
