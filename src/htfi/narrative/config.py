"""Settings of the narrative room: how long headlines count, how many are kept, how many are cited."""

from dataclasses import dataclass, field

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY


@dataclass(frozen=True, slots=True)
class NarrativeConfig:
    """Limits of the wire and of the rationale.

    A headline's weight halves every `half_life_ns`; below `min_weight` it is forgotten. What is usual of a
    feature follows it with `usual_half_life_bars`, and is spoken of after `usual_min_bars`. A reading in depth is
    `deep_paths` answers drawn at `deep_temperature`.
    """

    half_life_ns: int = NS_PER_DAY
    min_weight: float = 0.125
    max_items_per_symbol: int = 32
    max_symbols: int = 4096
    max_headline_chars: int = 160
    max_body_chars: int = 8_000
    max_cited: int = 2
    temperature: float = 0.0  # of a model that reads: 0 takes the likeliest words
    deep_paths: int = 16
    deep_temperature: float = 1.0
    usual_half_life_bars: float = 60.0
    usual_min_bars: int = 20
    names: dict[str, str] = field(default_factory=dict[str, str])  # what symbols are called in the news
    calendar: str = ""  # a file of scheduled releases, TOML or CSV

    def __post_init__(self) -> None:
        counts = (
            "half_life_ns",
            "max_items_per_symbol",
            "max_symbols",
            "max_headline_chars",
            "max_body_chars",
            "usual_min_bars",
            "deep_paths",
        )
        for name in counts:
            if getattr(self, name) < 1:
                raise InvalidInput(f"narrative.{name} must be at least 1, not {getattr(self, name)}")
        if not 0 < self.min_weight < 1:
            raise InvalidInput(f"narrative.min_weight must lie between 0 and 1, not {self.min_weight}")
        if not self.usual_half_life_bars > 0:
            raise InvalidInput(
                f"narrative.usual_half_life_bars must be above 0, not {self.usual_half_life_bars}"
            )
        if not 0.0 <= self.temperature <= 2.0:
            raise InvalidInput(f"narrative.temperature must lie in 0..2, not {self.temperature}")
        if self.deep_paths > 256 or not 0.0 <= self.deep_temperature <= 2.0:
            raise InvalidInput("narrative: deep_paths must be at most 256, deep_temperature lie in 0..2")
        if not 0 <= self.max_cited <= 3:
            raise InvalidInput(f"narrative.max_cited must lie in 0..3, not {self.max_cited}")
