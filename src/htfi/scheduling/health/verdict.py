"""What a node makes of a peer in the end: its own ears first, gossip after. `watch` asks at every turn."""

from htfi.domain.peers import PeerState
from htfi.scheduling.health import phi
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.contact import PeerContact, PeerFigures, has_heartbeat, jitter_ms, quantile
from htfi.scheduling.health.doubt import PeerSuspicion, is_seen_by_others
from htfi.scheduling.health.messages import NodeStatus

_STATE_OF_STATUS = {
    NodeStatus.ALIVE: PeerState.HEALTHY,
    NodeStatus.DEGRADED: PeerState.DEGRADED,
    NodeStatus.DRAINING: PeerState.DRAINING,
    NodeStatus.SUSPECT: PeerState.SUSPECT,
    NodeStatus.DEAD: PeerState.DEAD,
}


def judge_peer(
    contact: PeerContact | None,
    doubt: PeerSuspicion | None,
    claimed: NodeStatus | None,
    ran_s: float,
) -> tuple[PeerState, str]:
    """The peer's state, and why. `claimed`: what gossip holds of it; nothing while its beats are heard, for then
    whatever gossip says is late, and the peer itself refutes it.
    """
    if doubt is not None:
        if claimed is NodeStatus.DEAD:
            return PeerState.DEAD, f"{doubt.why}, and nobody hears it"
        if is_seen_by_others(doubt, ran_s):
            return PeerState.SUSPECT, f"{doubt.why}; others hear it: {doubt.witness}"
        return PeerState.SUSPECT, doubt.why
    if contact is not None and has_heartbeat(contact):
        if contact.standing is NodeStatus.DRAINING:
            return PeerState.DRAINING, "it finishes what it has and takes nothing new"
        if contact.illness.is_degraded:
            return PeerState.DEGRADED, contact.illness.words
        if contact.standing is NodeStatus.DEGRADED:
            return PeerState.DEGRADED, "it says so itself"
        return PeerState.HEALTHY, "it beats"
    if claimed is None:
        return PeerState.UNKNOWN, "never heard of"
    return _STATE_OF_STATUS[claimed], "by hearsay"


def peer_figures(
    contact: PeerContact | None, state: PeerState, words: str, ran_s: float, config: HealthConfig
) -> PeerFigures:
    if contact is None:
        return PeerFigures(state, words, None, None, 0.0, (), 0, None, 0.0, 0.0)
    return PeerFigures(
        state,
        words,
        quantile(contact.rtts_ms, 0.5),
        quantile(contact.rtts_ms, 0.95),
        jitter_ms(contact.rtts_ms),
        contact.rtts_ms,
        contact.num_rtts,
        contact.vitals,
        phi.silence_ms(contact.rhythm, ran_s),
        phi.phi(contact.rhythm, ran_s, config),
    )
