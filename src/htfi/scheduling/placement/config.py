"""Settings of placement: what energy and strain are worth in time, how far to look ahead, how to forget and explore."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Celsius, InnerShare, Milliseconds, NonNegativeFactor, check_bounds


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

    ms_per_joule: Annotated[float, Meta(ge=0.0, le=1e6)] = 0.02
    edge_ms_per_ms: NonNegativeFactor = 0.05
    strain_ms_per_ms: Annotated[float, Meta(ge=0.0, le=1e6)] = 4.0
    frame_ms: Milliseconds = 0.1
    hot_c: Celsius = 80.0
    critical_c: Celsius = 95.0
    max_window: Annotated[int, Meta(ge=1, le=256)] = 32
    max_in_flight: Annotated[int, Meta(ge=1, le=1024)] = 32
    num_samples: Annotated[int, Meta(ge=8, le=4096)] = 64
    half_life_s: Annotated[float, Meta(gt=0.0, le=1e6)] = 5.0
    moved: NonNegativeFactor = 0.15
    explore_share: NonNegativeFactor = 0.02
    explore_first: NonNegativeFactor = 2.0
    prior_rate: InnerShare = 0.9

    def __post_init__(self) -> None:
        check_bounds("placement", self)
        if not self.hot_c < self.critical_c:
            raise InvalidInput("placement: need hot_c < critical_c")
