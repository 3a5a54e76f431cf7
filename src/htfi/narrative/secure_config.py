"""Settings of the secure mode: how much trouble turns it on, and how long it stays."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Count, Share, SpanNs, check_bounds
from htfi.domain.time import NS_PER_DAY


@dataclass(frozen=True, slots=True)
class SecureConfig:
    """Trouble is counted in thousandths, and halves every `half_life_ns`.

    A trouble weighs `plain_weight`, or `grave_weight` where its rule begins with one of `grave_rules`: what is made on
    purpose. SECURE is on for a symbol or a source from `on_at`, for all from `on_at_for_all`; a trouble that names
    symbols counts for all by `share_for_all` only, and all are suspected only where troubles are `least_share_for_all`
    of what was heard: the few false alarms of a large stream are none. It goes off when `cool_down_ns` have passed
    since trouble last came to `off_at`. In it no view weighs more than `most_weight`. Divergence that ranks from
    `extreme_divergence`, of items trusted less than `low_trust`, is a trouble itself.
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
