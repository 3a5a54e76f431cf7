"""Settings of the narrative room: how long headlines count, how many are kept, how many are cited."""

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import Bars, Count, InnerShare, SpanNs, check_bounds
from htfi.domain.time import NS_PER_DAY


@dataclass(frozen=True, slots=True)
class NarrativeConfig:
    """Limits of the wire and of the rationale.

    A headline's weight halves every `half_life_ns`; below `min_weight` it is forgotten. What is usual of a
    feature follows it with `usual_half_life_bars`, and is spoken of after `usual_min_bars`. A reading in depth is
    `deep_paths` answers drawn at `deep_temperature`.
    """

    half_life_ns: SpanNs = NS_PER_DAY
    min_weight: InnerShare = 0.125
    max_items_per_symbol: Annotated[int, Meta(ge=1, le=10_000)] = 32
    max_symbols: Count = 4096
    max_headline_chars: Annotated[int, Meta(ge=1, le=10_000)] = 160
    max_body_chars: Annotated[int, Meta(ge=1, le=1_000_000)] = 8_000  # stands in old ledgers: no body is kept
    max_cited: Annotated[int, Meta(ge=0, le=3)] = 2
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = (
        0.0  # of a model that reads: 0 takes the likeliest words
    )
    deep_paths: Annotated[int, Meta(ge=1, le=256)] = 16
    deep_temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    usual_half_life_bars: Bars = 60.0
    usual_min_bars: Count = 20
    names: dict[str, str] = field(default_factory=dict[str, str])  # what symbols are called in the news
    calendar: str = ""  # a file of scheduled releases, TOML or CSV

    def __post_init__(self) -> None:
        check_bounds("narrative", self)
