"""Quotes, trades and bars of a feed to FIX and back, for a simulated venue and its client.

A snapshot (35=W) of one event: bid (0) and offer (1) of a quote, trade (2), or opening (4), high (7), low (8), closing
price (5) and volume (B) of a bar, whose first and last entries state when it began and ended.
"""

from collections.abc import Mapping
from decimal import Decimal

from htfi.domain.events import Bar, Quote, Trade
from htfi.execution.fix.checking import entries
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed, Unreadable
from htfi.execution.fix.timestamps import exact_timestamp, parse_timestamp

Price = Quote | Trade | Bar

NO_PRICE = "no price is known"  # Text (58) of an answer of the simulated venue

_BID, _OFFER, _TRADE, _OPEN, _CLOSE, _HIGH, _LOW, _VOLUME = "0", "1", "2", "4", "5", "7", "8", "B"
_MAX_DECIMALS = 30
BAR_ENTRIES = frozenset({_OPEN, _HIGH, _LOW, _CLOSE, _VOLUME})  # MDEntryType (269)


def price_message(price: Price, dictionary: Dictionary) -> Composed | None:
    """The message of an event; None of a quote that states neither side."""
    at_ns = price.available_at_ns
    match price:
        case Quote():
            sides = ((_BID, price.bid, price.bid_size), (_OFFER, price.ask, price.ask_size))
            rows = [(kind, value, size, at_ns) for kind, value, size in sides if value is not None]
        case Trade():
            rows = [(_TRADE, price.price, price.size, at_ns)]
        case Bar():
            rows = [
                (_OPEN, price.open, None, price.start_ns),
                (_HIGH, price.high, None, at_ns),
                (_LOW, price.low, None, at_ns),
                (_VOLUME, None, price.volume, at_ns),
                (_CLOSE, price.close, None, price.end_ns),
            ]
    if not rows:
        return None
    body = [(55, price.symbol)]
    if not isinstance(price, Bar) and price.venue:
        body.append((207, price.venue))
    if 779 in dictionary.messages["W"].required:
        body.append((779, exact_timestamp(at_ns)))
    body.append((268, str(len(rows))))
    for kind, value, size, entry_ns in rows:
        body.append((269, kind))
        if value is not None:
            body.append((270, plain_number(value)))
        if size is not None:
            body.append((271, plain_number(size)))
        time = exact_timestamp(entry_ns)
        body += [(272, time[:8]), (273, time[9:])]
    return "W", body


def read_price(message: FixMessage, dictionary: Dictionary) -> Price | Unreadable:
    """The event of a checked message."""
    rows = {row.get(269, ""): row for row in entries(message, dictionary, 268)}
    symbol, venue = message.get(55), message.get(207)
    try:
        if _OPEN in rows:
            at_ns = _time(rows[_HIGH])
            return Bar(
                at_ns, at_ns, "fix", 1, symbol, "fix", _time(rows[_OPEN]), _time(rows[_CLOSE]),
                _float(rows[_OPEN], 270), _float(rows[_HIGH], 270), _float(rows[_LOW], 270),
                _float(rows[_CLOSE], 270), _float(rows[_VOLUME], 271),
            )  # fmt: skip
        if _TRADE in rows:
            row = rows[_TRADE]
            at_ns = _time(row)
            return Trade(at_ns, at_ns, "fix", 1, symbol, _float(row, 270), _float(row, 271), venue)
        bid, offer = rows.get(_BID, {}), rows.get(_OFFER, {})
        at_ns = _time(bid or offer)
        return Quote(
            at_ns, at_ns, "fix", 1, symbol, _optional(bid, 270), _optional(bid, 271),
            _optional(offer, 270), _optional(offer, 271), venue,
        )  # fmt: skip
    except (KeyError, ValueError) as error:
        return Unreadable(f"a snapshot that is no quote, trade or bar: {error}", 268)


def exact_time(composed: Composed, at_ns: int) -> Composed:
    """The message with TransactTime (60) to the nanosecond."""
    kind, body = composed
    text = exact_timestamp(at_ns)
    return kind, [(tag, text if tag == 60 else value) for tag, value in body]


def plain_number(value: float) -> str:
    """The shortest decimal that is the same float, with the 30 decimals that a reader takes at most."""
    text = f"{Decimal(repr(value)):f}"
    return text if len(text.partition(".")[2]) <= _MAX_DECIMALS else f"{value:.{_MAX_DECIMALS}f}"


def _optional(row: Mapping[int, str], tag: int) -> float | None:
    return float(row[tag]) if tag in row else None


def _float(row: Mapping[int, str], tag: int) -> float:
    return float(row[tag])


def _time(row: Mapping[int, str]) -> int:
    at_ns = parse_timestamp(f"{row[272]}-{row[273]}")
    if at_ns is None:
        raise ValueError("an entry without a time")
    return at_ns
