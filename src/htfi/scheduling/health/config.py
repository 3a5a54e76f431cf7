"""Settings of the watch over peers: how often nodes speak, what counts as silence or illness, how long leases last."""

import math
from dataclasses import dataclass, fields

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class HealthConfig:
    """A tick each `tick_ms` is what the shell owes the watch.

    `voters` are the nodes whose grants make a leader. All of them must be told the same list, lease and drift.
    """

    tick_ms: float = 25.0
    beat_ms: float = 75.0
    # On an even link phi reaches 8 after 75 + 5.61 · 45 = 327 ms: a segment that TCP sends again costs 150 ms and
    # 1.25 RTT. However uneven the link, `silence_ms` is the end.
    phi_threshold: float = 8.0
    min_std_ms: float = 45.0
    num_intervals: int = 64
    num_intervals_min: int = 8
    silence_ms: float = 400.0
    first_beat_ms: float = 2_000.0  # a new stream may take so long to bring its first
    late_ms: float = 50.0  # of a gap between our own calls: what is longer was our own pause
    num_back: int = 3  # beats on time that end a suspicion
    # SWIM
    probe_ms: float = 400.0  # between questions to others about a silent peer
    num_probed: int = 3
    suspect_ms: float = 4_000.0  # a suspicion that nobody refutes becomes death
    forget_ms: float = 600_000.0
    num_claims: int = 6  # in one beat
    spread: float = 3.0  # a claim is passed on spread · log2(members) times
    num_members: int = 256
    # Illness
    num_rtts: int = 24
    warm_up_ms: float = 5_000.0  # of vitals before a usual is trusted
    learn_ms: float = 60_000.0  # time constant of what is usual
    slow_ratio: float = 3.0  # step time over the usual one
    slow_floor_ms: float = 2.0  # a step that is faster is never slow
    stall_ms: float = 1_000.0
    stall_steps: float = 10.0
    queue_ratio: float = 4.0
    queue_floor: int = 64
    rtt_ratio: float = 3.0
    rtt_floor_ms: float = 400.0  # the planner prices RTT; here it counts only where no deadline can stand it
    hot_c: float = 92.0
    throttle_share: float = 0.3
    clearing: float = 0.7  # what made it ill must fall to this share of its limit
    hot_clearing_c: float = 5.0
    ill_after_ms: float = 400.0
    well_after_ms: float = 2_000.0
    # Leases
    voters: tuple[str, ...] = ()
    lease_ms: float = 2_000.0
    clock_drift: float = 0.01  # of each clock, either way, at most
    num_roles: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "voters":
                continue
            if not (math.isfinite(value) and value > 0):
                raise InvalidInput(f"health.{field.name} must be a number above 0, not {value}")
        if not self.tick_ms <= self.late_ms <= self.beat_ms:
            raise InvalidInput("health: need tick_ms <= late_ms <= beat_ms")
        if not 2 * self.beat_ms < self.silence_ms:
            raise InvalidInput("health.silence_ms must be above two beats, or one lost beat is a silence")
        if not self.num_intervals_min <= self.num_intervals:
            raise InvalidInput("health.num_intervals_min must not be above num_intervals")
        if not (self.clearing < 1.0 and self.throttle_share < 1.0 and self.clock_drift < 0.5):
            raise InvalidInput("health: clearing and throttle_share must lie below 1, clock_drift below 0.5")
        if self.slow_ratio * self.clearing <= 1.0 or self.queue_ratio <= 1.0 or self.rtt_ratio <= 1.0:
            raise InvalidInput(
                "health: ratios to what is usual must lie above 1, and slow_ratio * clearing too"
            )
        if len(set(self.voters)) != len(self.voters) or not all(0 < len(each) <= 64 for each in self.voters):
            raise InvalidInput("health.voters must be different names of 1 to 64 characters")
        if self.num_claims > 16:
            raise InvalidInput("health.num_claims must be at most 16: a beat stays small")
