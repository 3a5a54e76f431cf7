"""Our orders at one instrument of a simulated venue, in a queue behind the size that the data shows. Pure.

Market data comes as quotes and trades, or as bars. A resting order waits behind what was displayed at its price when it
came: trades at the price use up the queue before it, what is cancelled ahead of it is not known and does not count, so
that fills come no sooner than they would have. A trade or quote beyond its price fills it. Of a bar, which has no
queue, an order fills at the open where it could trade there, else at its price where the bar went beyond it, and for no
more than a share of the bar's volume. Prices in ticks, quantities in lots.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from htfi.domain.orders import Liquidity, TimeInForce
from htfi.execution.market_view import DisplayedPrices

_ADDED, _REMOVED = Liquidity.ADDED, Liquidity.REMOVED
OPENING_PARTS = 100  # what arrives within the first hundredth of a bar may trade at its open


@dataclass(slots=True)
class RestingOrder:
    """An order at the venue. `ahead` is the displayed quantity before it in the queue.

    Of an order with hidden lots `display` are shown at a time, 0 for all; `shown` is what is left of them.
    """

    order_id: str
    sign: int
    price: int
    leaves: int
    arrived_ns: int
    time_in_force: TimeInForce
    ahead: int = 0
    display: int = 0
    shown: int = 0

    @property
    def in_queue(self) -> int:
        """What trades at its price may fill before it goes to the end of the queue."""
        return min(self.leaves, self.shown) if self.display else self.leaves


@dataclass(frozen=True, slots=True)
class Match:
    """Lots of an order that trade at a price."""

    order_id: str
    lots: int
    price: int
    at_ns: int
    liquidity: Liquidity


@dataclass(slots=True)
class SimulatedBook(DisplayedPrices):
    """Best prices that the data shows, and our own orders in the order of their arrival.

    `bid_lots` and `ask_lots` are what our orders have not taken yet of what was shown.
    """

    bid_shown: int = 0
    ask_shown: int = 0
    last: int = 0  # the newest trade
    last_lots: int = 0
    has_quotes: bool = False
    has_ticks: bool = False  # quotes or trades
    orders: dict[str, RestingOrder] = field(default_factory=dict[str, RestingOrder])
    for_close: dict[str, RestingOrder] = field(default_factory=dict[str, RestingOrder])

    def add(self, order: RestingOrder) -> Iterator[Match]:
        """Take in an order: what of it trades at once, at prices that are displayed; the rest waits."""
        self.orders[order.order_id] = order
        yield from self._take(order)
        if not order.leaves:
            del self.orders[order.order_id]
        else:
            self._queue(order)

    def rest(self, order: RestingOrder) -> None:
        """Take in an order that waits for an auction: nothing trades now, or it is for the close alone."""
        if order.time_in_force is TimeInForce.AT_THE_CLOSE:
            self.for_close[order.order_id] = order
        else:
            self.orders[order.order_id] = order
            self._queue(order)

    def auction(self, price: int, max_lots: int, at_ns: int, *, closing: bool) -> Iterator[Match]:
        """An auction at a price: orders that it reaches trade at it, better prices first, `max_lots` on a side.

        Orders for the close take part in a closing auction alone.
        """
        left = {1: max_lots, -1: max_lots}
        waiting = [*self.orders.values(), *(self.for_close.values() if closing else ())]
        for order in sorted(waiting, key=lambda one: -one.sign * one.price):
            if order.sign * (order.price - price) < 0 or not left[order.sign]:
                continue
            lots = min(order.leaves, left[order.sign])
            left[order.sign] -= lots
            yield self._fill(order, lots, price, at_ns, _ADDED)

    def take_all(self, at_ns: int) -> Iterator[Match]:
        """After a call, at the first quote: what waits trades with the displayed prices that it reaches."""
        for order in list(self.orders.values()):
            order.arrived_ns = at_ns
            yield from self._take(order)
            if not order.leaves:
                del self.orders[order.order_id]
            else:
                self._queue(order)

    def remove(self, order_id: str) -> RestingOrder | None:
        """Take an order off the book; None where it is not there."""
        return self.orders.pop(order_id, None) or self.for_close.pop(order_id, None)

    def find(self, order_id: str) -> RestingOrder | None:
        """An order that waits here."""
        return self.orders.get(order_id) or self.for_close.get(order_id)

    def change(self, order_id: str, leaves: int, price: int, *, is_matching: bool = True) -> Iterator[Match]:
        """Change what an order has left, or its price: it keeps its place only where it becomes smaller."""
        order = self.find(order_id)
        assert order is not None
        if price == order.price and leaves <= order.leaves:
            order.leaves = leaves
            return
        self.remove(order_id)
        order.price, order.leaves = price, leaves
        if is_matching and order.time_in_force is not TimeInForce.AT_THE_CLOSE:
            yield from self.add(order)
        else:
            self.rest(order)

    def quote(
        self,
        bid: int,
        bid_lots: int,
        ask: int,
        ask_lots: int,
        at_ns: int,
        met: Liquidity = _ADDED,
    ) -> Iterator[Match]:
        """New best prices: orders that they cross trade at their own price.

        They are makers, unless the prices are of several exchanges: then the order goes to the one that crosses it, and
        takes. What they took of a price is not there again until the price changes or more is shown at it.
        """
        self.show(bid, bid_lots, ask, ask_lots)
        for order in list(self.orders.values()):
            opposite, lots = (ask, self.ask_lots) if order.sign > 0 else (bid, self.bid_lots)
            if opposite and lots and order.sign * (order.price - opposite) >= 0:
                taken = self._use(order, lots)
                yield self._fill(order, taken, order.price, at_ns, met)

    def show(self, bid: int, bid_lots: int, ask: int, ask_lots: int) -> None:
        """New best prices, while nothing trades."""
        self.has_quotes = self.has_ticks = True
        if not (bid and ask):
            self.note_gone(bid, ask)
        self.bid_lots = _left(bid_lots, self.bid_shown, self.bid_lots) if bid == self.bid else bid_lots
        self.ask_lots = _left(ask_lots, self.ask_shown, self.ask_lots) if ask == self.ask else ask_lots
        self.bid, self.bid_shown, self.ask, self.ask_shown = bid, bid_lots, ask, ask_lots

    def trade(self, price: int, lots: int, at_ns: int) -> Iterator[Match]:
        """A trade of others: it uses up the queue at its price, and fills what stands at better prices.

        Of an order with hidden lots the next are shown behind what is displayed then.
        """
        self.last, self.last_lots, self.has_ticks = price, lots, True
        for order in list(self.orders.values()):
            better = order.sign * (order.price - price)
            if better > 0:
                yield self._fill(order, min(order.leaves, lots), order.price, at_ns, _ADDED)
            elif better == 0:
                used = min(order.ahead, lots)
                order.ahead -= used
                if filled := min(order.in_queue, lots - used):
                    order.shown -= filled
                    yield self._fill(order, filled, order.price, at_ns, _ADDED)
                    if order.leaves and not order.in_queue:
                        self._queue(order)

    def note(self, price: int, lots: int) -> None:
        """The newest trade of others, at whose price a closing auction trades."""
        self.last, self.last_lots, self.has_ticks = price, lots, True

    def bar(
        self, prices: tuple[int, int, int, int], max_lots: int, half_spread: int, start_ns: int, end_ns: int
    ) -> Iterator[Match]:
        """A bar of prices (open, high, low, close) in ticks: orders that were there when it began."""
        opened, high, low, close = prices
        opening_ns = start_ns + (end_ns - start_ns) // OPENING_PARTS
        for order in list(self.orders.values()):
            if order.arrived_ns > end_ns:
                continue
            lots = min(order.leaves, max_lots)
            if not lots:
                continue
            was_there = order.arrived_ns <= opening_ns
            touch = (opened if was_there else close) + order.sign * half_spread
            beyond = order.sign * (order.price - (low if order.sign > 0 else high))
            if order.sign * (order.price - touch) >= 0:
                at_ns = max(start_ns, order.arrived_ns) if was_there else end_ns
                yield self._fill(order, lots, touch, at_ns, _REMOVED)
            elif was_there and beyond > 0:
                middle_ns = (start_ns + end_ns) // 2  # some time within the bar: when is not known
                yield self._fill(order, lots, order.price, middle_ns, _ADDED)
        self.bid, self.ask = close - half_spread, close + half_spread

    def _queue(self, order: RestingOrder) -> None:
        """The end of the queue at its price."""
        order.ahead = self._displayed(order)
        order.shown = min(order.display, order.leaves)

    def _take(self, order: RestingOrder) -> Iterator[Match]:
        """Trade with the displayed best price of the other side, as far as it goes; only quotes are displayed."""
        if not self.has_quotes:
            return
        opposite, lots = (self.ask, self.ask_lots) if order.sign > 0 else (self.bid, self.bid_lots)
        if not opposite or not lots or order.sign * (order.price - opposite) < 0:
            return
        taken = self._use(order, lots)
        yield self._fill(order, taken, opposite, order.arrived_ns, _REMOVED, keep=True)

    def _use(self, order: RestingOrder, lots: int) -> int:
        """How much of the other side an order takes; it is not there any more."""
        taken = min(order.leaves, lots)
        if order.sign > 0:
            self.ask_lots -= taken
        else:
            self.bid_lots -= taken
        return taken

    def _displayed(self, order: RestingOrder) -> int:
        """What is displayed at an order's price on its own side."""
        if order.sign > 0:
            return self.bid_lots if order.price == self.bid else 0
        return self.ask_lots if order.price == self.ask else 0

    def _fill(
        self,
        order: RestingOrder,
        lots: int,
        price: int,
        at_ns: int,
        liquidity: Liquidity,
        *,
        keep: bool = False,
    ) -> Match:
        order.leaves -= lots
        if not order.leaves and not keep:
            self.remove(order.order_id)
        return Match(order.order_id, lots, price, at_ns, liquidity)


def _left(shown: int, shown_before: int, left_before: int) -> int:
    """What is left to take at a price that is shown again."""
    return min(shown, max(0, left_before + shown - shown_before))
