"""A silent peer: other nodes are asked for its heartbeats before it is announced as suspect. `monitor` uses it.

SWIM's indirect probe, answered from the heartbeats that arrive anyway. Seconds on the observer's running clock.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from htfi.scheduling.health.config import NUM_PROBED, PROBE_MS, HealthConfig


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
    if (ran_s - suspicion.back_s) * 1e3 < config.beat_ms / 2.0:
        return suspicion
    # A gap in between restarts the count.
    is_on_time = (ran_s - suspicion.back_s) * 1e3 < config.silence_ms
    num_back = suspicion.num_back + 1 if is_on_time else 1
    return None if num_back >= suspicion.needs_back else replace(suspicion, num_back=num_back, back_s=ran_s)
