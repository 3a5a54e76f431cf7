"""How suspicious a peer's silence is, and whom to ask before it is announced as suspect.

Phi-accrual failure detection (Hayashibara et al., SRDS 2004): phi is −log10 of the chance that the next heartbeat
comes still later. A hard bound is applied as well, since a silent peer must be noticed however irregular its
heartbeats are. Times are on the observer's *running* clock, which stops while the observer does: a paused observer
suspects no peer.

Other nodes are then asked for the peer's heartbeats: SWIM's indirect probe, answered from those that arrive anyway.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from htfi.scheduling.health.config import (
    FIRST_HEARTBEAT_MS,
    LATE_MS,
    MIN_STD_MS,
    NUM_INTERVALS,
    NUM_INTERVALS_MIN,
    NUM_PROBED,
    PHI_THRESHOLD,
    PROBE_MS,
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
    """The latest intervals of one peer's heartbeats, and when something last arrived. Seconds on the running clock."""

    last_heartbeat_s: float
    last_received_s: float
    num_heartbeats: int = 0
    intervals_ms: tuple[float, ...] = ()
    mean_ms: float = 0.0
    std_ms: float = 0.0


def start_history(ran_s: float) -> HeartbeatHistory:
    return HeartbeatHistory(ran_s, ran_s)


def record_heartbeat_interval(
    rhythm: HeartbeatHistory, ran_s: float, config: HealthConfig
) -> HeartbeatHistory:
    """A heartbeat has arrived. A gap above `silence_ms` was an outage and is not an interval."""
    gap_ms = (ran_s - rhythm.last_heartbeat_s) * 1e3
    intervals = rhythm.intervals_ms
    if rhythm.num_heartbeats and gap_ms <= config.silence_ms:
        intervals = (*intervals[1 - NUM_INTERVALS :], gap_ms)
    mean = sum(intervals) / len(intervals) if intervals else config.heartbeat_ms
    variance = sum((each - mean) ** 2 for each in intervals) / len(intervals) if intervals else 0.0
    return HeartbeatHistory(ran_s, ran_s, rhythm.num_heartbeats + 1, intervals, mean, math.sqrt(variance))


def record_activity(rhythm: HeartbeatHistory, ran_s: float) -> HeartbeatHistory:
    """Something else has arrived from the peer: no silence, but no heartbeat either."""
    return HeartbeatHistory(
        rhythm.last_heartbeat_s,
        ran_s,
        rhythm.num_heartbeats,
        rhythm.intervals_ms,
        rhythm.mean_ms,
        rhythm.std_ms,
    )


def silence_ms(rhythm: HeartbeatHistory, ran_s: float) -> float:
    return max(0.0, (ran_s - rhythm.last_received_s) * 1e3)


def phi(rhythm: HeartbeatHistory, ran_s: float, config: HealthConfig) -> float:
    """The suspicion, from 0: 8 is one false alarm in 10^8 heartbeats if gaps were normal. Few samples: a wide spread.

    The mean is at least one interval of the settings: a burst after a pause does not predict the next heartbeat.
    """
    mean, std = config.heartbeat_ms, config.heartbeat_ms
    if len(rhythm.intervals_ms) >= NUM_INTERVALS_MIN:
        mean, std = max(config.heartbeat_ms, rhythm.mean_ms), max(MIN_STD_MS, rhythm.std_ms)
    chance = 0.5 * math.erfc((silence_ms(rhythm, ran_s) - mean) / (std * math.sqrt(2.0)))
    return min(_MAX_PHI, -math.log10(chance)) if chance > 0.0 else _MAX_PHI


def is_silent(rhythm: HeartbeatHistory, ran_s: float, config: HealthConfig) -> bool:
    quiet_ms = silence_ms(rhythm, ran_s)
    if not rhythm.num_heartbeats:
        return quiet_ms >= FIRST_HEARTBEAT_MS
    return quiet_ms >= config.silence_ms or phi(rhythm, ran_s, config) >= PHI_THRESHOLD


@dataclass(frozen=True, slots=True)
class PeerSuspicion:
    """One peer's silence. `witness` reported it alive at `witness_s`; `num_back` heartbeats came since."""

    why: str
    since_s: float
    token: int = 0
    asked_s: float = -math.inf
    witness: str = ""
    witness_s: float = -math.inf
    num_back: int = 0
    back_s: float = -math.inf
    needs_back: int = 1


def choose_probes(
    suspicion: PeerSuspicion, others: Sequence[str], ran_s: float
) -> tuple[PeerSuspicion, tuple[str, ...]]:
    """The nodes to ask now: none, or `NUM_PROBED` of the others, in turn. The suspicion gets a new token."""
    if (ran_s - suspicion.asked_s) * 1e3 < PROBE_MS:
        return suspicion, ()
    turn = (suspicion.token * NUM_PROBED) % max(1, len(others))
    asked = (*others[turn:], *others[:turn])[:NUM_PROBED]
    return replace(suspicion, token=suspicion.token + 1, asked_s=ran_s), asked


def record_reply(
    suspicion: PeerSuspicion, witness: str, token: int, age_ms: float, ran_s: float, config: HealthConfig
) -> PeerSuspicion:
    """A reply. One to a probe before the last is too old to count."""
    if token < suspicion.token - 1 or not 0.0 <= age_ms < config.silence_ms:
        return suspicion
    return replace(suspicion, witness=witness, witness_s=ran_s)


def is_seen_by_others(suspicion: PeerSuspicion, ran_s: float) -> bool:
    """Another node has recently reported it alive."""
    return (ran_s - suspicion.witness_s) * 1e3 <= 2.0 * PROBE_MS


def is_confirmed(suspicion: PeerSuspicion, ran_s: float) -> bool:
    """The others had time to answer, and none reported it alive."""
    return (ran_s - suspicion.since_s) * 1e3 >= 2.0 * PROBE_MS and not is_seen_by_others(suspicion, ran_s)


def record_heartbeat(suspicion: PeerSuspicion, ran_s: float, config: HealthConfig) -> PeerSuspicion | None:
    """A heartbeat has arrived: None once there are enough. A delayed burst counts as one."""
    if (ran_s - suspicion.back_s) * 1e3 < config.heartbeat_ms / 2.0:
        return suspicion
    # A gap in between restarts the count.
    is_on_time = (ran_s - suspicion.back_s) * 1e3 < config.silence_ms
    num_back = suspicion.num_back + 1 if is_on_time else 1
    return None if num_back >= suspicion.needs_back else replace(suspicion, num_back=num_back, back_s=ran_s)
