"""Settings of the secure mode: how much trouble turns it on, and how long it stays."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput
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

    on_at: int = 3_000
    on_at_for_all: int = 6_000
    least_share_for_all: float = 0.05
    off_at: int = 1_000
    plain_weight: int = 1_000
    grave_weight: int = 2_000
    share_for_all: float = 0.25
    half_life_ns: int = NS_PER_DAY // 4
    cool_down_ns: int = NS_PER_DAY
    most_weight: float = 0.25
    extreme_divergence: float = 0.99
    low_trust: float = 0.5
    max_scopes: int = 4_096
    grave_rules: tuple[str, ...] = ("injection", "impersonation", "contradicted", "hidden")

    def __post_init__(self) -> None:
        if not 0 < self.off_at <= self.on_at <= self.on_at_for_all <= 1_000_000:
            raise InvalidInput("secure: need 0 < off_at <= on_at <= on_at_for_all <= 1000000")
        if not 0 < self.plain_weight <= self.grave_weight <= 1_000_000:
            raise InvalidInput("secure: need 0 < plain_weight <= grave_weight <= 1000000")
        for name in ("half_life_ns", "cool_down_ns", "max_scopes"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"secure.{name} must be at least 1, not {getattr(self, name)}")
        for name in (
            "share_for_all",
            "least_share_for_all",
            "most_weight",
            "extreme_divergence",
            "low_trust",
        ):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InvalidInput(f"secure.{name} must lie in 0..1, not {getattr(self, name)}")
