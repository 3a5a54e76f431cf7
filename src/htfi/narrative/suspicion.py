"""Tracks whether manipulation is suspected: of a symbol, by a source, market-wide.

Incidents add up and decay. Above a threshold SECURE is on, until a cool-down passes without further incidents or a
named person ends it. Suspicion changes nothing else: numbers are forecast as before, and news is read by the target
alone.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from htfi.domain import portable_math as exact
from htfi.domain.events import SuspicionReset
from htfi.domain.time import format_ns
from htfi.narrative.config import (
    CALM_BELOW,
    EXTREME_DIVERGENCE,
    FINDING_WEIGHT,
    GRAVE_FINDING_WEIGHT,
    GRAVE_RULES,
    LOW_TRUST,
    MAX_SCOPES,
    MIN_SHARE_FOR_ALL,
    SHARE_FOR_ALL,
    SUSPICION_HALF_LIFE_NS,
    SuspicionConfig,
)
from htfi.narrative.sanitising.incidents import ScreeningIncident
from htfi.narrative.text import clean

DIVERGENCE = "divergence"  # the rule of the incident that `divergence_incident` finds
_SYMBOL, _SOURCE = "symbol", "source"
_THOUSANDTHS = 1_000  # thousandths
_MAX_RECENT_ITEMS = 1 << 40
_MAX_RULES = 8  # listed for one scope
_MAX_THRESHOLDS = 4  # thresholds: however many incidents there were, they decay in bounded time
_STEPS = 1_024  # of a half-life
_DECAY: list[float] = exact.exp(-0.6931471805599453 / _STEPS * np.arange(_STEPS, dtype=np.float64)).tolist()
_MAX_NAME_CHARS = 40
_MAX_REASON_CHARS = 120
_MAX_RESETS = 256  # resets by people that are remembered


class SuspicionLevel(msgspec.Struct, frozen=True):
    """How far one scope is suspected: incidents in thousandths as of `at_ns`, and when incidents last counted.

    `since_ns` is when SECURE began, 0 while it is off. `rules` count the incidents that led there, `source` brought
    the last.
    """

    trouble: int = 0
    at_ns: int = 0
    last_ns: int = 0
    since_ns: int = 0
    rules: tuple[tuple[str, int], ...] = ()
    source: str = ""


_CALM = SuspicionLevel()


def decay_level(level: SuspicionLevel, now_ns: int, config: SuspicionConfig) -> SuspicionLevel:
    """The level at an instant, decayed; calm once nothing is left."""
    left = _faded(level, now_ns)
    cooled = now_ns - level.last_ns >= config.cool_down_ns
    if level.since_ns and not (cooled and left < CALM_BELOW):
        return level
    return msgspec.structs.replace(level, since_ns=0) if left else _CALM


def add_incident(
    level: SuspicionLevel,
    trouble: ScreeningIncident,
    weight: int,
    now_ns: int,
    on_at: int,
    config: SuspicionConfig,
) -> SuspicionLevel:
    """The level after one more incident of this weight in thousandths."""
    before = decay_level(level, now_ns, config)
    total = min(_faded(before, now_ns) + weight, _MAX_THRESHOLDS * on_at)
    now_ns = max(now_ns, before.at_ns, 1)
    return SuspicionLevel(
        trouble=total,
        at_ns=now_ns,
        last_ns=now_ns if total >= CALM_BELOW else before.last_ns,
        since_ns=before.since_ns or (now_ns if total >= on_at else 0),
        rules=_counted(before.rules, trouble.rule),
        source=trouble.source,
    )


class SuspicionMonitor:
    """Suspicion per symbol, per source and market-wide, in bounded number. `now_ns` never falls."""

    def __init__(self, config: SuspicionConfig | None = None) -> None:
        self._config = config or SuspicionConfig()
        self._levels: OrderedDict[tuple[str, str], SuspicionLevel] = (
            OrderedDict()
        )  # longest without an incident first
        self._all = _CALM
        self._recent_items = _CALM  # items, counted and decaying as incidents do
        self._items_observed: OrderedDict[str, tuple[str, ...]] = (
            OrderedDict()
        )  # symbol → items of its last divergent view
        self._resets: OrderedDict[str, SuspicionReset] = OrderedDict()  # by symbol

    @property
    def config(self) -> SuspicionConfig:
        return self._config

    def observe(self, troubles: Iterable[ScreeningIncident], now_ns: int, num_items: int = 1) -> None:
        """Take in so many items with the incidents that they caused. An incident without a symbol concerns the whole
        market.
        """
        config = self._config
        if num_items:
            num_recent = _faded(self._recent_items, now_ns) + _THOUSANDTHS * num_items
            self._recent_items = SuspicionLevel(
                min(num_recent, _MAX_RECENT_ITEMS), max(now_ns, self._recent_items.at_ns)
            )
        for trouble in troubles:
            weight = GRAVE_FINDING_WEIGHT if trouble.rule.startswith(GRAVE_RULES) else FINDING_WEIGHT
            for symbol in dict.fromkeys(trouble.symbols):
                self._raise_level((_SYMBOL, symbol), trouble, weight, now_ns)
            self._raise_level((_SOURCE, trouble.source), trouble, weight, now_ns)
            for_all = round(weight * SHARE_FOR_ALL) if trouble.symbols else weight
            if for_all:
                on_at = max(config.market_threshold, round(MIN_SHARE_FOR_ALL * self._recent_items.trouble))
                self._all = add_incident(self._all, trouble, for_all, now_ns, on_at, config)

    def observe_once(self, trouble: ScreeningIncident, names: Sequence[str], now_ns: int) -> None:
        """Take in the incident of a view that rests on these items, once for as long as it rests on them."""
        symbol, item_ids = "".join(trouble.symbols), tuple(names)
        if self._items_observed.get(symbol) == item_ids:
            return
        self._items_observed[symbol] = item_ids
        self._items_observed.move_to_end(symbol)
        if len(self._items_observed) > MAX_SCOPES:
            self._items_observed.popitem(last=False)
        self.observe([trouble], now_ns, num_items=0)

    def _raise_level(
        self, scope: tuple[str, str], trouble: ScreeningIncident, weight: int, now_ns: int
    ) -> None:
        level = self._levels.get(scope, _CALM)
        self._levels[scope] = add_incident(
            level, trouble, weight, now_ns, self._config.symbol_threshold, self._config
        )
        self._levels.move_to_end(scope)
        if len(self._levels) > MAX_SCOPES:
            self._levels.popitem(last=False)

    @property
    def is_calm(self) -> bool:
        """Whether no incident is remembered."""
        return not self._levels and self._all == _CALM

    def suspicion(self, symbol: str, now_ns: int) -> str:
        """Why SECURE is on for a symbol, in words; empty while it is off."""
        own = self._description((_SYMBOL, symbol), now_ns)
        return own or _describe("all news", decay_level(self._all, now_ns, self._config))

    def active_suspicions(self, now_ns: int) -> list[str]:
        """Every active suspicion in words, the market-wide one first, then by name."""
        found = [_describe("all news", decay_level(self._all, now_ns, self._config))]
        found += [self._description(scope, now_ns) for scope in sorted(self._levels)]
        return [words for words in found if words]

    def _description(self, scope: tuple[str, str], now_ns: int) -> str:
        level = self._levels.get(scope)
        if level is None:
            return ""
        kind, name = scope
        return _describe(f"{kind} {clean(name, _MAX_NAME_CHARS)}", decay_level(level, now_ns, self._config))

    def reset(self, cleared: SuspicionReset) -> list[str]:
        """End suspicion on a person's word; the suspicions that it ended, in words.

        A symbol's reset leaves other symbols, sources and the market-wide level as they are: the symbol stays suspected
        while the market is. Without a symbol everything is reset. Later incidents count again.
        """
        now_ns, symbol = cleared.available_at_ns, cleared.symbol
        ended = self.active_suspicions(now_ns)
        self._resets[symbol] = cleared
        self._resets.move_to_end(symbol)
        if len(self._resets) > _MAX_RESETS:
            self._resets.popitem(last=False)
        if not symbol:
            self._levels.clear()
            self._all = _CALM
            return ended
        scope = (_SYMBOL, symbol)
        words = self._description(scope, now_ns)
        self._levels.pop(scope, None)
        return [words] if words else []

    def recent_reset(self, symbol: str, now_ns: int) -> str:
        """Who ended suspicion within the last cool-down, of a symbol or of everything, and why; empty if none did."""
        resets = [one for name in ("", symbol) if (one := self._resets.get(name)) is not None]
        newest = max(resets, key=lambda one: one.available_at_ns, default=None)
        if newest is None or now_ns - newest.available_at_ns >= self._config.cool_down_ns:
            return ""
        whom = f"symbol {clean(symbol, _MAX_NAME_CHARS)}" if newest.symbol else "everything"
        by, why = clean(newest.by, _MAX_REASON_CHARS), clean(newest.why, _MAX_REASON_CHARS)
        return f"{whom} cleared at {format_ns(newest.available_at_ns)} by {by}: {why}"

    def state(self) -> dict[str, Any]:
        return {
            "all": msgspec.to_builtins(self._all),
            "heard": msgspec.to_builtins(self._recent_items),
            "levels": [[*scope, msgspec.to_builtins(level)] for scope, level in self._levels.items()],
            "words_of": [msgspec.to_builtins(one) for one in self._resets.values()],
            "told_of": [[symbol, *names] for symbol, names in self._items_observed.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._all = msgspec.convert(state["all"], SuspicionLevel)
        self._recent_items = msgspec.convert(state["heard"], SuspicionLevel)
        self._levels = OrderedDict(
            ((kind, name), msgspec.convert(level, SuspicionLevel)) for kind, name, level in state["levels"]
        )
        words = [msgspec.convert(one, SuspicionReset) for one in state["words_of"]]
        self._resets = OrderedDict((one.symbol, one) for one in words)
        self._items_observed = OrderedDict((symbol, tuple(names)) for symbol, *names in state["told_of"])


def divergence_incident(
    symbol: str, now_ns: int, rank: float, sources: Sequence[tuple[str, float, float]]
) -> ScreeningIncident | None:
    """The incident of a view that diverges further than almost all before it and rests mostly on items of little trust.

    `rank` 0–1 is the calibrated divergence, `sources` the (source, trust 0–1, weight) of what the view rests on.
    """
    total = sum(weight for _, _, weight in sources)
    low = [(weight, source) for source, trust, weight in sources if trust < LOW_TRUST]
    if rank < EXTREME_DIVERGENCE or not low or 2.0 * sum(weight for weight, _ in low) < total:
        return None
    loudest = max(low, key=lambda one: one[0])[1]
    return ScreeningIncident(loudest, (symbol,), DIVERGENCE, now_ns)


def _faded(level: SuspicionLevel, now_ns: int) -> int:
    """What is left of its incidents, in whole thousandths; it decays by the steps of one clock, however often it is
    asked.
    """
    if not level.trouble or now_ns <= level.at_ns:
        return level.trouble
    step_ns = max(SUSPICION_HALF_LIFE_NS // _STEPS, 1)
    halves, steps = divmod(now_ns // step_ns - level.at_ns // step_ns, _STEPS)
    return int(level.trouble * _DECAY[steps]) >> min(halves, 64)


def _counted(rules: tuple[tuple[str, int], ...], rule: str) -> tuple[tuple[str, int], ...]:
    counts = dict(rules)
    if rule in counts or len(counts) < _MAX_RULES:
        counts[rule] = counts.get(rule, 0) + 1
    return tuple(counts.items())


def _describe(whom: str, level: SuspicionLevel) -> str:
    if not level.since_ns:
        return ""
    rules = ", ".join(f"{clean(rule, _MAX_NAME_CHARS)} {count}" for rule, count in level.rules)
    source = clean(level.source, _MAX_NAME_CHARS) or "a source without a name"
    return f"{whom} suspected since {format_ns(level.since_ns)}: {rules}; last from {source}"
