"""Settings of the narrative package: how long headlines count, what an item must be worth, what turns the secure mode
on.
"""

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Bars, Count, InnerShare, Share, SpanNs, check_bounds
from htfi.domain.time import NS_PER_DAY


@dataclass(frozen=True, slots=True)
class NarrativeConfig:
    """Limits of the news that is held and of the rationale.

    A headline's weight halves every `half_life_ns`; below `min_weight` it is forgotten. The usual size of a feature is
    averaged with a half-life of `usual_half_life_bars` and used after `usual_min_bars`. A deep reading is `deep_paths`
    answers sampled at `deep_temperature`.
    """

    half_life_ns: SpanNs = NS_PER_DAY
    min_weight: InnerShare = 0.125
    max_items_per_symbol: Annotated[int, Meta(ge=1, le=10_000)] = 32
    max_symbols: Count = 4096
    max_headline_chars: Annotated[int, Meta(ge=1, le=10_000)] = 160
    max_body_chars: Annotated[int, Meta(ge=1, le=1_000_000)] = (
        8_000  # in old ledgers' settings; bodies are not held
    )
    max_cited: Annotated[int, Meta(ge=0, le=3)] = 2
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = (
        0.0  # of a reading model: 0 takes the likeliest words
    )
    deep_paths: Annotated[int, Meta(ge=1, le=256)] = 16
    deep_temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    usual_half_life_bars: Bars = 60.0
    usual_min_bars: Count = 20
    names: dict[str, str] = field(default_factory=dict[str, str])  # names of symbols in the news
    calendar: str = ""  # a file of scheduled announcements, TOML or CSV

    def __post_init__(self) -> None:
        check_bounds("narrative", self)


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """Shares run 0–1; an item's value is relevance · novelty · (½ + ½ position).

    An item with symbols, or one that names one of the run's, has a relevance of at least `tagged_relevance`. Below
    `draft_worth` the encoder alone reads it, below `target_worth` the draft model; from `frontier_worth` on a frontier
    model is asked after the release, if one is wired. Each such reading is charged `frontier_cents`, as long as
    `frontier_budget_cents` of the run last. `positions` are the shares at stake, by symbol; other symbols have
    `position`.
    """

    min_relevance: Share = 0.2
    tagged_relevance: Share = 0.5
    min_novelty: Share = 0.05
    draft_worth: Share = 0.15
    target_worth: Share = 0.3
    frontier_worth: Share = 0.9
    position: Share = 1.0
    positions: dict[str, Share] = field(default_factory=dict[str, float])
    frontier_cents: Annotated[float, Meta(gt=0.0, le=1e9)] = 1.0
    frontier_budget_cents: Annotated[float, Meta(ge=0.0, le=1e9)] = 100.0

    def __post_init__(self) -> None:
        check_bounds("routing", self)
        if not self.draft_worth <= self.target_worth <= self.frontier_worth:
            raise InvalidInput("routing: need draft_worth <= target_worth <= frontier_worth")

    def position_in(self, symbol: str) -> float:
        """The position in a symbol, 0–1."""
        return self.positions.get(symbol, self.position)


@dataclass(frozen=True, slots=True)
class SecureConfig:
    """Incidents are counted in thousandths and halve every `half_life_ns`.

    An incident weighs `plain_weight`, or `grave_weight` if its rule begins with one of `grave_rules`: those that show
    intent. SECURE is on for a symbol or a source from `on_at`, market-wide from `on_at_for_all`. An incident that names
    symbols counts market-wide by `share_for_all` only, and the market is suspected only if incidents are
    `least_share_for_all` of all items: the few false alarms of a large stream are no attack. It goes off `cool_down_ns`
    after incidents last came to `off_at`. While it is on, no view weighs more than `most_weight`. A divergence that
    ranks from `extreme_divergence`, of items trusted less than `low_trust`, is an incident itself.
    """

    on_at: Count = 3_000
    on_at_for_all: Count = 6_000
    least_share_for_all: Share = 0.05
    off_at: Count = 1_000
    plain_weight: Count = 1_000
    grave_weight: Count = 2_000
    share_for_all: Share = 0.25
    half_life_ns: SpanNs = NS_PER_DAY // 4
    cool_down_ns: SpanNs = NS_PER_DAY
    most_weight: Share = 0.25
    extreme_divergence: Share = 0.99
    low_trust: Share = 0.5
    max_scopes: Count = 4_096
    grave_rules: tuple[str, ...] = ("injection", "impersonation", "contradicted", "hidden")

    def __post_init__(self) -> None:
        check_bounds("secure", self)
        if not self.off_at <= self.on_at <= self.on_at_for_all:
            raise InvalidInput("secure: need off_at <= on_at <= on_at_for_all")
        if not self.plain_weight <= self.grave_weight:
            raise InvalidInput("secure: need plain_weight <= grave_weight")
