"""The health monitor of a node's peers: one state machine, which the node's shell drives and drains.

The shell calls `stream_opened`, `stream_ended` and `receive` for its streams and `tick` each `TICK_MS`, sends the
messages that they return over `stream(peer)`, and shows the `changes`. All from one thread; `report_metrics` and what
only reads (`state`, `figures`, `peers`, `stream`, `leads`) may be called from any. `now_s` is one monotonic clock,
which runs on while the machine sleeps.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from numpy.random import Generator

from htfi.domain.errors import InvalidInput
from htfi.domain.peers import PeerState
from htfi.scheduling.health import failure_detection as detection
from htfi.scheduling.health import membership, peer_contact
from htfi.scheduling.health.config import NUM_BACK, HealthConfig
from htfi.scheduling.health.degradation import Degradation, assess
from htfi.scheduling.health.exchange import BundleExchange, NoBundleExchange, PartJoiner, split_body
from htfi.scheduling.health.leases import RoleLeases
from htfi.scheduling.health.messages import (
    MAX_NAME,
    BundlePart,
    HealthMessage,
    Heartbeat,
    MembershipClaim,
    NodeHealthMetrics,
    NodeStatus,
    PeerProbe,
    ProbeReply,
    decode_message,
    encode_message,
    sanitise_metrics,
)
from htfi.scheduling.health.peer_contact import PeerContact, PeerFigures, judge_peer, peer_figures

_NUM_CHANGES = 1_024  # kept for a shell that does not drain them


class PeerTransition(NamedTuple):
    """A `PeerChange` without its time: a state, 'joined', 'reconnect', 'refused', 'leads', 'follows'."""

    peer: str
    what: str
    reason: str


class PeerMonitor:
    """What one node knows of the others. `node` is its name in its certificate; `rng` is its own.

    `exchange` takes and gives the messages about policy bundles, where the node has any.
    """

    def __init__(
        self,
        node: str,
        config: HealthConfig,
        rng: Generator,
        now_s: float,
        exchange: BundleExchange | None = None,
    ) -> None:
        if not 0 < len(node) <= MAX_NAME:
            raise InvalidInput(f"a node's name must have 1 to {MAX_NAME} characters, not {len(node)}")
        self._config = config
        self._rng = rng
        self._life = int(rng.integers(1, 1 << 48))
        self._clock = detection.RunningClock(now_s)
        self._contacts: dict[str, PeerContact] = {}
        self._suspicions: dict[str, detection.PeerSuspicion] = {}
        self._members = membership.MembershipTable(MembershipClaim(node, 0, NodeStatus.ALIVE), {})
        self._reported_metrics: NodeHealthMetrics = NodeHealthMetrics()
        self._metrics: NodeHealthMetrics = self._reported_metrics
        self._degradation = Degradation()
        self._assessed_s = now_s
        self._roles = RoleLeases(node, self._life, config, now_s)
        self._exchange: BundleExchange = exchange or NoBundleExchange()
        self._joiner = PartJoiner()
        self._num_exchanged = 0
        self._announced: dict[str, PeerState] = {}
        self._changes: deque[PeerTransition] = deque(maxlen=_NUM_CHANGES)

    # What the shell drives.

    def stream_opened(self, peer: str, stream: str, now_s: float) -> None:
        """A stream to the peer has opened. The next tick sends the first heartbeat over it."""
        self._advance_clock(now_s)
        if not 0 < len(peer) <= MAX_NAME:
            self._record(
                peer[:MAX_NAME], "refused", f"a peer with a name of {len(peer)} characters is not monitored"
            )
            return
        before = self._contacts.get(peer)
        if before is None:
            # A random first number, so that an echo meant for another life of this node fits nothing.
            before = PeerContact(
                detection.start_history(self._clock.ran_s), int(self._rng.integers(1, 1 << 40))
            )
        elif before.rhythm.num_heartbeats and not before.streams:
            self._record(peer, "reconnect", f"a stream to {peer} is open again")
        elif not before.streams:
            before = replace(before, rhythm=detection.start_history(self._clock.ran_s))
        streams = (*(each for each in before.streams if each != stream), stream)
        self._contacts[peer] = replace(before, streams=streams, next_at_s=now_s, reported=None)
        if peer in self._suspicions:  # a new stream is evidence of its own: one heartbeat over it suffices
            self._suspicions[peer] = replace(self._suspicions[peer], needs_back=1)
        self._members = membership.regossip(self._members)

    def stream_ended(self, peer: str, reason: str, now_s: float, stream: str = "") -> None:
        """A stream to the peer is gone; without its name, all of them."""
        self._advance_clock(now_s)
        contact = self._contacts.get(peer)
        if contact is None or not contact.streams:
            return
        streams = tuple(each for each in contact.streams if stream and each != stream)
        self._contacts[peer] = replace(contact, streams=streams)
        if not streams and contact.rhythm.num_heartbeats:
            self._suspect(peer, f"its stream ended: {reason}" if reason else "its stream ended")
        self._announce(peer)

    def activity_seen(self, peer: str, now_s: float) -> None:
        """Another frame of the peer has arrived: it is not silent, although a long answer delays its heartbeats."""
        self._advance_clock(now_s)
        contact = self._contacts.get(peer)
        if contact is not None and contact.streams and contact.rhythm.num_heartbeats:
            self._contacts[peer] = replace(
                contact, rhythm=detection.record_activity(contact.rhythm, self._clock.ran_s)
            )

    def receive(self, peer: str, body: bytes, now_s: float) -> list[tuple[str, bytes]]:
        """What a peer's body calls for. Raises: InvalidInput, having changed nothing, for one that cannot be."""
        message = decode_message(body)
        self._advance_clock(now_s)
        contact = self._contacts.get(peer)
        if contact is None or not contact.streams:
            return []
        return self._encode_reachable(self._answer(peer, message, now_s))

    def tick(self, now_s: float) -> list[tuple[str, bytes]]:
        """What to send now. Owed each `tick_ms`."""
        self._advance_clock(now_s)
        sent = self._encode_reachable(self._heartbeats(now_s))
        for peer, contact in self._contacts.items():
            if not contact.streams or peer in self._suspicions:
                continue
            if detection.is_silent(contact.rhythm, self._clock.ran_s, self._config):
                quiet_ms = detection.silence_ms(contact.rhythm, self._clock.ran_s)
                self._suspect(peer, f"silent for {quiet_ms:.0f} ms")
        sent += self._encode_reachable(self._probes())
        self._expire()
        sent += self._encode_reachable(self._roles.tick(now_s, float(self._rng.random())))
        self._announce_leadership(now_s)
        sent += self._encode_reachable(self._parts(self._exchange.due()))
        for peer in self.peers():
            self._announce(peer)
        return sent

    def changes(self) -> list[PeerTransition]:
        """What happened since the last call."""
        changes = list(self._changes)
        self._changes.clear()
        return changes

    # What the node reports of itself, and the roles it seeks.

    def report_metrics(self, metrics: NodeHealthMetrics) -> None:
        """This node's own health metrics, sent with its heartbeats."""
        if metrics is not self._reported_metrics:
            self._reported_metrics, self._metrics = metrics, sanitise_metrics(metrics)

    def request_leadership(self, role: str) -> None:
        """Try to lead a role from now on. Raises: InvalidInput where no voters are named."""
        self._roles.seek(role)

    def resign(self, role: str, now_s: float) -> list[tuple[str, bytes]]:
        """Lead the role no more, at once, and let others. What to send."""
        self._advance_clock(now_s)
        sent = self._encode_reachable(self._roles.resign(role, now_s))
        self._announce_leadership(now_s)
        return sent

    # What others read.

    def leads(self, role: str, now_s: float) -> bool:
        """Whether this node leads the role at this very instant. Ask right before each act."""
        return self._roles.leads(role, now_s)

    def peers(self) -> list[str]:
        """All that are known, by their streams or by gossip."""
        return sorted({*list(self._members.others), *list(self._contacts)})

    def stream(self, peer: str) -> str | None:
        """The newest open stream to the peer."""
        contact = self._contacts.get(peer)
        return contact.streams[-1] if contact is not None and contact.streams else None

    def state(self, peer: str) -> PeerState:
        return self._judge(peer)[0]

    def figures(self, peer: str) -> PeerFigures:
        """Also of a peer that is unknown: nothing is known of it."""
        return peer_figures(self._contacts.get(peer), *self._judge(peer))

    # How.

    def _advance_clock(self, now_s: float) -> None:
        self._clock = detection.advance_clock(self._clock, now_s)

    def _encode_reachable(self, messages: Iterable[tuple[str, HealthMessage]]) -> list[tuple[str, bytes]]:
        """As bytes, to those that can be reached."""
        return [(to, encode_message(each)) for to, each in messages if self.stream(to) is not None]

    def _is_healthy_contact(self, peer: str) -> bool:
        return peer_contact.has_heartbeat(self._contacts.get(peer)) and peer not in self._suspicions

    def _judge(self, peer: str) -> tuple[PeerState, str]:
        known = self._members.others.get(peer)
        return judge_peer(
            self._contacts.get(peer),
            self._suspicions.get(peer),
            known.claim.status if known is not None else None,
            self._clock.ran_s,
        )

    def _record(self, peer: str, what: str, reason: str) -> None:
        self._changes.append(PeerTransition(peer, what, reason))

    def _announce(self, peer: str) -> None:
        state, reason = self._judge(peer)
        before = self._announced.get(peer, PeerState.UNKNOWN)
        if state is before:
            return
        self._announced[peer] = state
        if before is PeerState.UNKNOWN:
            self._record(peer, "joined", f"{peer} is now known")
        self._record(peer, state.value, reason)

    def _announce_leadership(self, now_s: float) -> None:
        for role, is_leading, holder in self._roles.leadership_changes(now_s):
            me = self._members.me.node
            follows = f"{me} no longer leads {role}" + (f": {holder} does" if holder else "")
            self._record(
                me, "leads" if is_leading else "follows", f"{me} leads {role}" if is_leading else follows
            )

    def _suspect(self, peer: str, why: str) -> None:
        before = self._suspicions.get(peer)
        if before is None:
            self._suspicions[peer] = detection.PeerSuspicion(why, self._clock.ran_s, needs_back=NUM_BACK)
        else:
            self._suspicions[peer] = replace(before, why=why, num_back=0)

    def _heartbeats(self, now_s: float) -> Iterator[tuple[str, HealthMessage]]:
        if (now_s - self._assessed_s) * 1e3 >= self._config.heartbeat_ms:
            self._assessed_s = now_s
            self._degradation = assess(
                self._degradation, self._metrics, None, self._clock.ran_s, self._config
            )
        status = NodeStatus.DEGRADED if self._degradation.is_degraded else NodeStatus.ALIVE
        status = NodeStatus.DRAINING if self._metrics.is_draining else status
        self._members = membership.declare_status(self._members, status)
        for peer, contact in list(self._contacts.items()):
            if not peer_contact.is_heartbeat_due(contact, now_s):
                continue
            own_claim = MembershipClaim(peer, contact.incarnation, contact.status)
            self._members, claims = membership.choose_claims(self._members, own_claim)
            self._contacts[peer], heartbeat = peer_contact.next_heartbeat(
                contact, self._members.me, self._life, self._metrics, claims, now_s, self._config
            )
            yield peer, heartbeat

    def _probes(self) -> Iterator[tuple[str, HealthMessage]]:
        ran_s = self._clock.ran_s
        fresh = [peer for peer in self.peers() if self._is_healthy_contact(peer)]
        for peer, suspicion in list(self._suspicions.items()):
            if self._announced.get(peer) is PeerState.DEAD:
                continue
            self._suspicions[peer], asked = detection.choose_probes(suspicion, fresh, ran_s)
            for other in asked:
                yield other, PeerProbe(self._suspicions[peer].token, peer)
            if detection.is_confirmed(suspicion, ran_s):
                self._members = membership.suspect_node(self._members, peer, ran_s)

    def _expire(self) -> None:
        ran_s = self._clock.ran_s
        alive = {peer for peer in self._contacts if self._is_healthy_contact(peer)}
        alive |= {
            peer
            for peer, suspicion in self._suspicions.items()
            if detection.is_seen_by_others(suspicion, ran_s)
        }
        before, self._members = (
            self._members,
            membership.expire_suspicions(self._members, alive, ran_s, self._config),
        )
        for peer in before.others.keys() - self._members.others.keys():
            if self.stream(peer) is None:
                self._contacts.pop(peer, None)
                self._suspicions.pop(peer, None)
                self._announced.pop(peer, None)

    def _answer(self, peer: str, message: HealthMessage, now_s: float) -> Iterator[tuple[str, HealthMessage]]:
        if isinstance(message, Heartbeat):
            self._take(peer, message, now_s)
        elif isinstance(message, PeerProbe):
            age_ms = -1
            if self._is_healthy_contact(message.node):
                age_ms = round(detection.silence_ms(self._contacts[message.node].rhythm, self._clock.ran_s))
            yield peer, ProbeReply(message.token, message.node, age_ms)
        elif isinstance(message, ProbeReply):
            suspicion = self._suspicions.get(message.node)
            if suspicion is not None:
                self._suspicions[message.node] = detection.record_reply(
                    suspicion, peer, message.token, message.age_ms, self._clock.ran_s, self._config
                )
        elif isinstance(message, BundlePart):
            whole = self._joiner.join(peer, message)
            if whole is not None:
                yield from self._parts(self._exchange.received(peer, whole))
        else:
            yield from self._roles.receive(peer, message, now_s)
            self._announce_leadership(now_s)

    def _parts(self, bodies: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, HealthMessage]]:
        for to, body in bodies:
            self._num_exchanged += 1
            for part in split_body(body, self._num_exchanged):
                yield to, part

    def _take(self, peer: str, heartbeat: Heartbeat, now_s: float) -> None:
        after = peer_contact.receive_heartbeat(
            self._contacts[peer], heartbeat, self._clock, now_s, self._config
        )
        if after is None:  # received before
            return
        self._contacts[peer] = after
        suspicion = self._suspicions.get(peer)
        if suspicion is not None:
            back = detection.record_heartbeat(suspicion, self._clock.ran_s, self._config)
            if back is None:
                del self._suspicions[peer]
            else:
                self._suspicions[peer] = back
        for claim in (MembershipClaim(peer, heartbeat.incarnation, heartbeat.status), *heartbeat.claims):
            self._learn(peer, claim)
        self._announce(peer)

    def _learn(self, sender: str, claim: MembershipClaim) -> None:
        before = self._members.others.get(claim.node)
        self._members = membership.merge(self._members, claim, self._clock.ran_s)
        suspicion = self._suspicions.get(claim.node)
        if suspicion is None or before is None or claim.node == sender:
            return
        # Only the node itself raises its incarnation, so it is alive, whichever node passed the claim on.
        if claim.incarnation > before.claim.incarnation and claim.status < NodeStatus.SUSPECT:
            self._suspicions[claim.node] = replace(suspicion, witness=sender, witness_s=self._clock.ran_s)
