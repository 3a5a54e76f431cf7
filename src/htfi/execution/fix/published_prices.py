"""What a venue that has prices of its own publishes: an increment (35=X) for each quote and trade, a snapshot (35=W)
for each bar and each new subscription.

Prices are numbered, from 1 on: MDEntryID (278) of an increment, QuoteEntryID (299) of a bar.
"""

from htfi.domain.events import Bar, Quote, Trade
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed
from htfi.execution.fix.price_messages import Price, plain_number, price_message
from htfi.execution.fix.timestamps import exact_timestamp

_BID, _OFFER, _TRADE = "0", "1", "2"  # MDEntryType (269)


class PublishedPrices:
    """Numbered prices as messages, and what they come to for who subscribes now."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._quoted: dict[str, dict[str, Quote]] = {}  # by symbol and exchange, with both sides
        self._newest_ns = 0

    def take(self, price: Price) -> None:
        """Keep a price for the snapshots."""
        self._newest_ns = price.available_at_ns
        if isinstance(price, Quote):
            markets = self._quoted.setdefault(price.symbol, {})
            before = markets.get(price.venue)
            markets[price.venue] = price if before is None else _joined(before, price)

    def snapshot(self, symbol: str, request_id: str) -> Composed:
        """All that is quoted of an instrument."""
        body = [(262, request_id), (55, symbol)]
        if 779 in self._dictionary.messages["W"].required:
            body.append((779, exact_timestamp(self._newest_ns)))
        rows: list[list[tuple[int, str]]] = []
        for market, quote in self._quoted.get(symbol, {}).items():
            rows += [side[1:] for side in _sides(quote, market)]  # without MDUpdateAction (279)
        body.append((268, str(max(1, len(rows)))))
        for row in rows or [[(269, _TRADE)]]:  # there is no price yet
            body += row
        return "W", body

    def message(self, price: Price, number: int, request_id: str) -> Composed:
        """The message of a price."""
        if isinstance(price, Bar):
            return "W", self._bar(price, number, request_id)
        if isinstance(price, Trade):
            entries = [_entry(_TRADE, price.price, price.size, price, price.venue)]
        else:
            entries = _sides(price, price.venue)
        body = [(262, request_id), (268, str(len(entries)))]
        for entry in entries:
            for field in entry:
                body.append(field)
                if field[0] == 269:
                    body += [(278, str(number)), (55, price.symbol)]
        return "X", body

    def _bar(self, bar: Bar, number: int, request_id: str) -> list[tuple[int, str]]:
        composed = price_message(bar, self._dictionary)
        assert composed is not None, "a bar has a message"
        fields = [(262, request_id), *composed[1]]
        at = next(at for at, field in enumerate(fields) if field[0] == 273) + 1
        return [*fields[:at], (299, str(number)), (58, bar.interval), *fields[at:]]


def number_of(message: FixMessage) -> int:
    """The number of the price that a published message states; 0 of one that states none."""
    text = message.get(278) or message.get(299)
    return int(text) if text.isascii() and text.isdigit() else 0


def _joined(before: Quote, after: Quote) -> Quote:
    """What is quoted after a quote that may state one side."""
    bid, ask = (before if after.bid is None else after), (before if after.ask is None else after)
    return Quote(
        after.available_at_ns, after.event_time_ns, after.source, after.row, after.symbol, bid.bid, bid.bid_size,
        ask.ask, ask.ask_size, after.venue,
    )  # fmt: skip


def _sides(quote: Quote, market: str) -> list[list[tuple[int, str]]]:
    sides = ((_BID, quote.bid, quote.bid_size), (_OFFER, quote.ask, quote.ask_size))
    return [_entry(kind, price, size, quote, market) for kind, price, size in sides if price is not None]


def _entry(kind: str, price: float, size: float | None, of: Price, market: str) -> list[tuple[int, str]]:
    time = exact_timestamp(of.available_at_ns)
    entry = [(279, "0" if kind == _TRADE else "1"), (269, kind), (270, plain_number(price))]
    if size is not None:
        entry.append((271, plain_number(size)))
    entry += [(272, time[:8]), (273, time[9:])]
    return [*entry, (275, market)] if market else entry
