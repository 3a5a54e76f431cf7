"""Joins renamed series and adjusts prices for splits, as settings name them: each event as it leaves the feed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from htfi.domain.events import Bar, FeedItem, News, Quote, Trade
from htfi.domain.new_york import to_utc_ns
from htfi.domain.time import NS_PER_DAY
from htfi.pipeline.intake.outer_feed import OuterFeed
from htfi.pipeline.ports import EventFeed


@dataclass(frozen=True, slots=True)
class _Split:
    """From `at_ns` on prices are `ratio` times smaller than before."""

    at_ns: int
    ratio: float


class SeriesAdjustments:
    """What settings state of symbols: their later names, and splits that prices are not adjusted for.

    Prices before a split are divided by its ratio and sizes multiplied by it, so that all are in units of today. A
    bar is before it where it ends at or before midnight in New York of the split's day.
    """

    def __init__(self, renames: Mapping[str, str], splits: Mapping[str, Mapping[str, float]]) -> None:
        """`renames` gives each symbol's next name; `splits`, under the newest name, the ratio by the day (ISO) from
        which prices are smaller. Both are as `MarketConfig` has checked them.
        """
        self._names = {old: _newest(old, renames) for old in renames}
        self._splits = {
            symbol: sorted((_Split(_midnight_ns(day), ratio) for day, ratio in by_day.items()), key=_at)
            for symbol, by_day in splits.items()
        }

    def __bool__(self) -> bool:
        return bool(self._names or self._splits)

    def adjusted(self, item: FeedItem) -> FeedItem:
        """The same item under its newest name, in today's units."""
        if isinstance(item, News):
            if not any(symbol in self._names for symbol in item.symbols):
                return item
            return replace(item, symbols=tuple(dict.fromkeys(self._name(one) for one in item.symbols)))
        if not isinstance(item, Bar | Trade | Quote):
            return item
        symbol = self._name(item.symbol)
        if symbol != item.symbol:
            item = replace(item, symbol=symbol)
        splits = self._splits.get(symbol)
        if splits is None:
            return item
        at_ns = item.end_ns - 1 if isinstance(item, Bar) else item.event_time_ns
        ratio = 1.0
        for split in splits:
            if at_ns < split.at_ns:
                ratio *= split.ratio
        return item if ratio == 1.0 else _divided(item, ratio)

    def _name(self, symbol: str) -> str:
        return self._names.get(symbol, symbol)


class AdjustedFeed(OuterFeed):
    """Another feed, each item adjusted."""

    def __init__(self, feed: EventFeed, adjustments: SeriesAdjustments) -> None:
        super().__init__(feed)
        self._adjustments = adjustments

    def __iter__(self) -> Iterator[FeedItem]:
        for item in self._feed:
            yield self._adjustments.adjusted(item)


def _divided(item: Bar | Trade | Quote, ratio: float) -> Bar | Trade | Quote:
    if isinstance(item, Bar):
        prices = {name: getattr(item, name) / ratio for name in ("open", "high", "low", "close")}
        return replace(item, **prices, volume=item.volume * ratio)
    if isinstance(item, Trade):
        return replace(item, price=item.price / ratio, size=item.size * ratio)
    sides = {name: _times(getattr(item, name), 1.0 / ratio) for name in ("bid", "ask")}
    return replace(
        item, **sides, bid_size=_times(item.bid_size, ratio), ask_size=_times(item.ask_size, ratio)
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _newest(symbol: str, renames: Mapping[str, str]) -> str:
    while symbol in renames:
        symbol = renames[symbol]
    return symbol


def _midnight_ns(day: str) -> int:
    days = np.array([np.datetime64(day, "D").astype(np.int64)], np.int64)
    return int(to_utc_ns(days * NS_PER_DAY)[0])


def _at(split: _Split) -> int:
    return split.at_ns
