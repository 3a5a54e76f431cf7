"""Finds coordinated posting: many voices without credit with similar items on a symbol within minutes, or one that
repeats itself, against what is usual for the symbol.
"""

from collections import OrderedDict, deque
from typing import Any, NamedTuple

import msgspec

from htfi.domain.news import ScreeningFinding
from htfi.narrative.sanitising.config import (
    BURST_NS,
    BURST_REPEATS,
    BURST_VOICES,
    MAX_ITEMS,
    MAX_SYMBOLS,
    SanitiserConfig,
)
from htfi.narrative.sanitising.duplicates import jaccard_estimates
from htfi.narrative.sanitising.sources import NS_PER_HOUR, decayed

BURST_RULE = "burst"
_MAX_ITEMS_PER_SYMBOL = 48  # items remembered of a symbol
_MAX_COMPARED = 24
_MIN_SIMILARITY = 0.45
_MIN_REPEAT_SIMILARITY = 0.5
_MIN_ONE_SIDED_SHARE = 0.85
_MIN_ONE_SIDED_VOICES = 6
_HOURLY_DECAY = 0.9942404238  # an hour: half in 5 days
_MAX_SYMBOLS_PER_ITEM = 4  # of an item
_MIN_FLOOD_SYMBOLS = 24  # of one voice's posts within minutes
_MAX_VOICES = 4_096


class BurstItem(msgspec.Struct, frozen=True, gc=False):
    """An item as the burst check stores it. `is_low_credit`: its voice has no credit."""

    id: str
    at_ns: int
    voice: str
    is_low_credit: bool
    side: int
    signature: bytes
    names: tuple[str, ...] = ()


class BurstResult(NamedTuple):
    """The `finding`, if any; `members` are the ids of passed items that belong to the burst."""

    finding: ScreeningFinding | None
    members: tuple[str, ...] = ()


class _SymbolActivity(msgspec.Struct):
    items: deque[tuple[int, BurstItem]]  # with its number, at most _MAX_ITEMS_PER_SYMBOL
    usual: float = 0.0  # items, decaying
    hour: int = 0


_NO_BURST = BurstResult(None)


class BurstDetector:
    """Items on each symbol within minutes, in bounded memory."""

    def __init__(self, config: SanitiserConfig) -> None:
        self._config = config
        self._shelves: OrderedDict[str, _SymbolActivity] = OrderedDict()
        self._posted: OrderedDict[str, deque[tuple[int, str]]] = OrderedDict()  # (when, symbol), by voice
        self._order: OrderedDict[int, str] = (
            OrderedDict()
        )  # symbols of all stored items, by number, oldest first
        self._next = 0

    def judge_cashtag_flood(
        self, voice: str, symbols: tuple[str, ...], now_ns: int
    ) -> ScreeningFinding | None:
        """A finding if a voice without credit posts on many symbols within minutes."""
        posted = self._posted.setdefault(voice, deque(maxlen=4 * _MIN_FLOOD_SYMBOLS))
        self._posted.move_to_end(voice)
        posted.extend((now_ns, symbol) for symbol in symbols)
        oldest_ns = now_ns - BURST_NS
        while posted and posted[0][0] < oldest_ns:
            posted.popleft()
        while len(self._posted) > 1:
            last = next(iter(self._posted.values()))
            if last and last[-1][0] >= oldest_ns and len(self._posted) <= _MAX_VOICES:
                break
            self._posted.popitem(last=False)
        num = len({symbol for _, symbol in posted})
        if num < _MIN_FLOOD_SYMBOLS:
            return None
        return ScreeningFinding("cashtags", 0.6, f"the same voice posts on {num} tickers within minutes")

    def observe(self, item: BurstItem, symbols: tuple[str, ...]) -> BurstResult:
        """Judge and store an item on these symbols; without any, on the whole market."""
        worst = _NO_BURST
        self._expire(item.at_ns)
        for symbol in symbols[:_MAX_SYMBOLS_PER_ITEM] or ("",):
            shelf = self._activity(symbol, item.at_ns)
            if item.is_low_credit and shelf.items:
                found = self._judge(item, shelf, symbol)
                if found.finding and (
                    worst.finding is None or found.finding.strength > worst.finding.strength
                ):
                    worst = found
            self._add(shelf, symbol, item)
            shelf.usual += 1.0
        return worst

    def _add(self, shelf: "_SymbolActivity", symbol: str, item: BurstItem) -> None:
        if len(shelf.items) >= _MAX_ITEMS_PER_SYMBOL:
            del self._order[shelf.items.popleft()[0]]
        shelf.items.append((self._next, item))
        self._order[self._next] = symbol
        self._next += 1

    def _expire(self, now_ns: int) -> None:
        """Remove items from before the last minutes, on any symbol, and what exceeds `max_items`."""
        oldest_ns = now_ns - BURST_NS
        while self._order:
            items = self._shelves[next(iter(self._order.values()))].items
            if items[0][1].at_ns >= oldest_ns and len(self._order) < MAX_ITEMS:
                return
            items.popleft()
            self._order.popitem(last=False)

    def _judge(self, item: BurstItem, shelf: _SymbolActivity, symbol: str) -> BurstResult:
        alike: list[BurstItem] = []
        repeated: list[BurstItem] = []
        compared = [one for _, one in list(shelf.items)[-_MAX_COMPARED:]]
        shares = jaccard_estimates(item.signature, [one.signature for one in compared])
        if max(shares) < _MIN_SIMILARITY:
            return self._one_sided(item, shelf, symbol)
        for one, found in zip(compared, shares, strict=True):
            if found < _MIN_SIMILARITY:
                continue
            alike.append(one)
            # A feed that writes by a pattern fills in other names, or other figures market-wide.
            if (
                one.voice == item.voice
                and found >= _MIN_REPEAT_SIMILARITY
                and not _name_different_parties(one.names, item.names)
            ):
                repeated.append(one)
        if alike and all(
            one.is_low_credit for one in alike
        ):  # what a voice with credit reports too is being passed on
            voices = {one.voice for one in alike} | {item.voice}
            if (more := len(voices) - BURST_VOICES) >= 0:
                detail = f"{len(voices)} voices without credit post similar items within minutes"
                return _burst(BURST_RULE, 0.5 + 0.1 * more, detail, alike)
            if (more := len(repeated) + 1 - BURST_REPEATS) >= 0:
                detail = (
                    f"the same voice repeats it for the {_ordinal(len(repeated) + 1)} time within minutes"
                )
                return _burst("repetition", min(0.5 + 0.05 * more, 0.6), detail, [])
        return self._one_sided(item, shelf, symbol)

    def _one_sided(self, item: BurstItem, shelf: _SymbolActivity, symbol: str) -> BurstResult:
        if not item.side or not symbol or len(shelf.items) + 1 < _MIN_ONE_SIDED_VOICES:
            return _NO_BURST
        sided = [one for _, one in shelf.items if one.side]
        if len(sided) + 1 < _MIN_ONE_SIDED_VOICES:
            return _NO_BURST
        with_it = [one for one in sided if one.side == item.side]
        voices = {one.voice for one in with_it} | {item.voice}
        usual = shelf.usual * (1.0 - _HOURLY_DECAY) * BURST_NS / NS_PER_HOUR
        if (
            len(voices) < _MIN_ONE_SIDED_VOICES
            or not all(one.is_low_credit for one in with_it)
            or len(with_it) < _MIN_ONE_SIDED_SHARE * len(sided)
            or len(sided) + 1 < 4.0 * usual + 3.0
        ):
            return _NO_BURST
        detail = f"{len(voices)} voices without credit push in one direction within minutes"
        return _burst(BURST_RULE, 0.5 + 0.07 * (len(voices) - _MIN_ONE_SIDED_VOICES), detail, with_it)

    def _activity(self, symbol: str, now_ns: int) -> _SymbolActivity:
        shelf = self._shelves.get(symbol)
        hour = now_ns // NS_PER_HOUR
        if shelf is None:
            shelf = self._shelves[symbol] = _SymbolActivity(deque(), 0.0, hour)
            if len(self._shelves) > MAX_SYMBOLS:
                _, gone = self._shelves.popitem(last=False)
                for number, _ in gone.items:
                    del self._order[number]
            return shelf
        self._shelves.move_to_end(symbol)
        shelf.usual *= decayed(_HOURLY_DECAY, hour - shelf.hour)
        shelf.hour = max(hour, shelf.hour)
        return shelf

    def state(self) -> dict[str, Any]:
        return {
            "shelves": [
                [
                    symbol,
                    shelf.usual,
                    shelf.hour,
                    [[number, *msgspec.structs.astuple(one)] for number, one in shelf.items],
                ]
                for symbol, shelf in self._shelves.items()
            ],
            "posted": [[voice, [list(one) for one in posted]] for voice, posted in self._posted.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._shelves = OrderedDict(
            (
                symbol,
                _SymbolActivity(deque((number, _burst_item(one)) for number, *one in items), usual, hour),
            )
            for symbol, usual, hour, items in state["shelves"]
        )
        self._posted = OrderedDict(
            (voice, deque([(at_ns, symbol) for at_ns, symbol in posted], maxlen=4 * _MIN_FLOOD_SYMBOLS))
            for voice, posted in state["posted"]
        )
        of = {number: symbol for symbol, shelf in self._shelves.items() for number, _ in shelf.items}
        self._order = OrderedDict(sorted(of.items()))
        self._next = max(self._order, default=-1) + 1


def _burst_item(items: list[Any]) -> BurstItem:
    name, at_ns, voice, low, side, signed, names = items
    return BurstItem(name, at_ns, voice, low, side, signed, tuple(names))


def _burst(rule: str, strength: float, detail: str, members: list[BurstItem]) -> BurstResult:
    return BurstResult(
        ScreeningFinding(rule, round(min(strength, 0.9), 3), detail), tuple(one.id for one in members)
    )


def _name_different_parties(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether each names a party that the other does not."""
    return bool(set(one) - set(other) and set(other) - set(one))


def _ordinal(number: int) -> str:
    return f"{number}th" if number > 3 else {2: "2nd", 3: "3rd"}[number]
