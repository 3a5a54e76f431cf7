"""Settings of the market state, with their units and checks. `MarketState` is built from them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.events import MAX_SIZE, is_size
from htfi.domain.settings import PositiveShare, check_bounds, setting, setting_from
from htfi.domain.time import NS_PER_DAY, NS_PER_MS, parse_duration


class ClockKind(IntEnum):
    """What a bar counts."""

    TIME = 0
    VOLUME = 1
    DOLLAR = 2


SplitRatio = Annotated[float, Meta(ge=1e-4, le=1e4)]

CROSS_PATIENCE = "1s"  # age from which a quote that crosses a newer one is ignored


@dataclass(frozen=True, slots=True)
class BarClock:
    """When a bar ends: after `size` nanoseconds, units traded, or currency traded."""

    interval: str
    kind: ClockKind
    size: float


@dataclass(frozen=True, slots=True)
class MarketConfig:
    """How ticks become bars and features."""

    bar: str = setting(
        "60s", "when a bar ends: 60s, volume:5000 or dollar:1000000; several separated by commas"
    )
    scales: Annotated[tuple[str, ...], Meta(min_length=1, max_length=16)] = setting(
        ("1s", "10s", "60s", "300s"),
        "time steps of the sampled price for realised variance and its relatives",
    )
    base_scale: str = setting("10s", "the scale used to test for jumps and to judge the regime")
    window: Annotated[int, Meta(ge=4, le=100_000)] = setting(
        120, "returns of each scale that are used", "returns"
    )
    session_gap: str = setting("4h", "silence of a symbol that ends its session; no return spans it")
    quote_stale: str = setting("5m", "age from which a quote no longer stands for the price")
    max_spread_fraction: PositiveShare = setting(
        0.05, "a spread wider than this share of the mid price is ignored", "share of the mid price"
    )
    ofi_half_life: str = setting("10s", "half-life of the order flow imbalance")
    max_venues: Annotated[int, Meta(ge=1, le=4096)] = setting(
        64, "venues whose quotes are tracked for one symbol", "venues"
    )
    renames: dict[str, str] = setting_from(
        dict[str, str], "later name of a symbol, whose rows then count as that series, such as FB to META"
    )
    splits: dict[str, dict[str, SplitRatio]] = setting_from(
        dict[str, dict[str, SplitRatio]],
        "by symbol and day from which its prices are smaller: the ratio that earlier prices are divided by",
    )

    def __post_init__(self) -> None:
        check_bounds("market", self)
        parse_clocks(self.bar)
        spans = (self.session_gap, self.quote_stale, self.ofi_half_life)
        for text in (*spans, *self.scales):
            _check_span(text)
        if len({parse_duration(text) for text in self.scales}) != len(self.scales):
            raise InvalidInput("market.scales must name each duration once, such as 1s and 60s")
        if self.base_scale not in self.scales:
            raise InvalidInput(
                f"market.base_scale '{self.base_scale}' is not among scales: {', '.join(self.scales)}"
            )
        _check_renames(self.renames)
        for symbol, ratios in self.splits.items():
            _check_splits(symbol, ratios, self.renames)

    @property
    def clocks(self) -> tuple[BarClock, ...]:
        return parse_clocks(self.bar)


def _check_renames(renames: Mapping[str, str]) -> None:
    for old, new in renames.items():
        if not old or not new:
            raise InvalidInput('market.renames: a name is empty: write {"FB" = "META"}')
        seen = [old]
        while new in renames and new not in seen:
            seen.append(new)
            new = renames[new]
        if new in seen:
            raise InvalidInput(f"market.renames: {' to '.join([*seen, new])} ends nowhere: leave one out")


def _check_splits(symbol: str, ratios: Mapping[str, float], renames: Mapping[str, str]) -> None:
    if symbol in renames:
        raise InvalidInput(
            f"market.splits: {symbol} is renamed to {renames[symbol]}: state its splits under the newest name"
        )
    for day in ratios:
        try:
            known = date.fromisoformat(day).isoformat()
        except ValueError:
            known = ""
        if known != day or not "1970-01-02" <= day <= "2099-12-31":
            raise InvalidInput(
                f"market.splits.{symbol}: '{day}' is no day such as 2014-06-09, from 1970-01-02 to 2099-12-31"
            )


def _check_span(text: str) -> None:
    if not NS_PER_MS <= parse_duration(text) <= 366 * NS_PER_DAY:
        raise InvalidInput(f"market: a span of '{text}' must be between 1ms and 366d")


def parse_clocks(text: str) -> tuple[BarClock, ...]:
    """The clocks of a list such as '60s,volume:5000'. Raises: InvalidInput."""
    clocks = tuple(parse_clock(part.strip()) for part in text.split(","))
    if len({clock.interval for clock in clocks}) != len(clocks):
        raise InvalidInput(f"bar clock '{text}' names a clock twice")
    return clocks


def parse_clock(interval: str) -> BarClock:
    """The clock that `interval` names. Raises: InvalidInput."""
    match = re.fullmatch(r"(volume|dollar):(\d+(?:\.\d+)?)", interval)
    if match is None:
        if interval.startswith(("volume", "dollar")):
            raise InvalidInput(f"bar clock '{interval}' needs an amount: write volume:5000 or dollar:1000000")
        _check_span(interval)
        return BarClock(interval, ClockKind.TIME, parse_duration(interval))
    size = float(match[2])
    if not is_size(size) or size == 0.0:
        raise InvalidInput(f"bar clock '{interval}' needs an amount above 0 and at most {MAX_SIZE:g}")
    return BarClock(interval, ClockKind.VOLUME if match[1] == "volume" else ClockKind.DOLLAR, size)


def is_intraday(interval: str) -> bool:
    """Whether bars of this clock end within a day, so that a night between two of them is a gap."""
    try:
        clock = parse_clock(interval)
    except InvalidInput:
        return False  # a fed series may carry a name of its own; nothing is known of its nights
    return clock.kind is not ClockKind.TIME or clock.size < NS_PER_DAY
