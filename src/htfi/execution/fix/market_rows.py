"""Market data of a counterparty (35=W, 35=X) as the rows of a feed: quotes, trades, bars.

An increment becomes a row of what it changes. A snapshot becomes a row where it differs from what is known: then
something was missed. What the counterparty no longer quotes has the size 0. A trade in a snapshot is old, and no row.
Raw rows are checked as those of any feed are.
"""

from collections.abc import Collection, Mapping
from zoneinfo import ZoneInfo

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, format_duration, parse_duration
from htfi.execution.fix.checking import entries
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.messages import FixMessage, frame_text
from htfi.execution.fix.price_messages import BAR_ENTRIES, read_price
from htfi.execution.fix.timestamps import day_of, parse_timestamp

Row = dict[str, object]

_SIDES = {"0": "bid", "1": "ask"}  # MDEntryType (269)
_TRADE = "2"
_NEW, _DELETE = "0", "2"  # MDUpdateAction (279)
_NEW_YORK = ZoneInfo("America/New_York")  # whose midnights end bars that are dated by day

_Quoted = dict[str, float]  # bid, bid_size, ask, ask_size, as far as they are known


class MarketRows:
    """Rows of the instruments that were asked for. A request's MDReqID (262) ends with its symbol, `RUN-NUMBER-SYMBOL`.

    `with_ids`: what the simulated venue calls its prices becomes their id.
    """

    def __init__(self, dictionary: Dictionary, symbols: Collection[str], *, with_ids: bool = False) -> None:
        self._dictionary, self._symbols, self._with_ids = dictionary, frozenset(symbols), with_ids
        self._quoted: dict[str, dict[str, _Quoted]] = {}  # by symbol and exchange
        self._newest_ns = 0

    def remember(self, row: Mapping[str, object]) -> None:
        """A row that an earlier process has written."""
        if isinstance(at_ns := row.get("ts_ns"), int):
            self._newest_ns = max(self._newest_ns, at_ns)
        if row.get("kind") == "quote":
            self._note(row)

    def read(self, message: FixMessage) -> list[Row]:
        """The rows of a checked message; none of one that is no market data."""
        match message.msg_type:
            case "W":
                rows = self._snapshot(message)
            case "X":
                rows = self._increments(message)
            case _:
                return []
        for row in rows:
            self.remember(row)
        return rows

    def _increments(self, message: FixMessage) -> list[Row]:
        rows: list[Row] = []
        symbol, market = asked_symbol(message.get(262)), ""
        for entry in entries(message, self._dictionary, 268):
            symbol, market = entry.get(55, symbol), entry.get(275) or entry.get(207) or market
            if symbol not in self._symbols:
                rows.append(_refused("bad_symbol", f"'{symbol}' was not asked for", message))
                continue
            side, at_ns = _SIDES.get(entry.get(269, "")), _entry_ns(entry, message)
            price, size = _number(entry, 270), _number(entry, 271)
            if side is not None:
                if entry.get(279) == _DELETE:
                    price = self._known(symbol, market).get(side) if price is None else price
                    if price is None:
                        continue  # it was not there
                    size = 0.0
                if price is None:
                    rows.append(_refused("missing_field", f"{side} without a price", message))
                    continue
                row = self._row("quote", symbol, market, at_ns, entry.get(278))
                row |= {side: price} if size is None else {side: price, f"{side}_size": size}
                _join(rows, row)
            elif entry.get(269) == _TRADE:
                if entry.get(279, _NEW) != _NEW or price is None:
                    what = "a trade without a price" if price is None else "a trade is changed or taken back"
                    rows.append(_refused("missing_field", what, message))
                    continue
                row = self._row("trade", symbol, market, at_ns, entry.get(278))
                rows.append(row | {"price": price, "size": size or 0.0})
        return rows

    def _snapshot(self, message: FixMessage) -> list[Row]:
        symbol = message.get(55) or asked_symbol(message.get(262))
        if symbol not in self._symbols:
            return [_refused("bad_symbol", f"'{symbol}' was not asked for", message)]
        found = entries(message, self._dictionary, 268)
        if {entry.get(269) for entry in found} >= BAR_ENTRIES:
            return [self._bar(message, found[0])]
        shown: dict[str, _Quoted] = {market: {} for market in self._quoted.get(symbol, {})}
        at_ns = self._newest_ns
        for entry in found:
            side, price = _SIDES.get(entry.get(269, "")), _number(entry, 270)
            if side is None or price is None:
                continue
            at_ns = max(at_ns, _entry_ns(entry, message))
            quoted = shown.setdefault(entry.get(275) or message.get(207), {})
            sign = 1.0 if side == "bid" else -1.0
            if side not in quoted or sign * price > sign * quoted[side]:  # the best, where it shows several
                size = _number(entry, 271)
                quoted.pop(f"{side}_size", None)
                quoted |= {side: price} if size is None else {side: price, f"{side}_size": size}
        rows: list[Row] = []
        for market, quoted in shown.items():
            known = self._known(symbol, market)
            gone = {f"{side}_size": 0.0 for side in ("bid", "ask") if side in known and side not in quoted}
            now = known | quoted | gone
            if now != known:
                rows.append(self._row("quote", symbol, market, at_ns or _sent_ns(message), None) | now)
        return rows

    def _bar(self, message: FixMessage, first: Mapping[int, str]) -> Row:
        bar = read_price(message, self._dictionary)
        if not isinstance(bar, Bar):
            return _refused("missing_field", getattr(bar, "why", "no bar"), message)
        span_ns = bar.end_ns - bar.start_ns
        interval = first.get(58) or format_duration(max(span_ns, 1))
        row = self._row("bar", bar.symbol, "", bar.end_ns, first.get(299)) | {
            "interval": interval, "open": bar.open, "high": bar.high, "low": bar.low, "close": bar.close,
            "volume": bar.volume, "available_at_ns": bar.available_at_ns,
        }  # fmt: skip
        del row["venue"]
        day = _day_of(bar.start_ns, bar.end_ns, interval)
        row["date" if day else "start_ns"] = day or bar.start_ns
        del row["ts_ns"]
        return row

    def _row(self, kind: str, symbol: str, market: str, at_ns: int, known_as: str | None) -> Row:
        row: Row = {"kind": kind, "ts_ns": at_ns, "symbol": symbol, "venue": market}
        return row | {"id": known_as} if known_as and self._with_ids else row

    def _known(self, symbol: str, market: str) -> _Quoted:
        return self._quoted.get(symbol, {}).get(market, {})

    def _note(self, row: Mapping[str, object]) -> None:
        quoted = self._quoted.setdefault(str(row["symbol"]), {}).setdefault(str(row.get("venue", "")), {})
        for name in ("bid", "bid_size", "ask", "ask_size"):
            if isinstance(value := row.get(name), int | float):
                quoted[name] = float(value)


def asked_symbol(request_id: str) -> str:
    """The symbol of a request of ours, by its MDReqID (262)."""
    return request_id.split("-", 2)[2] if request_id.count("-") >= 2 else ""


def _join(rows: list[Row], row: Row) -> None:
    """Add a side of a quote: to the row before, where that is the other side at the same time."""
    last = rows[-1] if rows else {}
    side = "bid" if "bid" in row else "ask"
    alike = all(last.get(name) == row.get(name) for name in ("kind", "ts_ns", "symbol", "venue", "id"))
    if alike and side not in last:
        last |= row
    else:
        rows.append(row)


def _day_of(start_ns: int, end_ns: int, interval: str) -> str:
    """The first day of a bar of whole days in New York, one of which was longer or shorter than 24 hours."""
    first, begins_day = day_of(start_ns, _NEW_YORK)
    _, ends_day = day_of(end_ns, _NEW_YORK)
    try:
        length_ns = parse_duration(interval)
    except InvalidInput:  # intake says so of the row
        return ""
    is_days = length_ns % NS_PER_DAY == 0 and end_ns - start_ns != length_ns
    return first if is_days and begins_day and ends_day else ""


def _refused(reason: str, detail: str, message: FixMessage) -> Row:
    return {"refused": reason, "detail": f"35={message.msg_type}: {detail}", "raw": frame_text(message.frame)}


def _number(entry: Mapping[int, str], tag: int) -> float | None:
    return float(entry[tag]) if tag in entry else None


def _entry_ns(entry: Mapping[int, str], message: FixMessage) -> int:
    found = parse_timestamp(f"{entry[272]}-{entry[273]}") if 272 in entry and 273 in entry else None
    return _sent_ns(message) if found is None else found


def _sent_ns(message: FixMessage) -> int:
    return parse_timestamp(message.get(52)) or 0
