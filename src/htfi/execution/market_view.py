"""The market as a feed shows it: best prices over all exchanges, and the snapshots in which an order log states them.

Prices in ticks, quantities in lots. A quote of one exchange that crosses another's older one ends that one.
"""

import math
from dataclasses import dataclass

from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import MarketSnapshot, SessionPhase
from htfi.execution.instruments import Instrument


@dataclass(slots=True)
class _ShownQuote:
    """What an exchange shows, in ticks and lots, and the prices as it stated them; a price of 0: nothing."""

    bid: int = 0
    bid_lots: int = 0
    ask: int = 0
    ask_lots: int = 0
    stated_bid: float = 0.0
    stated_ask: float = 0.0


@dataclass(slots=True)
class DisplayedPrices:
    """Best prices that are displayed, and lots at them; a price of 0: nothing."""

    bid: int = 0
    bid_lots: int = 0
    ask: int = 0
    ask_lots: int = 0
    bid_gone: bool = False  # a bid was displayed once, and then none
    ask_gone: bool = False

    def show(self, bid: int, bid_lots: int, ask: int, ask_lots: int) -> None:
        """New best prices."""
        if not (bid and ask):
            self.note_gone(bid, ask)
        self.bid, self.bid_lots, self.ask, self.ask_lots = bid, bid_lots, ask, ask_lots

    def note_gone(self, bid: int, ask: int) -> None:
        """Remember which sides new best prices leave empty."""
        if not bid and self.bid > 0:
            self.bid_gone = True
        if not ask and self.ask > 0:
            self.ask_gone = True

    def snapshot(
        self,
        instrument: Instrument,
        venue: str,
        at_ns: int,
        phase: SessionPhase,
        last: int | None = None,
        last_lots: int = 0,
    ) -> MarketSnapshot:
        """The market at an instant; `last` is a trade then.

        An empty side is at a price of 0 once something was displayed there. Before, it is not stated.
        """
        bid, ask = self.bid, self.ask
        return MarketSnapshot(
            at_ns=at_ns,
            instrument=instrument.symbol,
            venue=venue,
            bid=instrument.price(bid) if bid > 0 or self.bid_gone else None,
            bid_quantity=self.bid_lots,
            ask=instrument.price(ask) if ask > 0 or self.ask_gone else None,
            ask_quantity=self.ask_lots,
            last=None if last is None else instrument.price(last),
            last_quantity=last_lots,
            phase=phase,
        )


class BestQuotes:
    """The best bid and ask over the exchanges that quote one instrument."""

    def __init__(self) -> None:
        self._by_exchange: dict[str, _ShownQuote] = {}

    @property
    def num_exchanges(self) -> int:
        return len(self._by_exchange)

    def forget_ticks(self) -> None:
        """The instrument's tick is another: convert each price anew, also one that is stated again."""
        for one in self._by_exchange.values():
            one.stated_bid = one.stated_ask = math.nan

    def take(self, quote: Quote, instrument: Instrument) -> tuple[int, int, int, int]:
        """Best bid and its lots, best ask and its lots, after a quote; a side that it does not state stays."""
        sides = self._by_exchange.get(quote.venue)
        if sides is None:
            sides = self._by_exchange[quote.venue] = _ShownQuote()
        if quote.bid is not None and quote.bid != sides.stated_bid:
            sides.bid, sides.stated_bid = instrument.nearest_ticks(quote.bid, "down"), quote.bid
        if quote.bid_size is not None:
            sides.bid_lots = lots_of(quote.bid_size, instrument)
        if quote.ask is not None and quote.ask != sides.stated_ask:
            sides.ask, sides.stated_ask = instrument.nearest_ticks(quote.ask, "up"), quote.ask
        if quote.ask_size is not None:
            sides.ask_lots = lots_of(quote.ask_size, instrument)
        if len(self._by_exchange) == 1:
            return sides.bid, sides.bid_lots, sides.ask, sides.ask_lots
        others = [one for one in self._by_exchange.values() if one is not sides]
        for other in others:
            if other.ask and sides.bid > other.ask:
                other.ask = other.ask_lots = 0
                other.stated_ask = 0.0
            if sides.ask and other.bid > sides.ask:
                other.bid = other.bid_lots = 0
                other.stated_bid = 0.0
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
        self._displayed: dict[str, DisplayedPrices] = {}

    def list_instrument(self, instrument: Instrument) -> None:
        """Follow an instrument."""
        self._instruments[instrument.symbol] = instrument
        self._quotes.setdefault(instrument.symbol, BestQuotes()).forget_ticks()
        self._displayed.setdefault(instrument.symbol, DisplayedPrices())

    def observe(self, item: FeedItem) -> MarketSnapshot | None:
        """The market after an item; None where it says nothing of a listed instrument."""
        if not isinstance(item, Bar | Quote | Trade) or item.symbol not in self._instruments:
            return None
        instrument, displayed = self._instruments[item.symbol], self._displayed[item.symbol]
        last, last_lots = None, 0
        match item:
            case Quote():
                displayed.show(*self._quotes[item.symbol].take(item, instrument))
            case Trade():
                last, last_lots = instrument.nearest_ticks(item.price), lots_of(item.size, instrument)
            case Bar():
                last, last_lots = instrument.nearest_ticks(item.close), lots_of(item.volume, instrument)
        return displayed.snapshot(
            instrument, self._venue, item.available_at_ns, SessionPhase.CONTINUOUS, last, last_lots
        )


def lots_of(size: float, instrument: Instrument) -> int:
    """Whole lots of a number of units."""
    return int(size // instrument.lot_size)
