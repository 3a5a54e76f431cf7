"""A session of one instrument: price, background trades, parties' orders; what happens is a stream of order events.

The mid walks at random in ticks; trades of unnamed participants come as a Poisson process and meet the parties' orders
at the best price; whoever takes liquidity moves the mid by his size. Units: seconds since the session's start, ticks,
lots. The events' times are UTC nanoseconds.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from htfi.domain.orders import (
    CancelRequest,
    Liquidity,
    MarketSnapshot,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
    OrderSide,
    OrderType,
    SessionPhase,
    TimeInForce,
)
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi_train.simulation.rng import Rng

OPEN_NS = 20_000 * NS_PER_DAY + 14 * 3600 * NS_PER_S
AUCTION_S = 120.0
LATENCY_NS = 400_000
TICK = Decimal("0.01")
START_TICKS = 5_000.0
_TRADES_PER_S = 0.7
_QUOTES_PER_S = 0.8
_SIGMA_TICKS = 0.35  # of the mid over a second
_IMPACT_TICKS = 0.035  # of a lot taken
_PASSIVE_SHARE = 0.5  # of a background trade that meets a party's order at the best price


@dataclass(slots=True, eq=False)
class PartyOrder:
    """An order as its party sees it; `price` in ticks, None at market."""

    id: str
    client: str
    side: int
    price: int | None
    leaves: int
    is_open: bool = True
    at_close: bool = False


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """One session: its seed, instrument, length until the closing auction, and how lively it is."""

    seed: int
    instrument: str = "ACME"
    venue: str = "XTST"
    length_s: float = 2_400.0
    day: int = 0
    activity: float = 1.0


class TradingSession:
    """Parties schedule what they do with `at`; `run` plays the session and returns its events in order."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self.rng = Rng(spec.seed, 71)
        self.now_s = 0.0
        self.mid = START_TICKS
        self.half_spread = 1.0
        self.events: list[OrderEvent] = []
        self.on_fill: dict[str, Callable[[PartyOrder, int, int], None]] = {}  # client → (order, lots, ticks)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._num = 0
        self._last_ns = 0
        self._resting: dict[int, list[PartyOrder]] = {1: [], -1: []}
        self._at_close: list[PartyOrder] = []
        self._phase = SessionPhase.CONTINUOUS

    @property
    def end_s(self) -> float:
        return self.spec.length_s

    @property
    def bid(self) -> int:
        return math.floor(self.mid - self.half_spread)

    @property
    def ask(self) -> int:
        return self.bid + max(1, round(2 * self.half_spread))

    def at(self, time_s: float, action: Callable[[], None]) -> None:
        """Do something at a time; not before now."""
        self._num += 1
        heapq.heappush(self._agenda, (max(time_s, self.now_s), self._num, action))

    def exponential(self, mean: float) -> float:
        return -mean * math.log(1.0 - self.rng.uniform())

    def gauss(self) -> float:
        return math.sqrt(-2.0 * math.log(1.0 - self.rng.uniform())) * math.cos(
            2.0 * math.pi * self.rng.uniform()
        )

    def size(self, mean: float) -> int:
        """A size in lots, right-skewed."""
        return max(1, round(self.exponential(mean)))

    def run(self) -> list[OrderEvent]:
        self._snapshot(phase=SessionPhase.CONTINUOUS)
        self.at(self.exponential(1.0 / _QUOTES_PER_S), self._quote)
        self.at(self.exponential(1.0 / _TRADES_PER_S), self._background_trade)
        self._play(self.end_s)
        self.now_s = self.end_s
        self._phase = SessionPhase.CLOSING_AUCTION
        for side in self._resting.values():
            for order in list(side):
                self.cancel(order)
        self._snapshot(phase=SessionPhase.CLOSING_AUCTION)
        self._play(self.end_s + AUCTION_S)
        self.now_s = self.end_s + AUCTION_S
        self._uncross()
        return self.events

    def send(
        self,
        client: str,
        side: int,
        quantity: int,
        price: int | None,
        *,
        algo: str = "",
        account: str = "",
        at_close: bool = False,
    ) -> PartyOrder:
        """Enter an order; what of it is marketable trades at once."""
        self._num += 1
        order = PartyOrder(
            f"{self.spec.instrument}-{self.spec.day}-{self._num}", client, side, price, quantity
        )
        in_force = TimeInForce.AT_THE_CLOSE if at_close else TimeInForce.DAY
        self.events.append(
            NewOrder(
                at_ns=self._stamp(), order_id=order.id, instrument=self.spec.instrument, venue=self.spec.venue,
                side=OrderSide.BUY if side == 1 else OrderSide.SELL, quantity=quantity,
                order_type=OrderType.MARKET if price is None else OrderType.LIMIT,
                price=None if price is None else price * TICK, time_in_force=in_force, algo=algo or f"{client}-algo",
                trader=f"{client}-trader", desk=f"{client}-desk", client=client, account=account or client,
            )
        )  # fmt: skip
        self.events.append(OrderAcknowledged(at_ns=self._stamp(), order_id=order.id))
        if at_close or self._phase is not SessionPhase.CONTINUOUS:
            order.at_close = True
            self._at_close.append(order)
            return order
        best = self.ask if side == 1 else self.bid
        if price is None or side * (price - best) >= 0:
            self._take(order, best)
        if order.is_open and price is None:
            self.cancel(order)
        elif order.is_open:
            self._resting[side].append(order)
        return order

    def cancel(self, order: PartyOrder) -> None:
        """Ask for it and get it, if the order is still open."""
        if not order.is_open:
            return
        order.is_open = False
        if order in self._resting[order.side]:
            self._resting[order.side].remove(order)
        self.events.append(CancelRequest(at_ns=self._stamp(), order_id=order.id))
        self.events.append(OrderCanceled(at_ns=self._stamp(), order_id=order.id))

    def cross(self, buy: PartyOrder, sell: PartyOrder, quantity: int, price: int) -> None:
        """Two parties' orders trade with each other, as they do where one meets the other at the best price."""
        match = self._match()
        for order, liquidity in ((buy, Liquidity.ADDED), (sell, Liquidity.REMOVED)):
            self._fill(order, quantity, price, liquidity, match)
        self._print(price, quantity)

    def push(self, ticks: float) -> None:
        """Others move the mid."""
        self.mid += ticks

    def _play(self, until_s: float) -> None:
        while self._agenda and self._agenda[0][0] < until_s:
            self.now_s, _, action = heapq.heappop(self._agenda)
            action()

    def _stamp(self) -> int:
        start_ns = OPEN_NS + self.spec.day * NS_PER_DAY
        self._last_ns = max(self._last_ns + LATENCY_NS, start_ns + int(self.now_s * NS_PER_S))
        return self._last_ns

    def _match(self) -> str:
        self._num += 1
        return f"m{self._num}"

    def _quote(self) -> None:
        wait_s = self.exponential(1.0 / (_QUOTES_PER_S * self.spec.activity))
        self.mid += _SIGMA_TICKS * math.sqrt(wait_s) * self.gauss()
        self._snapshot()
        if self._phase is SessionPhase.CONTINUOUS:
            self.at(self.now_s + wait_s, self._quote)

    def _background_trade(self) -> None:
        if self._phase is not SessionPhase.CONTINUOUS:
            return
        side = 1 if self.rng.chance(0.5) else -1
        quantity = self.size(5.0)
        price = self.ask if side == 1 else self.bid
        left = max(1, round(quantity * _PASSIVE_SHARE))
        resting = [
            one for one in self._resting[-side] if one.price is not None and side * (price - one.price) >= 0
        ]
        for order in sorted(resting, key=lambda one: side * (one.price or 0)):
            if left <= 0:
                break
            lots = min(left, order.leaves)
            left -= lots
            self._fill(order, lots, order.price or price, Liquidity.ADDED, self._match())
        self.mid += side * 0.25 * _IMPACT_TICKS * quantity
        self._print(price, quantity)
        self.at(
            self.now_s + self.exponential(1.0 / (_TRADES_PER_S * self.spec.activity)), self._background_trade
        )

    def _take(self, order: PartyOrder, price: int) -> None:
        quantity = order.leaves
        self._fill(order, quantity, price, Liquidity.REMOVED, self._match())
        self.mid += order.side * _IMPACT_TICKS * quantity
        self._print(price, quantity)

    def _fill(self, order: PartyOrder, quantity: int, price: int, liquidity: Liquidity, match: str) -> None:
        order.leaves -= quantity
        if order.leaves == 0:
            order.is_open = False
            if order in self._resting[order.side]:
                self._resting[order.side].remove(order)
        self._num += 1
        self.events.append(
            OrderFilled(
                at_ns=self._stamp(), order_id=order.id, exec_id=f"x{self._num}", quantity=quantity,
                price=price * TICK, liquidity=liquidity, match_id=match,
            )
        )  # fmt: skip
        react = self.on_fill.get(order.client)
        if react is not None and self._phase is SessionPhase.CONTINUOUS:
            react(order, quantity, price)

    def _print(self, price: int, quantity: int) -> None:
        self._snapshot(last=price, quantity=quantity)

    def _snapshot(
        self, *, phase: SessionPhase | None = None, last: int | None = None, quantity: int = 0
    ) -> None:
        self.events.append(
            MarketSnapshot(
                at_ns=self._stamp(), instrument=self.spec.instrument, venue=self.spec.venue, bid=self.bid * TICK,
                bid_quantity=20, ask=self.ask * TICK, ask_quantity=20, last=None if last is None else last * TICK,
                last_quantity=quantity, phase=phase,
            )
        )  # fmt: skip

    def _uncross(self) -> None:
        """The closing auction: what was entered trades at one price, which it moves by what is left over."""
        net = sum(order.side * order.leaves for order in self._at_close if order.is_open)
        self.mid += 0.25 * _IMPACT_TICKS * net
        price = round(self.mid)
        volume = 400 + abs(net)
        for order in self._at_close:
            if order.is_open:
                self._fill(order, order.leaves, price, Liquidity.AUCTION, self._match())
        self.half_spread = 0.5
        self.mid = float(price)
        self._print(price, volume)
        self._phase = SessionPhase.CLOSED
        self._snapshot(phase=SessionPhase.CLOSED)
