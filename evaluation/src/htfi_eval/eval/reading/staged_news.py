"""Staged news with daily prices: what was published when and about whom, and the first session that could trade on it.

Rules: a text counts once, at its first publication; an item before the open belongs to the session that opens next, one
during a session to that session; an item with a date alone is known from the next session's open. Stamps of pages may
be those of their last update, which may come after the move that they report: what happens in the session of an item
is no proof that it was read before; the opening gap after an overnight item is a cleaner test.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.understanding import NewsText
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.narrative.real_text import (
    PublishedText,
    reuters,
    session_closes,
    stocknet,
    without_repeats,
)
from htfi_eval.eval.price_grid import FIELDS, Fields, Prices, on_grid
from htfi_eval.eval.prices import read_rows
from htfi_eval.eval.reading.readings import ReadItem, read_items

SESSION_NS = int(6.5 * 3600) * NS_PER_S
_DAY_CLOSE_NS = 21 * 3600 * NS_PER_S  # of prices whose close has a date alone


class Phase(StrEnum):
    """When an item came, as seen from its session."""

    OVERNIGHT = "overnight"  # after the last close and before the open
    SESSION = "session"  # while the session was open
    DATED = "dated"  # on that date, at an hour not known


@dataclass(frozen=True, slots=True)
class PricedItem:
    """One text for one symbol, and the row of `Prices` of its session."""

    text: str
    symbol: str
    published_ns: int
    row: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class StagedNews:
    """One source with its prices. `names` by symbol, as the source itself writes them."""

    name: str
    prices: Prices
    items: tuple[PricedItem, ...]
    names: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadEvent:
    """The strongest of the items of one symbol, session and phase, as read; `num` items there were."""

    item: PricedItem
    read: ReadItem
    num: int


def load_reuters(data: Path) -> StagedNews | None:
    """Headlines of companies 2006–2013 under every symbol that their whole text names; None where not staged."""
    file = data / "text_price" / "reuters_news_2006_2013.parquet"
    if not file.is_file() or not (data / "panels").is_dir():
        return None
    prices, found = reuters(data)
    names = _names_in(read_rows(file)["lead"].tolist())
    return _timed("Reuters", prices, without_repeats(found), names)


def load_stocknet(data: Path) -> StagedNews | None:
    """Tweets of 2014–2016 by cashtag; None where not staged."""
    if not (data / "text_price" / "stocknet_tweets.parquet").is_file():
        return None
    prices, found = stocknet(data)
    return _timed("StockNet", prices, without_repeats(found), {})


_INVESTORBENCH_NAMES = {
    "BTC": "Bitcoin",
    "ETH": "Ethereum",
    "HON": "Honeywell",
    "JNJ": "Johnson & Johnson",
    "MSFT": "Microsoft",
    "NFLX": "Netflix",
    "UVV": "Universal Corporation",
}


def load_investorbench(data: Path) -> StagedNews | None:
    """Summaries of articles of 2020–2023 by date; None where not staged."""
    folder = data / "text_price"
    if not (folder / "investorbench_news.parquet").is_file():
        return None
    priced = read_rows(folder / "investorbench_prices_daily.parquet")
    days = np.array(priced["date"], "datetime64[D]").astype(np.int64) * NS_PER_DAY + _DAY_CLOSE_NS
    fields: Fields = dict.fromkeys(FIELDS, priced["close"].astype(np.float64))
    prices = on_grid("investorbench", priced["symbol"], days, days, fields, ())
    prices = replace(prices, open=np.full_like(prices.close, np.nan))
    rows = read_rows(folder / "investorbench_news.parquet")
    dates = np.array(rows["date"], "datetime64[D]").astype(np.int64) * NS_PER_DAY
    texts = [
        PublishedText(at_ns, (symbol,), _first_sentence(text), 0)
        for at_ns, symbol, text, kind in zip(
            dates.tolist(), *(rows[name].tolist() for name in ("symbol", "text", "kind")), strict=True
        )
        if kind == "news"
    ]
    column = {symbol: place for place, symbol in enumerate(prices.symbols)}
    items: list[PricedItem] = []
    for one in without_repeats(texts):
        (symbol,) = one.symbols
        if symbol in column:
            own = np.flatnonzero(np.isfinite(prices.close[:, column[symbol]]))
            place = int(np.searchsorted(prices.ends_ns[own], one.published_ns))
            if place < len(own):
                items.append(PricedItem(one.text, symbol, one.published_ns, int(own[place]), Phase.DATED))
    note = "InvestorBench: dates alone, summaries by a language model; its own session may leak, the next does not"
    return StagedNews("InvestorBench", prices, tuple(items), _INVESTORBENCH_NAMES, (note,))


LOADERS: dict[str, Callable[[Path], StagedNews | None]] = {
    "Reuters": load_reuters,
    "StockNet": load_stocknet,
    "InvestorBench": load_investorbench,
}


def sampled(news: StagedNews, num: int | None, seed: int) -> StagedNews:
    """About `num` items: all of the sessions that the seed draws, so that each session stays whole."""
    if num is None or len(news.items) <= num:
        return news
    counts = Counter(item.row for item in news.items)
    rows = sorted(counts)
    rng = np.random.Generator(np.random.PCG64([seed, sum(news.name.encode())]))
    drawn: set[int] = set()
    total = 0
    order: list[int] = rng.permutation(len(rows)).tolist()
    for place in order:
        if total >= num:
            break
        drawn.add(rows[place])
        total += counts[rows[place]]
    items = tuple(item for item in news.items if item.row in drawn)
    note = f"{news.name}: {len(items):,} of {len(news.items):,} items, of {len(drawn):,} sessions drawn by the seed"
    return replace(news, items=items, notes=(*news.notes, note))


def read_events(news: StagedNews, reader: FactReader, progress: ProgressCallback) -> list[ReadEvent]:
    """Every item read for its symbol, and of each symbol, session and phase the strongest, in order of sessions."""
    asked = [
        NewsText(item.text, symbol=item.symbol, name=news.names.get(item.symbol, "")) for item in news.items
    ]
    read = read_items(reader, asked, progress)
    cells: defaultdict[tuple[int, str, Phase], list[tuple[PricedItem, ReadItem]]] = defaultdict(list)
    for item, one in zip(news.items, read, strict=True):
        cells[item.row, item.symbol, item.phase].append((item, one))
    found: list[ReadEvent] = []
    for key in sorted(cells):
        item, one = max(cells[key], key=lambda pair: (pair[1].speaks, _strength(pair[1])))
        found.append(ReadEvent(item, one, len(cells[key])))
    return found


def _strength(read: ReadItem) -> float:
    return read.relevance * read.confidence * max(read.size_sigmas, 0.1)


def _timed(name: str, prices: Prices, texts: Sequence[PublishedText], names: Mapping[str, str]) -> StagedNews:
    closes_ns = session_closes(prices.ends_ns)
    rows: NDArray[np.intp] = np.searchsorted(
        closes_ns, np.array([text.published_ns for text in texts], np.int64), side="left"
    )
    known = set(prices.symbols)
    items = [
        PricedItem(
            text.text, symbol, text.published_ns, row,
            Phase.OVERNIGHT if text.published_ns < prices.ends_ns[row] - SESSION_NS else Phase.SESSION,
        )
        for text, row in zip(texts, rows.tolist(), strict=True)
        if 0 < row < len(closes_ns)
        for symbol in text.symbols
        if symbol in known
    ]  # fmt: skip
    return StagedNews(name, prices, tuple(items), names)


_NAMED = re.compile(r"((?:[A-Z][\w&.'’\-]*\s+(?:(?:of|and|&)\s+)?){1,5})\(\s?([A-Z]{1,5})\.(?:N|OQ?|A)\s?\)")


def _names_in(texts: Sequence[str | None]) -> dict[str, str]:
    """What texts call a symbol before its code: 'Kimberly-Clark Corp. ( KMB.N )'; the most frequent name."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for name, symbol in _NAMED.findall(text or ""):
            seen[symbol][name.strip().rstrip(",")] += 1
    return {symbol: names.most_common(1)[0][0] for symbol, names in sorted(seen.items())}


def _first_sentence(text: str) -> str:
    """The beginning of an article's summary, as a headline would be."""
    return re.split(r"(?<=[a-z0-9%][.!?])\s", text.strip(), maxsplit=1)[0][:300]
