"""Settings of the sanitiser: how long things are remembered, what counts as much, what a verdict takes."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.sanitising.publishers import Publisher
from htfi.narrative.sanitising.sources import KINDS

_NS_PER_MINUTE = 60_000_000_000


@dataclass(frozen=True, slots=True)
class SanitiserConfig:
    """Strengths, likeness and trust run 0–1.

    An item whose findings together reach `quarantine_at` is held back, one from `discount_at` counts for less; a
    finding beneath `noted_below` is told and counts for nothing. Items are compared with those of the last `window_ns`
    and at most `max_items`; from `near_alike` on they are alike. A source whose standing reaches `good_standing` is
    trusted in full. `kinds` says of feeds, by name, what they are: official, wire, press, release, unknown, social.
    `publishers` add to those that are known.
    """

    discount_at: float = 0.5
    quarantine_at: float = 0.75
    noted_below: float = 0.5
    max_headline_chars: int = 500
    max_body_chars: int = 8_000
    window_ns: int = 3 * NS_PER_DAY
    max_items: int = 8_192
    near_alike: float = 0.5
    good_standing: float = 0.5
    max_sources: int = 4_096
    max_symbols: int = 4_096
    burst_ns: int = 15 * _NS_PER_MINUTE
    burst_voices: int = 3  # low ones that tell alike
    burst_repeats: int = 4  # of one low voice
    claim_ns: int = 2 * NS_PER_DAY
    late_ns: int = NS_PER_DAY // 4
    early_ns: int = 5 * _NS_PER_MINUTE  # a clock may be that far off
    kinds: tuple[tuple[str, str], ...] = ()
    publishers: tuple[Publisher, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 < self.discount_at < self.quarantine_at <= 1.0:
            raise InvalidInput("sanitiser: need 0 < discount_at < quarantine_at <= 1")
        for name in ("noted_below", "near_alike", "good_standing"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise InvalidInput(f"sanitiser.{name} must lie in 0..1, above 0, not {getattr(self, name)}")
        counts = (
            "max_headline_chars",
            "max_body_chars",
            "window_ns",
            "max_items",
            "max_sources",
            "max_symbols",
        )
        for name in (*counts, "burst_ns", "claim_ns", "late_ns", "early_ns"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"sanitiser.{name} must be at least 1, not {getattr(self, name)}")
        if self.burst_voices < 2 or self.burst_repeats < 2:
            raise InvalidInput("sanitiser: burst_voices and burst_repeats must be at least 2")
        for source, kind in self.kinds:
            if kind not in KINDS:
                raise InvalidInput(
                    f"sanitiser.kinds: {source} is '{kind}': must be one of {', '.join(sorted(KINDS))}"
                )
