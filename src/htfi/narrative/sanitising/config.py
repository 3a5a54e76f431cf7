"""Settings of the sanitiser: how long things are remembered, what counts as much, what a verdict takes."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import PositiveShare, check_bounds, setting
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.sanitising.publishers import Publisher
from htfi.narrative.sanitising.sources import KINDS

_NS_PER_MINUTE = 60_000_000_000

NOTED_BELOW = 0.5  # a weaker finding is reported and counts for nothing
MAX_HEADLINE_CHARS = 500  # that are screened
MAX_BODY_CHARS = 8_000  # that are screened and read; of a longer body the passages that matter
MAX_LONG_BODY_CHARS = 60_000  # from which passages are selected; of an official body's document all are kept
WINDOW_NS = 3 * NS_PER_DAY  # items are compared with those of the last three days
MAX_ITEMS = 8_192  # that are remembered for it
NEAR_ALIKE = 0.5  # likeness from which two items are the same report
GOOD_CREDIBILITY = 0.5  # track record from which a source is trusted in full
MAX_SOURCES = 4_096  # whose track records are kept
MAX_SYMBOLS = 4_096  # for which bursts are watched
BURST_NS = 15 * _NS_PER_MINUTE  # within which repeated reports are a burst
BURST_VOICES = 3  # sources of low trust that report alike
BURST_REPEATS = 4  # reports of one source of low trust
CLAIM_NS = 2 * NS_PER_DAY  # how long a claim waits for confirmation
LATE_NS = NS_PER_DAY // 4  # an item dated longer ago than this arrives late
EARLY_NS = 5 * _NS_PER_MINUTE  # clocks of publishers may be that far ahead
MAX_SYMBOLS_MOVED = 8  # by one item: a report on more symbols is a list


@dataclass(frozen=True, slots=True)
class SanitiserConfig:
    """From which strength of findings an item is discounted or quarantined, and how far news may move a forecast."""

    discount_at: PositiveShare = setting(
        0.5, "strength of findings from which an item counts for less", "0–1"
    )
    quarantine_at: PositiveShare = setting(
        0.75, "strength of findings from which an item is quarantined", "0–1"
    )
    max_influence_unconfirmed: Annotated[float, Meta(gt=0.0, le=4.0)] = setting(
        1.5, "how far news of a single source may move an end of the 90% band", "widths of the band"
    )
    max_influence_confirmed: Annotated[float, Meta(gt=0.0, le=4.0)] = setting(
        2.0, "how far news of several trusted sources may move it", "widths of the band"
    )
    source_kinds: tuple[tuple[str, str], ...] = setting(
        (), "kind of each feed by its name: official, wire, press, release, unknown or social"
    )
    publishers: tuple[Publisher, ...] = setting((), "publishers beside those of the built-in list")

    def __post_init__(self) -> None:
        check_bounds("sanitiser", self)
        if not self.discount_at < self.quarantine_at:
            raise InvalidInput("sanitiser: need discount_at < quarantine_at")
        if not self.max_influence_unconfirmed <= self.max_influence_confirmed:
            raise InvalidInput("sanitiser: need max_influence_unconfirmed <= max_influence_confirmed")
        for source, kind in self.source_kinds:
            if kind not in KINDS:
                raise InvalidInput(
                    f"sanitiser.source_kinds: {source} is '{kind}': must be one of {', '.join(sorted(KINDS))}"
                )
