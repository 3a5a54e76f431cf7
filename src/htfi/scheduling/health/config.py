"""Settings and constants of the health monitor: heartbeats, suspicion, degradation, leases."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import (
    Celsius,
    PositiveMilliseconds,
    check_bounds,
    setting,
)

TICK_MS = 25.0  # what the shell owes the monitor
# On an even link phi reaches 8 after 75 + 5.61 · 45 = 327 ms: a segment that TCP sends again costs 150 ms and
# 1.25 RTT. However uneven the link, `silence_ms` is the end.
PHI_THRESHOLD = 8.0
MIN_STD_MS = 45.0  # of heartbeat intervals
NUM_INTERVALS = 64  # that are remembered
NUM_INTERVALS_MIN = 8  # before phi is trusted
FIRST_HEARTBEAT_MS = 2_000.0  # that a new stream may take to its first heartbeat
LATE_MS = 50.0  # of a gap between our own ticks: what is longer was our own pause
NUM_BACK = 3  # heartbeats on time that end a suspicion
PROBE_MS = 400.0  # SWIM: between questions to others about a silent peer
NUM_PROBED = 3  # SWIM: peers that are asked
FORGET_MS = 600_000.0  # after which a dead peer is forgotten
NUM_CLAIMS = 6  # SWIM: claims in one heartbeat
SPREAD = 3.0  # SWIM: a claim is passed on spread · log2(members) times
NUM_MEMBERS = 256  # that are known at most
NUM_RTTS = 24  # round trips that are remembered
WARM_UP_MS = 5_000.0  # of health metrics before a usual is trusted
LEARN_MS = 60_000.0  # time constant of what is usual
SLOW_RATIO = 3.0  # step time over the usual one
SLOW_FLOOR_MS = 2.0  # a faster step is never slow
STALL_MS = 1_000.0  # without a step while work waits
STALL_STEPS = 10.0  # usual step times without a step
QUEUE_RATIO = 4.0  # queue over the usual one
QUEUE_FLOOR = 64  # a shorter queue is never long
RTT_RATIO = 3.0  # round trip over the usual one
RTT_FLOOR_MS = 400.0  # the planner prices round trips; beyond it no deadline can be met
THROTTLE_SHARE = 0.3  # of its clock that a device has lost
RECOVERY_SHARE = 0.7  # what degraded it must fall to this share of its limit
COOLED_BY_C = 5.0  # degrees below hot_c
DEGRADED_AFTER_MS = 400.0  # in trouble before a node counts as degraded
HEALTHY_AFTER_MS = 2_000.0  # without trouble before it counts as healthy
NUM_ROLES = 64  # that can be led


@dataclass(frozen=True, slots=True)
class HealthConfig:
    """How soon silence and heat are noticed, and who leads. All voters must use the same list, lease and drift."""

    heartbeat_ms: PositiveMilliseconds = setting(75.0, "how often nodes send a heartbeat")
    silence_ms: PositiveMilliseconds = setting(400.0, "silence after which a node is suspected at the latest")
    suspect_ms: PositiveMilliseconds = setting(
        4_000.0, "how long a suspicion lasts before the node counts as dead"
    )
    hot_c: Celsius = setting(92.0, "temperature from which a node is degraded")
    voters: tuple[str, ...] = setting((), "nodes that elect the leader; all clouds if empty")
    lease_ms: PositiveMilliseconds = setting(2_000.0, "how long a leader leads without renewal")
    clock_drift: Annotated[float, Meta(gt=0.0, lt=0.5)] = setting(
        0.01, "largest drift of a node's clock", "fraction"
    )

    def __post_init__(self) -> None:
        check_bounds("health", self)
        if not self.heartbeat_ms >= LATE_MS:
            raise InvalidInput(f"health: need heartbeat_ms >= {LATE_MS:g}")
        if not 2 * self.heartbeat_ms < self.silence_ms:
            raise InvalidInput(
                "health.silence_ms must be above two heartbeats: one lost heartbeat must not count as silence"
            )
        if len(set(self.voters)) != len(self.voters) or not all(0 < len(each) <= 64 for each in self.voters):
            raise InvalidInput("health.voters must be different names of 1 to 64 characters")
