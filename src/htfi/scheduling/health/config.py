"""Settings of the watch over peers: how often nodes speak, what counts as silence or illness, how long leases last."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Celsius, Count, Factor, InnerShare, PositiveMilliseconds, check_bounds


@dataclass(frozen=True, slots=True)
class HealthConfig:
    """A tick each `tick_ms` is what the shell owes the watch.

    `voters` are the nodes whose grants make a leader. All of them must be told the same list, lease and drift.
    """

    tick_ms: PositiveMilliseconds = 25.0
    beat_ms: PositiveMilliseconds = 75.0
    # On an even link phi reaches 8 after 75 + 5.61 · 45 = 327 ms: a segment that TCP sends again costs 150 ms and
    # 1.25 RTT. However uneven the link, `silence_ms` is the end.
    phi_threshold: Factor = 8.0
    min_std_ms: PositiveMilliseconds = 45.0
    num_intervals: Annotated[int, Meta(ge=1, le=65_536)] = 64
    num_intervals_min: Annotated[int, Meta(ge=1, le=65_536)] = 8
    silence_ms: PositiveMilliseconds = 400.0
    first_beat_ms: PositiveMilliseconds = 2_000.0  # a new stream may take so long to bring its first
    late_ms: PositiveMilliseconds = 50.0  # of a gap between our own calls: what is longer was our own pause
    num_back: Annotated[int, Meta(ge=1, le=65_536)] = 3  # beats on time that end a suspicion
    # SWIM
    probe_ms: PositiveMilliseconds = 400.0  # between questions to others about a silent peer
    num_probed: Annotated[int, Meta(ge=1, le=65_536)] = 3
    suspect_ms: PositiveMilliseconds = 4_000.0  # a suspicion that nobody refutes becomes death
    forget_ms: PositiveMilliseconds = 600_000.0
    num_claims: Annotated[int, Meta(ge=1, le=16)] = 6  # in one beat
    spread: Factor = 3.0  # a claim is passed on spread · log2(members) times
    num_members: Annotated[int, Meta(ge=1, le=65_536)] = 256
    # Illness
    num_rtts: Annotated[int, Meta(ge=1, le=65_536)] = 24
    warm_up_ms: PositiveMilliseconds = 5_000.0  # of vitals before a usual is trusted
    learn_ms: PositiveMilliseconds = 60_000.0  # time constant of what is usual
    slow_ratio: Factor = 3.0  # step time over the usual one
    slow_floor_ms: PositiveMilliseconds = 2.0  # a step that is faster is never slow
    stall_ms: PositiveMilliseconds = 1_000.0
    stall_steps: Factor = 10.0
    queue_ratio: Factor = 4.0
    queue_floor: Count = 64
    rtt_ratio: Factor = 3.0
    rtt_floor_ms: PositiveMilliseconds = (
        400.0  # the planner prices RTT; this is where no deadline can stand it
    )
    hot_c: Celsius = 92.0
    throttle_share: InnerShare = 0.3
    clearing: InnerShare = 0.7  # what made it ill must fall to this share of its limit
    hot_clearing_c: Celsius = 5.0
    ill_after_ms: PositiveMilliseconds = 400.0
    well_after_ms: PositiveMilliseconds = 2_000.0
    # Leases
    voters: tuple[str, ...] = ()
    lease_ms: PositiveMilliseconds = 2_000.0
    clock_drift: Annotated[float, Meta(gt=0.0, lt=0.5)] = 0.01  # of each clock, either way, at most
    num_roles: Annotated[int, Meta(ge=1, le=65_536)] = 64

    def __post_init__(self) -> None:
        check_bounds("health", self)
        if not self.tick_ms <= self.late_ms <= self.beat_ms:
            raise InvalidInput("health: need tick_ms <= late_ms <= beat_ms")
        if not 2 * self.beat_ms < self.silence_ms:
            raise InvalidInput("health.silence_ms must be above two beats, or one lost beat is a silence")
        if not self.num_intervals_min <= self.num_intervals:
            raise InvalidInput("health.num_intervals_min must not be above num_intervals")
        if self.slow_ratio * self.clearing <= 1.0 or self.queue_ratio <= 1.0 or self.rtt_ratio <= 1.0:
            raise InvalidInput(
                "health: ratios to what is usual must lie above 1, and slow_ratio * clearing too"
            )
        if len(set(self.voters)) != len(self.voters) or not all(0 < len(each) <= 64 for each in self.voters):
            raise InvalidInput("health.voters must be different names of 1 to 64 characters")
