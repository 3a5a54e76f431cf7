"""Settings of the market room, with their units and checks. wiring composes them; Market is built from them."""

import re
from dataclasses import dataclass
from enum import IntEnum

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration


class ClockKind(IntEnum):
    """What a bar counts."""

    TIME = 0
    VOLUME = 1
    DOLLAR = 2


@dataclass(frozen=True, slots=True)
class BarClock:
    """When a bar ends: after `size` nanoseconds, units traded, or currency traded."""

    interval: str
    kind: ClockKind
    size: float


@dataclass(frozen=True, slots=True)
class MarketConfig:
    """How ticks become bars and features.

    `bar`: one clock or several, separated by commas: '60s', 'volume:5000', 'dollar:1000000'.
    `scales`: steps of the sampled price, whose last `window` returns make realised variance and its kin.
    `base_scale`: the one of them on which jumps are tested and the regime of ticks is judged.
    `session_gap`: silence of a symbol that ends its session; no return spans it.
    `quote_stale`: age from which a mid no longer stands for the price, and trades do.
    `cross_patience`: age from which a quote that crosses a newer one is taken for stale.
    `max_spread_fraction`: a spread wider than this share of the mid is no price, but a stub.
    """

    bar: str = "60s"
    scales: tuple[str, ...] = ("1s", "10s", "60s", "300s")
    base_scale: str = "10s"
    window: int = 120
    session_gap: str = "4h"
    quote_stale: str = "5m"
    cross_patience: str = "1s"
    max_spread_fraction: float = 0.05
    ofi_half_life: str = "10s"
    max_venues: int = 64

    def __post_init__(self) -> None:
        parse_clocks(self.bar)
        for text in (self.session_gap, self.quote_stale, self.cross_patience, self.ofi_half_life):
            parse_duration(text)
        if not self.scales or len({parse_duration(text) for text in self.scales}) != len(self.scales):
            raise InvalidInput("market.scales must name at least one duration, each once, such as 1s and 60s")
        if self.base_scale not in self.scales:
            raise InvalidInput(
                f"market.base_scale '{self.base_scale}' is not among scales: {', '.join(self.scales)}"
            )
        if not 4 <= self.window <= 100_000:
            raise InvalidInput(f"market.window must be 4 to 100000 returns, not {self.window}")
        if not 0.0 < self.max_spread_fraction <= 1.0:
            raise InvalidInput(
                f"market.max_spread_fraction must be above 0 and at most 1, not {self.max_spread_fraction}"
            )
        if not 1 <= self.max_venues <= 4096:
            raise InvalidInput(f"market.max_venues must be 1 to 4096, not {self.max_venues}")

    @property
    def clocks(self) -> tuple[BarClock, ...]:
        return parse_clocks(self.bar)


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
        return BarClock(interval, ClockKind.TIME, parse_duration(interval))
    size = float(match[2])
    if size <= 0.0:
        raise InvalidInput(f"bar clock '{interval}' needs an amount above 0")
    return BarClock(interval, ClockKind.VOLUME if match[1] == "volume" else ClockKind.DOLLAR, size)


def is_intraday(interval: str) -> bool:
    """Whether bars of this clock end within a day, so that a night between two of them is a gap."""
    try:
        clock = parse_clock(interval)
    except InvalidInput:
        return False  # a fed series may carry a name of its own; nothing is known of its nights
    return clock.kind is not ClockKind.TIME or clock.size < NS_PER_DAY
