"""Settings of placement: the price of energy and strain in time, limits of drafting, exploration."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Celsius, NonNegativeFactor, check_bounds, setting

EDGE_MS_PER_MS = 0.05  # price of drafting here, time that others could use
STRAIN_MS_PER_MS = 4.0  # price on a device that is fully strained, on top
FRAME_MS = 0.1  # what a window costs both sides beside its tokens
MAX_WINDOW = 32  # tokens of one window
MAX_IN_FLIGHT = 32  # windows on their way
NUM_SAMPLES = 64  # of each figure that are remembered
HALF_LIFE_S = 5.0  # of measured figures
REPRICE_SHARE = 0.15  # change of a figure from which prices are reckoned again
EXPLORE_FIRST = 2.0  # requests' worth of time that may be spent exploring before any is earned
PRIOR_RATE = 0.9  # acceptance of a draft token before it is measured


@dataclass(frozen=True, slots=True)
class PlacementConfig:
    """What energy and heat cost beside time, and how much time may go into exploring."""

    ms_per_joule: Annotated[float, Meta(ge=0.0, le=1e6)] = setting(0.02, "price of energy", "ms per joule")
    hot_c: Celsius = setting(80.0, "temperature from which a device counts as strained")
    critical_c: Celsius = setting(95.0, "temperature at which it is fully strained")
    explore_share: NonNegativeFactor = setting(
        0.02, "time spent on trying other placements", "share of all time"
    )

    def __post_init__(self) -> None:
        check_bounds("placement", self)
        if not self.hot_c < self.critical_c:
            raise InvalidInput("placement: need hot_c < critical_c")
