"""The market as a feed shows it, for who has no market data of a venue's own: best prices over all exchanges.

Prices in ticks, quantities in lots. A quote of one exchange that crosses another's older one ends that one.
"""

from dataclasses import dataclass

from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import MarketSnapshot, SessionPhase
from htfi.execution.instruments import Instrument


@dataclass(slots=True)
class _ShownQuote:
    """What an exchange shows; a price of 0: nothing."""

    bid: int = 0
    bid_lots: int = 0
    ask: int = 0
    ask_lots: int = 0


class BestQuotes:
    """The best bid and ask over the exchanges that quote one instrument."""

    def __init__(self) -> None:
        self._by_exchange: dict[str, _ShownQuote] = {}

    @property
    def num_exchanges(self) -> int:
        return len(self._by_exchange)

    def take(self, quote: Quote, instrument: Instrument) -> tuple[int, int, int, int]:
        """Best bid and its lots, best ask and its lots, after a quote; a side that it does not state stays."""
        sides = self._by_exchange.get(quote.venue)
        if sides is None:
            sides = self._by_exchange[quote.venue] = _ShownQuote()
        if quote.bid is not None:
            sides.bid = instrument.nearest_ticks(quote.bid, "down")
        if quote.bid_size is not None:
            sides.bid_lots = lots_of(quote.bid_size, instrument)
        if quote.ask is not None:
            sides.ask = instrument.nearest_ticks(quote.ask, "up")
        if quote.ask_size is not None:
            sides.ask_lots = lots_of(quote.ask_size, instrument)
        if len(self._by_exchange) == 1:
            return sides.bid, sides.bid_lots, sides.ask, sides.ask_lots
        others = [one for one in self._by_exchange.values() if one is not sides]
        for other in others:
            if other.ask and sides.bid > other.ask:
                other.ask = other.ask_lots = 0
            if sides.ask and other.bid > sides.ask:
                other.bid = other.bid_lots = 0
        shown = [*others, sides]
        bid = max(one.bid for one in shown)
        ask = min((one.ask for one in shown if one.ask), default=0)
        return (
            bid,
            sum(one.bid_lots for one in shown if bid and one.bid == bid),
            ask,
            sum(one.ask_lots for one in shown if ask and one.ask == ask),
        )


class MarketView:
    """Snapshots of the instruments that are listed, from the items of a feed."""

    def __init__(self, venue: str) -> None:
        """`venue` is the one that the snapshots are for."""
        self._venue = venue
        self._instruments: dict[str, Instrument] = {}
        self._quotes: dict[str, BestQuotes] = {}
        self._best: dict[str, tuple[int, int, int, int]] = {}

    def list_instrument(self, instrument: Instrument) -> None:
        """Follow an instrument."""
        self._instruments[instrument.symbol] = instrument
        self._quotes.setdefault(instrument.symbol, BestQuotes())

    def observe(self, item: FeedItem) -> MarketSnapshot | None:
        """The market after an item; None where it says nothing of a listed instrument."""
        if not isinstance(item, Bar | Quote | Trade) or item.symbol not in self._instruments:
            return None
        instrument = self._instruments[item.symbol]
        match item:
            case Quote():
                self._best[item.symbol] = self._quotes[item.symbol].take(item, instrument)
                return self._snapshot(instrument, item.available_at_ns)
            case Trade():
                ticks, lots = instrument.nearest_ticks(item.price), lots_of(item.size, instrument)
            case Bar():
                ticks, lots = instrument.nearest_ticks(item.close), lots_of(item.volume, instrument)
        return self._snapshot(instrument, item.available_at_ns, ticks, lots)

    def _snapshot(
        self, instrument: Instrument, at_ns: int, last: int | None = None, last_lots: int = 0
    ) -> MarketSnapshot:
        bid, bid_lots, ask, ask_lots = self._best.get(instrument.symbol, (0, 0, 0, 0))
        return MarketSnapshot(
            at_ns=at_ns,
            instrument=instrument.symbol,
            venue=self._venue,
            bid=instrument.price(bid) if bid > 0 else None,
            bid_quantity=bid_lots,
            ask=instrument.price(ask) if ask > 0 else None,
            ask_quantity=ask_lots,
            last=None if last is None else instrument.price(last),
            last_quantity=last_lots,
            phase=SessionPhase.CONTINUOUS,
        )


def lots_of(size: float, instrument: Instrument) -> int:
    """Whole lots of a number of units."""
    return int(size // instrument.lot_size)
