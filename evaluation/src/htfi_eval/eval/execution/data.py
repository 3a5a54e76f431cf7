"""Recorded quotes and trades of three stocks, by venue and day, cleaned as `NOTES` says.

A day is a list of feed items in order of time, with the best prices of all venues beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import Quote, Trade
from htfi.domain.time import NS_PER_S, to_ns
from htfi_eval.eval.prices import read_rows

TICK = 0.01
TUNING_DAYS = {date(2013, 10, 7), date(2013, 10, 8), date(2018, 1, 2)}  # constants were chosen on these
MIN_QUOTES = 400  # of a venue in a session: fewer are left out
MIN_QUOTES_A_TRADE = (
    2.0  # a trade changes what is displayed: with fewer the record of a venue's quotes is thinned
)
THINNED_AGE_NS = NS_PER_S  # how long a quote of such a venue counts
MAX_AGE_NS = 60 * NS_PER_S  # of any other
OFF_EXCHANGE = "D"  # trade reporting facility
_NEW_YORK = ZoneInfo("America/New_York")
_OPEN, _CLOSE = time(9, 30), time(16, 0)
_NOWHERE = 1 << 60  # ticks
_MAX_OFF = 0.02  # of the middle: trades further away are late or erroneous prints

NOTES = (
    "quotes: the best bid and ask of each venue, to the millisecond; depth, hidden size and queue positions are not in "
    "the data: an order waits behind all that was displayed when it came, and takes no more than is displayed",
    "a quote does not count while a newer one of another venue locks or crosses it, nor after a minute: it may be out "
    "of date, which the data do not say",
    "where a venue has fewer than two quotes for each of its trades, as all but NYSE have in the TAQ sample, its "
    "record is thinned: a quote of it counts for a second at most",
    "our orders move no prices that follow, so what is saved or lost by impact is not measured",
)

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MarketDay:
    """One session of a stock: items in order, when each comes, and steps of the best prices over all venues."""

    symbol: str
    day: date
    open_ns: int
    close_ns: int
    venues: tuple[str, ...]
    items: list[Quote | Trade]
    times: Ints  # of items
    step_ns: Ints  # when the best prices changed
    bids: Ints  # ticks
    asks: Ints
    displayed: dict[int, list[Quote]] = field(
        default_factory=dict[int, list[Quote]]
    )  # once asked for, by instant

    def mid2(self, at_ns: int) -> int:
        """Twice the middle of the best prices at an instant, ticks."""
        at = self._step(at_ns)
        return int(self.bids[at] + self.asks[at])

    def best(self, at_ns: int) -> tuple[int, int]:
        """Best bid and ask at an instant, ticks."""
        at = self._step(at_ns)
        return int(self.bids[at]), int(self.asks[at])

    def between(self, start_ns: int, end_ns: int) -> list[Quote | Trade]:
        """Items from one instant up to another."""
        low, high = np.searchsorted(self.times, (start_ns, end_ns))
        return self.items[int(low) : int(high)]

    def quotes_at(self, at_ns: int) -> list[Quote]:
        """What each venue displays at an instant, as quotes of that instant."""
        if at_ns in self.displayed:
            return self.displayed[at_ns]
        found: dict[str, Quote] = {}
        for item in self.between(self.open_ns - 3600 * NS_PER_S, at_ns):
            if isinstance(item, Quote):
                before = found.get(item.venue)
                found[item.venue] = item if before is None else _merged(before, item)
        quotes = self.displayed[at_ns] = [
            Quote(
                at_ns, at_ns, "eval", 0, one.symbol, one.bid, one.bid_size, one.ask, one.ask_size, one.venue
            )
            for one in found.values()
        ]
        return quotes

    def _step(self, at_ns: int) -> int:
        return max(0, int(np.searchsorted(self.step_ns, at_ns, side="right")) - 1)


def load_days(folder: Path, symbol: str, *, first_only: bool = False) -> Iterator[MarketDay]:
    """The sessions of BAC, IBM or TAQ, in order. Raises: DependencyUnavailable."""
    quotes, trades = _taq(folder) if symbol == "TAQ" else _lean(folder, symbol)
    days = np.unique(quotes["ts"].astype("datetime64[D]"))
    for day in days[:1] if first_only else days:
        one = day.astype(object)
        found = _session(symbol, one, quotes, trades)
        if found is not None:
            yield found


def _lean(folder: Path, symbol: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """BAC and IBM of October 2013: one-sided quotes."""
    parts: list[dict[str, Any]] = []
    for kind in ("quotes", "trades"):
        rows = read_rows(folder / "hf" / f"us_equity_ticks_{kind}_20131007_11.parquet")
        mine = (rows["symbol"].astype(str) == symbol) & ~rows["suspicious"]
        parts.append({name: column[mine] for name, column in rows.items()})
    quotes, trades = parts
    is_bid = quotes["side"].astype(str) == "b"
    price, size = quotes["price"].astype(float), quotes["size"].astype(float)
    found = {
        "ts": quotes["ts"], "venue": quotes["exchange"].astype(str),
        "bid": np.where(is_bid, price, np.nan), "bid_size": np.where(is_bid, size, np.nan),
        "ask": np.where(is_bid, np.nan, price), "ask_size": np.where(is_bid, np.nan, size),
    }  # fmt: skip
    return found, {
        "ts": trades["ts"], "venue": trades["exchange"].astype(str), "price": trades["price"], "size": trades["size"],
    }  # fmt: skip


def _taq(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pseudonymised stock of January 2018: two-sided quotes, sizes in hundreds; T and Q are both Nasdaq."""
    rows = read_rows(folder / "venue" / "taq_quotes_12venues_20180102_03.parquet")
    prints = read_rows(folder / "venue" / "taq_trades_20180102_03.parquet")
    for one in (rows, prints):
        venue = one["exchange"].astype(str)
        one["venue"] = np.where(venue == "Q", "T", venue)
    quotes = {name: rows[name] for name in ("ts", "venue", "bid", "ask")}
    quotes |= {name: 100.0 * rows[name].astype(float) for name in ("bid_size", "ask_size")}
    kept = prints["corr"] == 0
    return quotes, {name: prints[name][kept] for name in ("ts", "venue", "price", "size")}


def _session(symbol: str, day: date, quotes: dict[str, Any], trades: dict[str, Any]) -> MarketDay | None:
    open_ns, close_ns = (
        to_ns(datetime.combine(day, at, _NEW_YORK).astimezone(UTC)) for at in (_OPEN, _CLOSE)
    )
    quotes, trades = (_within(one, open_ns, close_ns) for one in (quotes, trades))
    names, counts = np.unique(quotes["venue"], return_counts=True)
    venues = tuple(
        name for name, num in zip(names.tolist(), counts.tolist(), strict=True) if num >= MIN_QUOTES
    )
    if not venues:
        return None
    quoted = dict(zip(names.tolist(), counts.tolist(), strict=True))
    thinned = [
        one for one in venues if quoted[one] < MIN_QUOTES_A_TRADE * int((trades["venue"] == one).sum())
    ]
    cleaner = _Cleaner(symbol, frozenset(thinned))
    order = np.lexsort((
        np.concatenate((np.ones(len(quotes["ts"])), np.zeros(len(trades["ts"])))),
        np.concatenate((quotes["at"], trades["at"])),
    ))  # of one instant trades come first: the quote after a trade shows what it left  # fmt: skip
    num = len(quotes["ts"])
    columns = [quotes[name].tolist() for name in ("at", "venue", "bid", "bid_size", "ask", "ask_size")]
    prints = [trades[name].tolist() for name in ("at", "venue", "price", "size")]
    for place in order.tolist():
        if place < num:
            at, venue, bid, bid_size, ask, ask_size = (column[place] for column in columns)
            if venue in venues:
                cleaner.quote(at, venue, bid, bid_size, ask, ask_size)
        else:
            at, venue, price, size = (column[place - num] for column in prints)
            cleaner.trade(at, venue, float(price), float(size))
    steps = np.array(cleaner.steps, np.int64)
    if not len(steps):
        return None
    return MarketDay(
        symbol, day, open_ns, close_ns, venues, cleaner.items,
        np.array([one.available_at_ns for one in cleaner.items], np.int64), steps[:, 0], steps[:, 1], steps[:, 2],
    )  # fmt: skip


def _within(rows: dict[str, Any], open_ns: int, close_ns: int) -> dict[str, Any]:
    at = rows["ts"].astype("datetime64[us]").astype(np.int64) * 1000
    kept = (at >= open_ns) & (at < close_ns)
    return {name: column[kept] for name, column in rows.items()} | {"at": at[kept]}


@dataclass(slots=True)
class _Side:
    """One side of a venue's newest quote, and whether it counts; 0 ticks: nothing is displayed."""

    ticks: int = 0
    size: float = 0.0
    at_ns: int = 0
    is_hidden: bool = False

    @property
    def shown(self) -> int:
        return 0 if self.is_hidden else self.ticks


@dataclass(slots=True)
class _Cleaner:
    """Makes items of rows: a side that a newer quote elsewhere locks or crosses, or that is too old, does not count."""

    symbol: str
    thinned: frozenset[str]
    items: list[Quote | Trade] = field(default_factory=list[Quote | Trade])
    steps: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    bids: dict[str, _Side] = field(default_factory=dict[str, _Side])
    asks: dict[str, _Side] = field(default_factory=dict[str, _Side])

    def quote(self, at: int, venue: str, bid: float, bid_size: float, ask: float, ask_size: float) -> None:
        is_moved = False
        for sides, sign, price, size in ((self.bids, 1, bid, bid_size), (self.asks, -1, ask, ask_size)):
            if price == price:  # NaN: the row does not state that side
                is_moved |= self._take(sides, sign, venue, at, price, size)
        if is_moved or self.thinned:
            self._hide(at)
            self._step(at)

    def trade(self, at: int, venue: str, price: float, size: float) -> None:
        if not self.steps or size <= 0:
            return
        middle = (self.steps[-1][1] + self.steps[-1][2]) * TICK / 2
        if abs(price - middle) <= _MAX_OFF * middle:
            self.items.append(Trade(at, at, "eval", 0, self.symbol, price, size, venue))

    def _take(
        self, sides: dict[str, _Side], sign: int, venue: str, at: int, price: float, size: float
    ) -> bool:
        """A new side of a quote; whether its price is another."""
        side = sides.setdefault(venue, _Side())
        ticks = round(price / TICK) if price > 0 and size > 0 else 0
        is_moved = ticks != side.ticks or side.is_hidden
        side.ticks, side.size, side.at_ns, side.is_hidden = ticks, size, at, False
        self._write(side, sign, venue, at)
        return is_moved

    def _hide(self, at: int) -> None:
        for own, other, sign in ((self.bids, self.asks, 1), (self.asks, self.bids, -1)):
            displayed = [sign * one.ticks for one in other.values() if one.ticks]
            opposite = sign * min(displayed, default=_NOWHERE)  # what is not beyond it crosses nothing
            for venue, side in own.items():
                if not side.ticks:
                    continue
                is_old = at - side.at_ns > (THINNED_AGE_NS if venue in self.thinned else MAX_AGE_NS)
                hidden = is_old or (
                    sign * (side.ticks - opposite) >= 0
                    and any(
                        one.ticks and one.at_ns > side.at_ns and sign * (side.ticks - one.ticks) >= 0
                        for name, one in other.items()
                        if name != venue
                    )
                )
                if hidden != side.is_hidden:
                    side.is_hidden = hidden
                    self._write(side, sign, venue, at)

    def _write(self, side: _Side, sign: int, venue: str, at: int) -> None:
        price = side.shown * TICK
        size = side.size if price else 0.0
        sides = (price, size, None, None) if sign > 0 else (None, None, price, size)
        self.items.append(Quote(at, at, "eval", 0, self.symbol, *sides, venue))

    def _step(self, at: int) -> None:
        bid = max((one.shown for one in self.bids.values() if one.shown), default=0)
        ask = min((one.shown for one in self.asks.values() if one.shown), default=0)
        if bid and ask and bid < ask and (not self.steps or self.steps[-1][1:] != (bid, ask)):
            self.steps.append((at, bid, ask))


def _merged(before: Quote, after: Quote) -> Quote:
    return Quote(
        after.available_at_ns, after.event_time_ns, "eval", 0, after.symbol,
        before.bid if after.bid is None else after.bid,
        before.bid_size if after.bid is None else after.bid_size,
        before.ask if after.ask is None else after.ask,
        before.ask_size if after.ask is None else after.ask_size, after.venue,
    )  # fmt: skip
