"""What algorithms see of markets: displayed prices at each venue, their history, and where prices went after fills."""

from collections import deque
from collections.abc import Iterable

from htfi.domain.orders import MarketSnapshot
from htfi.domain.time import NS_PER_S
from htfi.execution.algorithms.observed import ObservedMarket
from htfi.execution.algorithms.planning import Market
from htfi.execution.gate.records import nanos
from htfi.execution.instruments import Instrument
from htfi.execution.order_routing.venues import RouterState, VenueTerms

MARK_OUT_NS = 5 * NS_PER_S  # after a fill that had rested, when it is seen where the market went
MAX_MARKED = 10_000  # fills that await that


class SeenMarkets:
    """By instrument the venues that the router chooses from, and the market over all of them."""

    def __init__(self, venues: Iterable[VenueTerms]) -> None:
        self._venues = tuple(venues)
        self._routers: dict[str, RouterState] = {}
        self._observed: dict[str, ObservedMarket] = {}
        self._marked: deque[tuple[int, str, str, int, float, int]] = deque(maxlen=MAX_MARKED)

    def router(self, symbol: str) -> RouterState:
        """What is known of the venues for an instrument."""
        if symbol not in self._routers:
            self._routers[symbol] = RouterState.of(self._venues)
        return self._routers[symbol]

    def observed(self, symbol: str) -> ObservedMarket:
        """What was seen of an instrument's market."""
        if symbol not in self._observed:
            self._observed[symbol] = ObservedMarket()
        return self._observed[symbol]

    def market(self, symbol: str) -> Market:
        """The best protected prices over all venues."""
        router = self.router(symbol)
        bid, bid_lots = router.best(-1)
        ask, ask_lots = router.best(1)
        return Market(bid, bid_lots, ask, ask_lots)

    def take(self, event: MarketSnapshot, instrument: Instrument, *, with_sizes: bool) -> Market | None:
        """The market after a venue's data; None where it did not change, or but for sizes that nobody asks for."""
        router = self.router(event.instrument)
        venue = router.venues.get(event.venue)
        if venue is None:
            return None
        tick = instrument.tick_nanos
        if event.last_quantity and event.last is not None:
            router.traded(event.venue, nanos(event.last) // tick, event.last_quantity, event.at_ns)
        bid = 0 if event.bid is None else nanos(event.bid) // tick
        ask = 0 if event.ask is None else nanos(event.ask) // tick
        is_same = venue.shows(bid, event.bid_quantity, ask, event.ask_quantity)
        router.quoted(event.venue, bid, event.bid_quantity, ask, event.ask_quantity, event.at_ns)
        if is_same and not with_sizes:
            return None
        market = self.market(event.instrument)
        while self._marked and self._marked[0][0] <= event.at_ns:
            _, symbol, name, sign, middle, lots = self._marked.popleft()
            moved = sign * (middle - self.observed(symbol).last_middle)
            self.router(symbol).venues[name].adverse.add(moved, lots)
        if market.bid and market.ask:
            self.observed(event.instrument).moved((market.bid + market.ask) / 2, event.at_ns)
        return market

    def mark(self, symbol: str, venue: str, sign: int, lots: int, at_ns: int) -> None:
        """An order that rested was filled: see later where the market went."""
        middle = self.observed(symbol).last_middle
        self._marked.append((at_ns + MARK_OUT_NS, symbol, venue, sign, middle, lots))
