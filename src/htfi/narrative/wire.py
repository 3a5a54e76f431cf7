"""Keeps recent headlines, by symbol and market-wide, cleaned and fading, in bounded memory, for the loop."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from math import log2
from typing import Any

import msgspec

from htfi.domain.events import News
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.text import clean

_MARKET = ""  # the shelf of items that name no symbol
MAX_ID_CHARS = 128
_MAX_SYMBOLS_PER_ITEM = 64  # it moves no more: naming all does not make it news of all


class Wire:
    """Keeps at most `max_items_per_symbol` items for each of the `max_symbols` symbols last in the news."""

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        self._config = config or NarrativeConfig()
        self.lifetime_ns = int(-log2(self._config.min_weight) * self._config.half_life_ns)
        self._market: deque[News] = deque(maxlen=self._config.max_items_per_symbol)
        self._by_symbol: OrderedDict[str, deque[News]] = OrderedDict()  # latest in the news last

    def hear(self, item: News) -> None:
        """Take in one item, in order of `available_at_ns`. One whose headline is blank is no news."""
        headline = clean(item.headline, self._config.max_headline_chars)
        if not headline:
            return
        symbols = tuple(symbol for symbol in item.symbols if symbol)[:_MAX_SYMBOLS_PER_ITEM]
        kept = msgspec.structs.replace(
            item,
            id=clean(item.id, MAX_ID_CHARS),
            headline=headline,
            symbols=symbols,
            body="",  # no reader is told it, and a shelf of long ones would fill the memory
            url="",
        )
        if not symbols:
            self._market.append(kept)
        for symbol in symbols:
            self._shelf(symbol).append(kept)

    def forget(self, name: str, symbols: Sequence[str]) -> None:
        """Drop an item by its id from the shelves of its symbols and from the market's."""
        shelves = [shelf for symbol in symbols if (shelf := self._by_symbol.get(symbol)) is not None]
        for shelf in (*shelves, self._market):
            kept = [item for item in shelf if item.id != name]
            if len(kept) < len(shelf):
                shelf.clear()
                shelf.extend(kept)

    def recent(self, symbol: str, as_of_ns: int, limit: int | None = None) -> list[News]:
        """Items on `symbol` or the whole market, known at `as_of_ns` and not yet faded, newest first."""
        oldest_ns = as_of_ns - self.lifetime_ns
        most = self._config.max_items_per_symbol if limit is None else limit
        own = self._by_symbol.get(symbol)
        found = _newest(own, oldest_ns, as_of_ns, most) if own else []
        shared = _newest(self._market, oldest_ns, as_of_ns, most) if self._market else []
        if found and shared:
            shared += found
            shared.sort(key=_newest_first)
        return (shared or found)[:limit]

    def state(self) -> dict[str, Any]:
        shelves = [(_MARKET, self._market), *self._by_symbol.items()]
        return {
            "shelves": [
                {"symbol": symbol, "items": [msgspec.to_builtins(item) for item in items]}
                for symbol, items in shelves
            ]
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._market.clear()
        self._by_symbol.clear()
        for shelf in state["shelves"]:
            items = self._market if shelf["symbol"] == _MARKET else self._shelf(shelf["symbol"])
            items.extend(msgspec.convert(item, News) for item in shelf["items"])

    def _shelf(self, symbol: str) -> deque[News]:
        shelf = self._by_symbol.get(symbol)
        if shelf is None:
            shelf = self._by_symbol[symbol] = deque(maxlen=self._config.max_items_per_symbol)
            if len(self._by_symbol) > self._config.max_symbols:
                self._by_symbol.popitem(last=False)
        else:
            self._by_symbol.move_to_end(symbol)
        return shelf


def _newest(items: deque[News], oldest_ns: int, as_of_ns: int, most: int) -> list[News]:
    found: list[News] = []
    for item in reversed(items):
        if len(found) == most or item.available_at_ns < oldest_ns:
            break
        if item.available_at_ns <= as_of_ns:
            found.append(item)
    return found


def _newest_first(item: News) -> tuple[int, str, int]:
    return (-item.available_at_ns, item.source, -item.row)
