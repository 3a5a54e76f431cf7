"""What a node makes of a peer in the end: its own ears first, gossip after. `watch` asks at every turn."""

from htfi.domain.peers import PeerState
from htfi.scheduling.health import phi
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.contact import Contact, Figures, has_beaten, jitter_ms, quantile
from htfi.scheduling.health.doubt import Doubt, is_vouched
from htfi.scheduling.health.messages import Standing

_STATES = {
    Standing.ALIVE: PeerState.WELL,
    Standing.ILL: PeerState.ILL,
    Standing.DRAINING: PeerState.DRAINING,
    Standing.SUSPECT: PeerState.SUSPECT,
    Standing.DEAD: PeerState.DEAD,
}


def verdict(
    contact: Contact | None, doubt: Doubt | None, claimed: Standing | None, ran_s: float, config: HealthConfig
) -> tuple[PeerState, str]:
    """The peer's state, and why. `claimed`: what gossip holds of it; nothing while its beats are heard, for then
    whatever gossip says is late, and the peer itself refutes it.
    """
    if doubt is not None:
        if claimed is Standing.DEAD:
            return PeerState.DEAD, f"{doubt.why}, and nobody hears it"
        if is_vouched(doubt, ran_s, config):
            return PeerState.SUSPECT, f"{doubt.why}; others hear it: {doubt.witness}"
        return PeerState.SUSPECT, doubt.why
    if contact is not None and has_beaten(contact):
        if contact.standing is Standing.DRAINING:
            return PeerState.DRAINING, "it finishes what it has and takes nothing new"
        if contact.illness.is_ill:
            return PeerState.ILL, contact.illness.words
        if contact.standing is Standing.ILL:
            return PeerState.ILL, "it says so itself"
        return PeerState.WELL, "it beats"
    if claimed is None:
        return PeerState.UNKNOWN, "never heard of"
    return _STATES[claimed], "by hearsay"


def figures_of(
    contact: Contact | None, state: PeerState, words: str, ran_s: float, config: HealthConfig
) -> Figures:
    if contact is None:
        return Figures(state, words, None, None, 0.0, (), 0, None, 0.0, 0.0)
    return Figures(
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
