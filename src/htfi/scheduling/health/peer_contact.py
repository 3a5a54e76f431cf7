"""The direct connection to one peer: heartbeats, round trips, metrics; and the state of the peer that follows."""

import math
from dataclasses import dataclass, field, replace

from htfi.domain.peers import PeerState
from htfi.scheduling.health import failure_detection as detection
from htfi.scheduling.health.config import NUM_RTTS, TICK_MS, HealthConfig
from htfi.scheduling.health.degradation import Degradation, assess
from htfi.scheduling.health.messages import Heartbeat, MembershipClaim, NodeHealthMetrics, NodeStatus

_NUM_SENT = 64  # heartbeats that may still be echoed: 4.8 s of them
_METRICS_EVERY = 16  # heartbeats: unchanged metrics are sent again so often


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """What is known of a peer now. Round trips are of the latest few seconds, None before the first; of the
    `num_rtts` measured since the contact began the latest are listed, newest last.
    """

    state: PeerState
    reason: str
    rtt_p50_ms: float | None
    rtt_p95_ms: float | None
    rtts_ms: tuple[float, ...]
    num_rtts: int
    metrics: NodeHealthMetrics | None


@dataclass(frozen=True, slots=True)
class PeerContact:
    """Times ending in `at_s` are by this node's clock, `rhythm` by its running clock. `seq` numbers our heartbeats."""

    rhythm: detection.HeartbeatHistory
    seq: int
    streams: tuple[str, ...] = ()  # newest last
    next_at_s: float = -math.inf
    sent: tuple[tuple[int, float], ...] = ()
    reported: NodeHealthMetrics | None = None
    reported_seq: int = 0
    life: int = 0
    received_seq: int = 0
    received_at_s: float = 0.0
    echoed: int = 0
    incarnation: int = 0
    status: NodeStatus = NodeStatus.ALIVE
    rtts_ms: tuple[float, ...] = ()
    num_rtts: int = 0
    metrics: NodeHealthMetrics | None = None
    degradation: Degradation = field(default_factory=Degradation)


def has_heartbeat(contact: PeerContact | None) -> bool:
    """It has a stream, and a heartbeat has arrived over one."""
    return contact is not None and bool(contact.streams) and contact.rhythm.num_heartbeats > 0


def is_heartbeat_due(contact: PeerContact, now_s: float) -> bool:
    """Half a tick early rather than most of one late."""
    return bool(contact.streams) and now_s + TICK_MS / 2e3 >= contact.next_at_s


def next_heartbeat(
    contact: PeerContact,
    me: MembershipClaim,
    life: int,
    metrics: NodeHealthMetrics,
    claims: tuple[MembershipClaim, ...],
    now_s: float,
    config: HealthConfig,
) -> tuple[PeerContact, Heartbeat]:
    """The next heartbeat to the peer."""
    seq = contact.seq + 1
    is_news = metrics != contact.reported or seq - contact.reported_seq >= _METRICS_EVERY
    held_us = max(0, round((now_s - contact.received_at_s) * 1e6)) if contact.received_seq else 0
    heartbeat = Heartbeat(
        seq,
        contact.received_seq,
        held_us,
        life,
        me.incarnation,
        me.status,
        metrics if is_news else None,
        claims,
    )
    interval_s = config.heartbeat_ms / 1e3
    after = replace(
        contact,
        seq=seq,
        sent=(*contact.sent[1 - _NUM_SENT :], (seq, now_s)),
        next_at_s=max(contact.next_at_s + interval_s, now_s + interval_s / 2.0),
        reported=metrics if is_news else contact.reported,
        reported_seq=seq if is_news else contact.reported_seq,
    )
    return after, heartbeat


def receive_heartbeat(
    contact: PeerContact,
    heartbeat: Heartbeat,
    clock: detection.RunningClock,
    now_s: float,
    config: HealthConfig,
) -> PeerContact | None:
    """The contact after a heartbeat of the peer; None for a repeated one."""
    if heartbeat.life != contact.life:
        contact = replace(
            contact,
            life=heartbeat.life,
            received_seq=0,
            rhythm=detection.start_history(clock.ran_s),
            metrics=None,
            degradation=Degradation(),
        )
    if heartbeat.seq <= contact.received_seq:
        return None
    rtt_ms = _round_trip_ms(contact, heartbeat, clock, now_s)
    rtts = contact.rtts_ms
    if rtt_ms is not None:
        rtts = (*rtts[1 - NUM_RTTS :], rtt_ms)
    metrics = heartbeat.metrics if heartbeat.metrics is not None else contact.metrics
    degradation = contact.degradation
    if metrics is not None:
        degradation = assess(degradation, metrics, quantile(rtts, 0.5), clock.ran_s, config)
    return replace(
        contact,
        rhythm=detection.record_heartbeat_interval(contact.rhythm, clock.ran_s, config),
        received_seq=heartbeat.seq,
        received_at_s=now_s,
        echoed=max(contact.echoed, heartbeat.echo if heartbeat.echo <= contact.seq else 0),
        incarnation=heartbeat.incarnation,
        status=heartbeat.status,
        rtts_ms=rtts,
        num_rtts=contact.num_rtts + (rtt_ms is not None),
        metrics=metrics,
        degradation=degradation,
    )


def _round_trip_ms(
    contact: PeerContact, heartbeat: Heartbeat, clock: detection.RunningClock, now_s: float
) -> float | None:
    """The round trip from a new echo; None where it spans a pause of our own, which it would measure."""
    if heartbeat.echo <= contact.echoed:
        return None
    sent_s = next((at for seq, at in contact.sent if seq == heartbeat.echo), None)
    if sent_s is None or sent_s <= clock.resumed_s:
        return None
    rtt_ms = (now_s - sent_s) * 1e3 - heartbeat.hold_us / 1e3
    return rtt_ms if rtt_ms >= 0.0 else None


def quantile(values: tuple[float, ...], share: float) -> float | None:
    """The value that `share` of them do not pass: one of them, the nearest rank."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


_STATE_OF_STATUS = {
    NodeStatus.ALIVE: PeerState.HEALTHY,
    NodeStatus.DEGRADED: PeerState.DEGRADED,
    NodeStatus.DRAINING: PeerState.DRAINING,
    NodeStatus.SUSPECT: PeerState.SUSPECT,
    NodeStatus.DEAD: PeerState.DEAD,
}


def judge_peer(
    contact: PeerContact | None,
    suspicion: detection.PeerSuspicion | None,
    claimed: NodeStatus | None,
    ran_s: float,
) -> tuple[PeerState, str]:
    """The peer's state, and why. `claimed` is its status by gossip, ignored while its heartbeats arrive: gossip is late
    then, and the peer itself refutes it.
    """
    if suspicion is not None:
        if claimed is NodeStatus.DEAD:
            return PeerState.DEAD, f"{suspicion.why}; no node receives its heartbeats"
        if detection.is_seen_by_others(suspicion, ran_s):
            return PeerState.SUSPECT, f"{suspicion.why}; {suspicion.witness} still receives its heartbeats"
        return PeerState.SUSPECT, suspicion.why
    if contact is not None and has_heartbeat(contact):
        if contact.status is NodeStatus.DRAINING:
            return PeerState.DRAINING, "finishes its requests and accepts no new ones"
        if contact.degradation.is_degraded:
            return PeerState.DEGRADED, contact.degradation.symptoms
        if contact.status is NodeStatus.DEGRADED:
            return PeerState.DEGRADED, "reported by the node itself"
        return PeerState.HEALTHY, "heartbeats on time"
    if claimed is None:
        return PeerState.UNKNOWN, "unknown to this node"
    return _STATE_OF_STATUS[claimed], "reported by other nodes"


def peer_figures(contact: PeerContact | None, state: PeerState, reason: str) -> PeerFigures:
    if contact is None:
        return PeerFigures(state, reason, None, None, (), 0, None)
    return PeerFigures(
        state,
        reason,
        quantile(contact.rtts_ms, 0.5),
        quantile(contact.rtts_ms, 0.95),
        contact.rtts_ms,
        contact.num_rtts,
        contact.metrics,
    )
