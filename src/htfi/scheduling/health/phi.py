"""How suspicious a silence is, from the rhythm in which a peer's beats have come. `contact` keeps one for each peer.

Phi-accrual failure detection (Hayashibara et al., SRDS 2004): phi is −log10 of the chance that the next beat comes
still later. A hard bound stands beside it, since a peer must be missed in time however irregular its beats are. Times
are on the observer's *running* clock, which stands still while the observer does: a frozen observer accuses nobody.
"""

import math
from dataclasses import dataclass

from htfi.scheduling.health.config import (
    FIRST_HEARTBEAT_MS,
    LATE_MS,
    MIN_STD_MS,
    NUM_INTERVALS,
    NUM_INTERVALS_MIN,
    PHI_THRESHOLD,
    HealthConfig,
)

_MAX_PHI = 300.0  # the chance underflows there


@dataclass(frozen=True, slots=True)
class RunningClock:
    """Seconds that this process has run, as far as its own calls show it."""

    last_s: float
    ran_s: float = 0.0
    resumed_s: float = -math.inf  # when the last pause of our own ended


def advance_clock(clock: RunningClock, now_s: float) -> RunningClock:
    """A gap above `late_ms` between two calls was a pause of our own, and counts as `late_ms`."""
    gap_s = now_s - clock.last_s
    if gap_s <= 0.0:
        return clock
    late_s = LATE_MS / 1e3
    if gap_s > late_s:
        return RunningClock(now_s, clock.ran_s + late_s, now_s)
    return RunningClock(now_s, clock.ran_s + gap_s, clock.resumed_s)


@dataclass(frozen=True, slots=True)
class HeartbeatHistory:
    """The beats of one peer: gaps between the latest, and when something came last. Seconds on the running clock."""

    last_heartbeat_s: float
    last_heard_s: float
    num_heartbeats: int = 0
    intervals_ms: tuple[float, ...] = ()
    mean_ms: float = 0.0
    std_ms: float = 0.0


def start_history(ran_s: float) -> HeartbeatHistory:
    return HeartbeatHistory(ran_s, ran_s)


def record_heartbeat_interval(
    rhythm: HeartbeatHistory, ran_s: float, config: HealthConfig
) -> HeartbeatHistory:
    """A beat has come. A gap above `silence_ms` was an outage and says nothing of the rhythm."""
    gap_ms = (ran_s - rhythm.last_heartbeat_s) * 1e3
    intervals = rhythm.intervals_ms
    if rhythm.num_heartbeats and gap_ms <= config.silence_ms:
        intervals = (*intervals[1 - NUM_INTERVALS :], gap_ms)
    mean = sum(intervals) / len(intervals) if intervals else config.beat_ms
    variance = sum((each - mean) ** 2 for each in intervals) / len(intervals) if intervals else 0.0
    return HeartbeatHistory(ran_s, ran_s, rhythm.num_heartbeats + 1, intervals, mean, math.sqrt(variance))


def record_activity(rhythm: HeartbeatHistory, ran_s: float) -> HeartbeatHistory:
    """Something else of the peer has come: no silence, but no beat either."""
    return HeartbeatHistory(
        rhythm.last_heartbeat_s,
        ran_s,
        rhythm.num_heartbeats,
        rhythm.intervals_ms,
        rhythm.mean_ms,
        rhythm.std_ms,
    )


def silence_ms(rhythm: HeartbeatHistory, ran_s: float) -> float:
    return max(0.0, (ran_s - rhythm.last_heard_s) * 1e3)


def phi(rhythm: HeartbeatHistory, ran_s: float, config: HealthConfig) -> float:
    """The suspicion: 0 and up; 8 is one false alarm in 10^8 beats if gaps were normal. Few samples: a wide guess.

    The mean counts as a beat at least, since beats that come in a burst (after a pause) say nothing of the next one.
    """
    mean, std = config.beat_ms, config.beat_ms
    if len(rhythm.intervals_ms) >= NUM_INTERVALS_MIN:
        mean, std = max(config.beat_ms, rhythm.mean_ms), max(MIN_STD_MS, rhythm.std_ms)
    chance = 0.5 * math.erfc((silence_ms(rhythm, ran_s) - mean) / (std * math.sqrt(2.0)))
    return min(_MAX_PHI, -math.log10(chance)) if chance > 0.0 else _MAX_PHI


def is_silent(rhythm: HeartbeatHistory, ran_s: float, config: HealthConfig) -> bool:
    quiet_ms = silence_ms(rhythm, ran_s)
    if not rhythm.num_heartbeats:
        return quiet_ms >= FIRST_HEARTBEAT_MS
    return quiet_ms >= config.silence_ms or phi(rhythm, ran_s, config) >= PHI_THRESHOLD
