"""Settings of scheduling: the fidelity ladder, the placement of readings, and the fair scheduler of a cloud."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import (
    HOUR_MS,
    Celsius,
    Count,
    NonNegativeFactor,
    PositiveMilliseconds,
    PositiveShare,
    check_bounds,
    setting,
)


@dataclass(frozen=True, slots=True)
class FidelityConfig:
    """Time that each rung needs, and what counts as load or divergence."""

    edge_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = setting(
        20.0, "time that the EDGE rung needs (draft model)"
    )
    speculative_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = setting(
        80.0, "time that the SPECULATIVE rung needs (target model)"
    )
    deep_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = setting(
        2_000.0, "time allowed for one reading in depth"
    )
    deep_budget_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = setting(
        4_000.0, "time for readings in depth after each release, at most"
    )
    high_load: PositiveShare = setting(0.8, "load above which the draft model reads alone", "0–1")
    high_divergence: PositiveShare = setting(
        0.9, "rank of divergence from which an item is read in depth", "0–1"
    )
    min_influence: Annotated[float, Meta(ge=0.0, le=1e3)] = setting(
        0.15, "what a reading must be able to move for a model to read; 0 always", "90% bands"
    )

    def __post_init__(self) -> None:
        check_bounds("scheduling", self)
        if not self.edge_ms <= self.speculative_ms <= self.deep_ms:
            raise InvalidInput("scheduling: need edge_ms <= speculative_ms <= deep_ms")


EDGE_MS_PER_MS = 0.05  # price of drafting here, time that others could use
STRAIN_MS_PER_MS = 4.0  # price on a device that is fully strained, on top
FRAME_MS = 0.1  # what a window costs both sides beside its tokens
MAX_WINDOW = 32  # tokens of one window
MAX_IN_FLIGHT = 32  # windows on their way
NUM_SAMPLES = 64  # of each figure that are remembered
HALF_LIFE_S = 5.0  # of measured figures
REPRICE_SHARE = 0.15  # change of a figure from which prices are computed again
EXPLORE_FIRST = 2.0  # requests' worth of time that may be spent exploring before any is earned
PRIOR_RATE = 0.9  # acceptance of a draft token before it is measured


@dataclass(frozen=True, slots=True)
class PlacementConfig:
    """What energy and heat cost beside time, and how much time may go into exploring."""

    ms_per_joule: Annotated[float, Meta(ge=0.0, le=1e6)] = setting(0.02, "price of energy", "ms per joule")
    hot_c: Celsius = setting(80.0, "temperature from which a device counts as hot")
    critical_c: Celsius = setting(95.0, "temperature at which a device is at its limit")
    explore_share: NonNegativeFactor = setting(
        0.02, "time spent on exploring other placements", "share of all time"
    )

    def __post_init__(self) -> None:
        check_bounds("placement", self)
        if not self.hot_c < self.critical_c:
            raise InvalidInput("placement: need hot_c < critical_c")


AGING = 2.0  # ms of slack lost for each ms of waiting: nothing waits for ever behind the urgent
GRACE_MS = 5.0  # difference in use below which tenants have equal priority
SAFETY = 1.5  # a request is admitted if it would end within its deadline over this: predictions miss what comes next
SUSPECTED_SHARE = 0.25  # of another tenant's share, for a tenant under suspicion
SUSPECTED_DELAY_MS = 50.0  # added delay of its requests
MIN_RETRY_MS = 10.0  # shortest retry delay sent to a client
MAX_RETRY_MS = 5_000.0  # longest retry delay sent to a client


@dataclass(frozen=True, slots=True)
class TurnsConfig:
    """How many requests wait for a cloud, and how many it decodes together."""

    max_waiting: Count = setting(1024, "requests that may wait", "requests")
    max_waiting_per_tenant: Count = setting(256, "requests of one tenant that may wait", "requests")
    max_rows: Count = setting(64, "requests decoded in one pass", "requests")
    patience_ms: PositiveMilliseconds = setting(2_000.0, "slack above which requests are equally urgent")

    def __post_init__(self) -> None:
        check_bounds("turns", self)
