"""Settings of the sanitiser: how long things are remembered, what counts as similar, what a verdict takes."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Count, PositiveShare, SpanNs, check_bounds
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.sanitising.publishers import Publisher
from htfi.narrative.sanitising.sources import KINDS

_NS_PER_MINUTE = 60_000_000_000


@dataclass(frozen=True, slots=True)
class SanitiserConfig:
    """Strengths, similarity and trust run 0–1.

    An item whose findings together reach `quarantine_at` is held back, one from `discount_at` counts for less; a
    finding beneath `noted_below` is recorded without effect. Items are compared with those of the last `window_ns` and
    at most `max_items`; from `near_alike` on they are similar. A source whose standing reaches `good_standing` is
    trusted in full. `kinds` names what feeds are: official, wire, press, release, unknown, social. `publishers` add to
    the built-in ones. Whatever a reader's track record, news of a single source moves an end of a forecast's 90% band
    by at most `max_moved_alone` of the band and the median by 0.4 of that; news that several believed sources or an
    official one confirm, by `max_moved_confirmed`; a discounted item by less.
    """

    discount_at: PositiveShare = 0.5
    quarantine_at: PositiveShare = 0.75
    noted_below: PositiveShare = 0.5
    max_headline_chars: Annotated[int, Meta(ge=1, le=10_000)] = 500
    max_body_chars: Annotated[int, Meta(ge=1, le=1_000_000)] = 8_000
    window_ns: SpanNs = 3 * NS_PER_DAY
    max_items: Count = 8_192
    near_alike: PositiveShare = 0.5
    good_standing: PositiveShare = 0.5
    max_sources: Count = 4_096
    max_symbols: Count = 4_096
    burst_ns: SpanNs = 15 * _NS_PER_MINUTE
    burst_voices: Annotated[int, Meta(ge=2, le=10_000)] = 3  # voices without credit with similar items
    burst_repeats: Annotated[int, Meta(ge=2, le=10_000)] = 4  # of one voice without credit
    claim_ns: SpanNs = 2 * NS_PER_DAY
    late_ns: SpanNs = NS_PER_DAY // 4
    early_ns: SpanNs = 5 * _NS_PER_MINUTE  # of clocks that differ
    max_moved_alone: Annotated[float, Meta(gt=0.0, le=4.0)] = 1.5
    max_moved_confirmed: Annotated[float, Meta(gt=0.0, le=4.0)] = 2.0
    max_symbols_moved: Annotated[int, Meta(ge=1, le=64)] = 8  # by one item
    kinds: tuple[tuple[str, str], ...] = ()
    publishers: tuple[Publisher, ...] = ()

    def __post_init__(self) -> None:
        check_bounds("sanitiser", self)
        if not self.discount_at < self.quarantine_at:
            raise InvalidInput("sanitiser: need discount_at < quarantine_at")
        if not self.max_moved_alone <= self.max_moved_confirmed:
            raise InvalidInput("sanitiser: need max_moved_alone <= max_moved_confirmed")
        for source, kind in self.kinds:
            if kind not in KINDS:
                raise InvalidInput(
                    f"sanitiser.kinds: {source} is '{kind}': must be one of {', '.join(sorted(KINDS))}"
                )
