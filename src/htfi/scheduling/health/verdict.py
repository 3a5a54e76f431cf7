"""The state of a peer: from its own heartbeats first, from gossip otherwise. `monitor` asks at every tick."""

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
    suspicion: PeerSuspicion | None,
    claimed: NodeStatus | None,
    ran_s: float,
) -> tuple[PeerState, str]:
    """The peer's state, and why. `claimed` is its status by gossip, ignored while its heartbeats arrive: gossip is late
    then, and the peer itself refutes it.
    """
    if suspicion is not None:
        if claimed is NodeStatus.DEAD:
            return PeerState.DEAD, f"{suspicion.why}; no node receives its heartbeats"
        if is_seen_by_others(suspicion, ran_s):
            return PeerState.SUSPECT, f"{suspicion.why}; {suspicion.witness} still receives its heartbeats"
        return PeerState.SUSPECT, suspicion.why
    if contact is not None and has_heartbeat(contact):
        if contact.status is NodeStatus.DRAINING:
            return PeerState.DRAINING, "finishes its requests and accepts no new ones"
        if contact.degradation.is_degraded:
            return PeerState.DEGRADED, contact.degradation.words
        if contact.status is NodeStatus.DEGRADED:
            return PeerState.DEGRADED, "reported by the node itself"
        return PeerState.HEALTHY, "heartbeats on time"
    if claimed is None:
        return PeerState.UNKNOWN, "unknown to this node"
    return _STATE_OF_STATUS[claimed], "reported by other nodes"


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
        contact.metrics,
        phi.silence_ms(contact.rhythm, ran_s),
        phi.phi(contact.rhythm, ran_s, config),
    )
