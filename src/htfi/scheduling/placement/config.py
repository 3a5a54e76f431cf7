"""Settings of placement: what energy and strain are worth in time, how far to look ahead, how to forget and explore."""

import math
from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class PlacementConfig:
    """Prices are in ms: a joule costs `ms_per_joule`, an ms of drafting here, which others could use,
    `edge_ms_per_ms`, and on a strained device `strain_ms_per_ms` more.
    `frame_ms` is what a window costs both sides beside its tokens.

    A device is strained from `hot_c` on, fully so at `critical_c`; a clock that is throttled counts alike.
    `explore_share` of all time spent is what trying other ways may cost beyond the best, as it is estimated, and
    `explore_first` requests' worth may be spent before that. Prices are reckoned anew where a figure has moved by a
    share `moved`.
    """

    ms_per_joule: float = 0.02
    edge_ms_per_ms: float = 0.05
    strain_ms_per_ms: float = 4.0
    frame_ms: float = 0.1
    hot_c: float = 80.0
    critical_c: float = 95.0
    max_window: int = 32
    max_in_flight: int = 32
    num_samples: int = 64
    half_life_s: float = 5.0
    moved: float = 0.15
    explore_share: float = 0.02
    explore_first: float = 2.0
    prior_rate: float = 0.9

    def __post_init__(self) -> None:
        for name in (
            "ms_per_joule",
            "strain_ms_per_ms",
            "frame_ms",
            "moved",
            "explore_share",
            "explore_first",
        ):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"placement.{name} must be a number from 0 on, not {getattr(self, name)}")
        if not 0.0 < self.hot_c < self.critical_c < math.inf:
            raise InvalidInput("placement: need 0 < hot_c < critical_c")
        for name, most in (("max_window", 256), ("max_in_flight", 1024)):
            if not 1 <= getattr(self, name) <= most:
                raise InvalidInput(f"placement.{name} must lie in 1..{most}, not {getattr(self, name)}")
        if not 8 <= self.num_samples <= 4096:
            raise InvalidInput(f"placement.num_samples must lie in 8..4096, not {self.num_samples}")
        if not 0.0 < self.half_life_s < math.inf:
            raise InvalidInput(f"placement.half_life_s must be above 0, not {self.half_life_s}")
        if not 0.0 < self.prior_rate < 1.0:
            raise InvalidInput(f"placement.prior_rate must lie between 0 and 1, not {self.prior_rate}")
