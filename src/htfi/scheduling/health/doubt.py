"""A silent peer: ask others whether they hear it, before anyone is told that it is suspect. `watch` uses it.

SWIM's indirect probe, answered from what the asked hears anyway. Seconds on the observer's running clock.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from htfi.scheduling.health.config import NUM_PROBED, PROBE_MS, HealthConfig


@dataclass(frozen=True, slots=True)
class PeerSuspicion:
    """One peer's silence. `witness` heard it at `witness_s`; `num_back` beats on time have come since."""

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
    doubt: PeerSuspicion, others: Sequence[str], ran_s: float
) -> tuple[PeerSuspicion, tuple[str, ...]]:
    """Whom to ask now: nobody, or `num_probed` of the others, in turn. Its token is the doubt's new one."""
    if (ran_s - doubt.asked_s) * 1e3 < PROBE_MS:
        return doubt, ()
    turn = (doubt.token * NUM_PROBED) % max(1, len(others))
    asked = (*others[turn:], *others[:turn])[:NUM_PROBED]
    return replace(doubt, token=doubt.token + 1, asked_s=ran_s), asked


def record_reply(
    doubt: PeerSuspicion, witness: str, token: int, age_ms: float, ran_s: float, config: HealthConfig
) -> PeerSuspicion:
    """An answer. One to a question before the last (it came late, or its giver stood still) says nothing."""
    if token < doubt.token - 1 or not 0.0 <= age_ms < config.silence_ms:
        return doubt
    return replace(doubt, witness=witness, witness_s=ran_s)


def is_seen_by_others(doubt: PeerSuspicion, ran_s: float) -> bool:
    """Somebody has lately heard it."""
    return (ran_s - doubt.witness_s) * 1e3 <= 2.0 * PROBE_MS


def is_confirmed(doubt: PeerSuspicion, ran_s: float) -> bool:
    """The others had time to answer, and none hears it."""
    return (ran_s - doubt.since_s) * 1e3 >= 2.0 * PROBE_MS and not is_seen_by_others(doubt, ran_s)


def record_heartbeat(doubt: PeerSuspicion, ran_s: float, config: HealthConfig) -> PeerSuspicion | None:
    """A beat has come from it: None once enough did. A burst that a stall had held back counts as one."""
    if (ran_s - doubt.back_s) * 1e3 < config.beat_ms / 2.0:
        return doubt
    # A gap in between begins the count anew.
    is_on_time = (ran_s - doubt.back_s) * 1e3 < config.silence_ms
    num_back = doubt.num_back + 1 if is_on_time else 1
    return None if num_back >= doubt.needs_back else replace(doubt, num_back=num_back, back_s=ran_s)
