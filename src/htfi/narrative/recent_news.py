"""Holds recent headlines by symbol and market-wide, in bounded memory, and the record of each item for decisions."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from htfi.domain.decision import FidelityPlan
from htfi.domain.events import News
from htfi.domain.news import ItemReading, NewsItemAudit, NewsScores, ReadingBudget, Route, ScreenedItem
from htfi.narrative.config import (
    MAX_HEADLINE_CHARS,
    MAX_ITEMS_PER_SYMBOL,
    MIN_WEIGHT,
    NarrativeConfig,
    RoutingConfig,
)
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.routing import choose_route
from htfi.narrative.text import clean

_MARKET = ""  # the list of items that name no symbol
MAX_ID_CHARS = 128
_MAX_SYMBOLS_PER_ITEM = 64  # further symbols are dropped: naming all does not make it news on all


class RecentNews:
    """At most `max_items_per_symbol` items for each of the `max_symbols` symbols last in the news."""

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        self._config = config or NarrativeConfig()
        self.lifetime_ns = int(-log2(MIN_WEIGHT) * self._config.half_life_ns)
        self._market: deque[News] = deque(maxlen=MAX_ITEMS_PER_SYMBOL)
        self._by_symbol: OrderedDict[str, deque[News]] = OrderedDict()  # latest in the news last

    def add(self, item: News) -> None:
        """Take in one item, in order of `available_at_ns`. An item with a blank headline is ignored."""
        headline = clean(item.headline, MAX_HEADLINE_CHARS)
        if not headline:
            return
        symbols = tuple(symbol for symbol in item.symbols if symbol)[:_MAX_SYMBOLS_PER_ITEM]
        kept = msgspec.structs.replace(
            item,
            id=clean(item.id, MAX_ID_CHARS),
            headline=headline,
            symbols=symbols,
            body="",  # no reader needs it, and long bodies would fill the memory
            url="",
        )
        if not symbols:
            self._market.append(kept)
        for symbol in symbols:
            self._items_of(symbol).append(kept)

    def forget(self, name: str, symbols: Sequence[str]) -> None:
        """Remove an item by its id from the lists of its symbols and from the market's."""
        shelves = [shelf for symbol in symbols if (shelf := self._by_symbol.get(symbol)) is not None]
        for shelf in (*shelves, self._market):
            kept = [item for item in shelf if item.id != name]
            if len(kept) < len(shelf):
                shelf.clear()
                shelf.extend(kept)

    def recent(self, symbol: str, as_of_ns: int, limit: int | None = None) -> list[News]:
        """Items on `symbol` or on the whole market, known at `as_of_ns` and within their lifetime, newest first."""
        oldest_ns = as_of_ns - self.lifetime_ns
        most = MAX_ITEMS_PER_SYMBOL if limit is None else limit
        own = self._by_symbol.get(symbol)
        found = _newest_items(own, oldest_ns, as_of_ns, most) if own else []
        shared = _newest_items(self._market, oldest_ns, as_of_ns, most) if self._market else []
        if found and shared:
            shared += found
            shared.sort(key=_recency_key)
        return (shared or found)[:limit]

    @property
    def has_market_items(self) -> bool:
        """Whether there is any item on the whole market, however old."""
        return bool(self._market)

    @property
    def symbols(self) -> Iterable[str]:
        """The symbols that were last in the news."""
        return self._by_symbol.keys()

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
            items = self._market if shelf["symbol"] == _MARKET else self._items_of(shelf["symbol"])
            items.extend(msgspec.convert(item, News) for item in shelf["items"])

    def _items_of(self, symbol: str) -> deque[News]:
        shelf = self._by_symbol.get(symbol)
        if shelf is None:
            shelf = self._by_symbol[symbol] = deque(maxlen=MAX_ITEMS_PER_SYMBOL)
            if len(self._by_symbol) > self._config.max_symbols:
                self._by_symbol.popitem(last=False)
        else:
            self._by_symbol.move_to_end(symbol)
        return shelf


def _newest_items(items: deque[News], oldest_ns: int, as_of_ns: int, most: int) -> list[News]:
    found: list[News] = []
    for item in reversed(items):
        if len(found) == most or item.available_at_ns < oldest_ns:
            break
        if item.available_at_ns <= as_of_ns:
            found.append(item)
    return found


def _recency_key(item: News) -> tuple[int, str, int]:
    return (-item.available_at_ns, item.source, -item.row)


class NewsRecord(msgspec.Struct, frozen=True):
    """How an item was screened and scored, and which reader it is worth.

    The item is without its body and link: nothing needs them once it was scored. `derived` names what caches hold of
    it.
    """

    screened: ScreenedItem
    scores: NewsScores | None
    most: Route
    why: str
    position: float
    derived: tuple[str, ...]
    facts: NewsFacts | None = None  # without their text, which is the headline

    @property
    def first_report(self) -> str:
        cluster = self.screened.cluster
        return cluster if cluster != self.screened.item.id else ""


class NewsSelection(NamedTuple):
    """The news on one symbol at an instant, newest first; `readings` by id are what the facts of items mean for it."""

    items: tuple[News, ...]  # for a model to read
    encoder_only: tuple[NewsRecord, ...]  # read by the encoder alone
    set_aside: tuple[NewsRecord, ...]  # read by none
    suspicion: str
    suspicion_reset: str = ""  # who ended suspicion recently
    readings: Mapping[str, ItemReading] = {}


NO_NEWS = NewsSelection((), (), (), "")


def item_audit(
    note: NewsRecord,
    plan: FidelityPlan,
    means: ReadingBudget,
    config: RoutingConfig,
    max_moved: float,
    reading: ItemReading | None = None,
    statement: Sequence[str] = (),
) -> NewsItemAudit:
    """An item as a decision with this plan records it; `max_moved` is the share of the 90% band that it may move,
    `statement` what changed in a central bank's document, in words.
    """
    screened = note.screened
    is_scored = note.scores is not None and bool(note.scores.encoder)
    taken, why = choose_route(note.most, note.why, plan, means, config, is_scored=is_scored)
    return NewsItemAudit(
        id=screened.item.id,
        source=screened.item.source,
        available_at_ns=screened.item.available_at_ns,
        verdict=screened.verdict,
        trust=screened.trust,
        reasons=tuple(f"{one.rule}: {one.detail}" for one in screened.findings),
        num_alike=screened.num_alike,
        scores=note.scores,
        route=taken,
        why=why,
        position=note.position,
        first_report=note.first_report,
        is_tagged=bool(screened.item.symbols),
        max_moved=max_moved,
        reading=UNSET if reading is None else reading,
        statement=tuple(statement) or UNSET,
    )
