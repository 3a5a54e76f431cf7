"""The watch that a node keeps over its peers: one state machine, which the node's shell drives and drains.

The shell calls `opened`, `ended` and `heard` as streams have it, `tick` each `tick_ms`, sends the bodies that they
return over the peer's stream, and shows the `changes`. All from one thread; `report`, `state`, `figures`, `peers` and
`leads` may be called from any. `now_s` is one monotonic clock, that goes on while the machine sleeps.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, assert_never

from numpy.random import Generator

from htfi.domain.errors import InvalidInput
from htfi.domain.peers import PeerState
from htfi.scheduling.health import contact as lines
from htfi.scheduling.health import doubt as doubts
from htfi.scheduling.health import leases, membership, phi
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.contact import Contact, Figures
from htfi.scheduling.health.illness import Illness, judge
from htfi.scheduling.health.messages import (
    Ask,
    Beat,
    Claim,
    Grant,
    Message,
    Probe,
    Release,
    Standing,
    Vitals,
    Witness,
    decode,
    encode,
)

_STATES = {
    Standing.ALIVE: PeerState.WELL,
    Standing.ILL: PeerState.ILL,
    Standing.DRAINING: PeerState.DRAINING,
    Standing.SUSPECT: PeerState.SUSPECT,
    Standing.DEAD: PeerState.DEAD,
}
_MAX_NAME = 64


class Change(NamedTuple):
    """A line for `PeerChange`, which the shell stamps. `what`: a state, 'joined', 'reconnect', 'leads', 'follows'."""

    peer: str
    what: str
    words: str


class Watch:
    """What one node knows of the others. `node` is its name by its certificate; `dice` are its own."""

    def __init__(self, node: str, config: HealthConfig, dice: Generator, now_s: float) -> None:
        if not 0 < len(node) <= _MAX_NAME:
            raise InvalidInput(f"a node's name must have 1 to {_MAX_NAME} characters, not {len(node)}")
        self._config = config
        self._dice = dice
        self._life = int(dice.integers(1, 1 << 48))
        self._clock = phi.RunningClock(now_s)
        self._contacts: dict[str, Contact] = {}
        self._doubts: dict[str, doubts.Doubt] = {}
        self._members = membership.Members(Claim(node, 0, Standing.ALIVE), {})
        self._vitals = Vitals()
        self._illness = Illness()
        self._judged_s = now_s
        self._ballot = leases.Ballot(now_s)
        self._bids: dict[str, leases.Bid] = {}
        self._leading: dict[str, bool] = {}
        self._told: dict[str, PeerState] = {}
        self._changes: list[Change] = []

    # What the shell drives.

    def opened(self, peer: str, stream: str, now_s: float) -> None:
        """A stream to the peer stands."""
        self._run(now_s)
        before = self._contacts.get(peer)
        if before is None:
            seq = int(self._dice.integers(1, 1 << 40))  # so that an echo of another life fits nothing
            before = Contact(phi.begin(self._clock.ran_s), seq)
        elif before.has_beaten and not before.streams:
            self._changes.append(Change(peer, "reconnect", f"a stream to {peer} stands again"))
        self._contacts[peer] = replace(before, streams=before.streams | {stream}, next_at_s=now_s, told=None)
        if not before.streams:
            rhythm = before.rhythm
            self._contacts[peer] = replace(
                self._contacts[peer],
                rhythm=replace(rhythm, last_beat_s=self._clock.ran_s, last_heard_s=self._clock.ran_s),
            )
            if peer in self._doubts:
                self._doubts[peer] = replace(self._doubts[peer], needs_back=1)
        self._members = membership.repeat(self._members)

    def ended(self, peer: str, words: str, now_s: float, stream: str = "") -> None:
        """A stream to the peer is gone; without its name, all of them."""
        self._run(now_s)
        contact = self._contacts.get(peer)
        if contact is None:
            return
        streams = contact.streams - {stream} if stream else frozenset[str]()
        self._contacts[peer] = replace(contact, streams=streams)
        if not streams and contact.has_beaten:
            self._doubt(peer, f"its stream ended: {words}" if words else "its stream ended")
        self._tell(peer)

    def seen(self, peer: str, now_s: float) -> None:
        """Any other frame of the peer came: it is no silence, though a long answer holds its beats up."""
        self._run(now_s)
        contact = self._contacts.get(peer)
        if contact is not None and contact.streams:
            self._contacts[peer] = replace(contact, rhythm=phi.seen(contact.rhythm, self._clock.ran_s))

    def heard(self, peer: str, body: bytes, now_s: float) -> list[tuple[str, bytes]]:
        """What a peer's body calls for. Raises: InvalidInput, having changed nothing, for one that cannot be."""
        message = decode(body)
        self._run(now_s)
        if peer not in self._contacts:
            return []
        return [(to, encode(each)) for to, each in self._answer(peer, message, now_s)]

    def tick(self, now_s: float) -> list[tuple[str, bytes]]:
        """What to send now. Owed each `tick_ms`."""
        self._run(now_s)
        sent = list(self._beats(now_s))
        for peer, contact in self._contacts.items():
            if contact.streams and peer not in self._doubts and self._is_silent(contact):
                quiet_ms = phi.silence_ms(contact.rhythm, self._clock.ran_s)
                self._doubt(peer, f"silent for {quiet_ms:.0f} ms")
        sent += self._probes()
        vouched = {
            peer
            for peer, doubt in self._doubts.items()
            if doubts.is_vouched(doubt, self._clock.ran_s, self._config)
        }
        fresh = {peer for peer in self._contacts if self._is_fresh(peer)}
        self._members = membership.lapse(self._members, fresh | vouched, self._clock.ran_s, self._config)
        sent += self._pursue(now_s)
        for peer in self._members.others.keys() | self._contacts.keys():
            self._tell(peer)
        return [(to, encode(each)) for to, each in sent]

    def changes(self) -> list[Change]:
        """What happened since the last call."""
        changes, self._changes = self._changes, []
        return changes

    # What the node says of itself, and wants.

    def report(self, vitals: Vitals) -> None:
        """This node's own vitals, to ride on its beats."""
        self._vitals = vitals

    def seek(self, role: str) -> None:
        """Try to lead a role from now on. Raises: InvalidInput where no voters are named."""
        if not self._config.voters:
            raise InvalidInput("health.voters is empty: name the clouds whose grants make a leader")
        if not 0 < len(role) <= _MAX_NAME:
            raise InvalidInput(f"a role's name must have 1 to {_MAX_NAME} characters, not {len(role)}")
        self._bids.setdefault(role, leases.Bid(role, self._life))

    def resign(self, role: str, now_s: float) -> list[tuple[str, bytes]]:
        """Lead the role no more, at once, and let others."""
        self._run(now_s)
        bid = self._bids.pop(role, None)
        if bid is None:
            return []
        _, release = leases.resign(bid)
        sent = list(self._to_voters(release, now_s))
        self._tell_role(role, now_s)
        return [(to, encode(each)) for to, each in sent]

    # What others read.

    def leads(self, role: str, now_s: float) -> bool:
        """Whether this node leads the role at this very instant. Ask right before each act."""
        bid = self._bids.get(role)
        return bid is not None and leases.leads(bid, now_s, self._config)

    def peers(self) -> list[str]:
        return sorted({*self._members.others, *list(self._contacts)})

    def state(self, peer: str) -> PeerState:
        return self._judged(peer)[0]

    def figures(self, peer: str) -> Figures:
        """Also of a peer that is unknown: nothing is known of it."""
        contact = self._contacts.get(peer)
        state, words = self._judged(peer)
        if contact is None:
            return Figures(state, words, None, None, 0.0, 0, None, 0.0, 0.0)
        return Figures(
            state,
            words,
            lines.quantile(contact.rtts_ms, 0.5),
            lines.quantile(contact.rtts_ms, 0.95),
            lines.jitter_ms(contact.rtts_ms),
            len(contact.rtts_ms),
            contact.vitals,
            phi.silence_ms(contact.rhythm, self._clock.ran_s),
            phi.phi(contact.rhythm, self._clock.ran_s, self._config),
        )

    # How.

    def _run(self, now_s: float) -> None:
        self._clock = phi.run_on(self._clock, now_s, self._config)

    def _is_silent(self, contact: Contact) -> bool:
        return phi.is_silent(contact.rhythm, self._clock.ran_s, self._config)

    def _is_fresh(self, peer: str) -> bool:
        contact = self._contacts.get(peer)
        return (
            contact is not None
            and bool(contact.streams)
            and contact.rhythm.num_beats > 0
            and peer not in self._doubts
        )

    def _judged(self, peer: str) -> tuple[PeerState, str]:
        """Our own ears first, gossip after."""
        known = self._members.others.get(peer)
        claimed = known.claim.standing if known is not None else None
        contact, doubt = self._contacts.get(peer), self._doubts.get(peer)
        if doubt is not None:
            if claimed is Standing.DEAD:
                return PeerState.DEAD, f"{doubt.why}, and nobody hears it"
            if doubts.is_vouched(doubt, self._clock.ran_s, self._config):
                return PeerState.SUSPECT, f"{doubt.why}; others hear it: {doubt.witness}"
            return PeerState.SUSPECT, doubt.why
        if contact is not None and self._is_fresh(peer):
            if contact.standing is Standing.DRAINING:
                return PeerState.DRAINING, "it finishes what it has"
            if contact.illness.is_ill:
                return PeerState.ILL, contact.illness.words
            if contact.standing is Standing.ILL:
                return PeerState.ILL, "it says so itself"
            return PeerState.WELL, "it beats"
        if claimed is None:
            return PeerState.UNKNOWN, "never heard of"
        return _STATES[claimed], "by hearsay"

    def _tell(self, peer: str) -> None:
        state, words = self._judged(peer)
        before = self._told.get(peer, PeerState.UNKNOWN)
        if state is before:
            return
        self._told[peer] = state
        if before is PeerState.UNKNOWN:
            self._changes.append(Change(peer, "joined", f"{peer} is known now"))
        self._changes.append(Change(peer, state.value, words))

    def _doubt(self, peer: str, why: str) -> None:
        if peer not in self._doubts:
            self._doubts[peer] = doubts.Doubt(why, self._clock.ran_s, needs_back=self._config.num_back)

    def _beats(self, now_s: float) -> Iterator[tuple[str, Message]]:
        if (now_s - self._judged_s) * 1e3 >= self._config.beat_ms:
            self._judged_s = now_s
            self._illness = judge(self._illness, self._vitals, None, self._clock.ran_s, self._config)
        standing = Standing.ILL if self._illness.is_ill else Standing.ALIVE
        standing = Standing.DRAINING if self._vitals.is_draining else standing
        self._members = membership.declare(self._members, standing)
        for peer, contact in list(self._contacts.items()):
            if not lines.is_due(contact, now_s, self._config):
                continue
            self._members, claims = membership.pick(self._members, peer, self._config)
            self._contacts[peer], beat = lines.beat_out(
                contact, self._members.me, self._life, self._vitals, claims, now_s, self._config
            )
            yield peer, beat

    def _probes(self) -> Iterator[tuple[str, Message]]:
        ran_s = self._clock.ran_s
        fresh = sorted(peer for peer in self._contacts if self._is_fresh(peer))
        for peer, doubt in list(self._doubts.items()):
            self._doubts[peer], asked = doubts.ask(doubt, fresh, ran_s, self._config)
            for other in asked:
                yield other, Probe(self._doubts[peer].token, peer)
            if doubts.is_shared(doubt, ran_s, self._config):
                self._members = membership.suspect(self._members, peer, ran_s, self._config)

    def _answer(self, peer: str, message: Message, now_s: float) -> Iterator[tuple[str, Message]]:
        match message:
            case Beat():
                self._take(peer, message, now_s)
            case Probe(token, node):
                age_ms = -1
                if self._is_fresh(node):
                    age_ms = round(phi.silence_ms(self._contacts[node].rhythm, self._clock.ran_s))
                yield peer, Witness(token, node, age_ms)
            case Witness(token, node, age_ms):
                if node in self._doubts:
                    self._doubts[node] = doubts.heard_by(
                        self._doubts[node], peer, token, age_ms, self._clock.ran_s, self._config
                    )
            case Ask():
                if self._members.me.node in self._config.voters:
                    self._ballot, grant = leases.vote(self._ballot, peer, message, now_s, self._config)
                    yield peer, grant
            case Grant():
                bid = self._bids.get(message.role)
                if bid is not None:
                    bid, release = leases.answered(bid, peer, message, now_s, self._config)
                    self._bids[message.role] = bid
                    if release is not None:
                        yield peer, release
                    self._tell_role(message.role, now_s)
            case Release():
                self._ballot = leases.free(self._ballot, peer, message)
            case _:
                assert_never(message)

    def _take(self, peer: str, beat: Beat, now_s: float) -> None:
        ran_s = self._clock.ran_s
        contact = self._contacts[peer]
        after = lines.beat_in(contact, beat, self._clock, now_s, self._config)
        if after is None:
            return
        self._contacts[peer] = after
        doubt = self._doubts.get(peer)
        if doubt is not None and contact.streams:
            back = doubts.beat_back(doubt, ran_s, self._config)
            if back is None:
                del self._doubts[peer]
            else:
                self._doubts[peer] = back
        for claim in (Claim(peer, beat.incarnation, beat.standing), *beat.claims):
            self._learn(peer, claim)
        self._tell(peer)

    def _learn(self, teller: str, claim: Claim) -> None:
        before = self._members.others.get(claim.node)
        self._members = membership.merge(self._members, claim, self._clock.ran_s, self._config)
        doubt = self._doubts.get(claim.node)
        if doubt is None or before is None or claim.node == teller:
            return
        # A higher incarnation comes from the node itself: it lives, wherever we heard of it.
        if claim.incarnation > before.claim.incarnation and claim.standing < Standing.SUSPECT:
            self._doubts[claim.node] = replace(doubt, witness=teller, witness_s=self._clock.ran_s)

    def _pursue(self, now_s: float) -> Iterator[tuple[str, Message]]:
        for role in list(self._bids):
            self._bids[role], message = leases.pursue(
                self._bids[role], now_s, float(self._dice.random()), self._config
            )
            if message is not None:
                yield from self._to_voters(message, now_s)
            self._tell_role(role, now_s)

    def _to_voters(self, message: Ask | Release, now_s: float) -> Iterator[tuple[str, Message]]:
        me = self._members.me.node
        for voter in self._config.voters:
            if voter != me:
                contact = self._contacts.get(voter)
                if contact is not None and contact.streams:
                    yield voter, message
            elif isinstance(message, Release):
                self._ballot = leases.free(self._ballot, me, message)
            else:
                self._ballot, grant = leases.vote(self._ballot, me, message, now_s, self._config)
                bid, _ = leases.answered(self._bids[message.role], me, grant, now_s, self._config)
                self._bids[message.role] = bid

    def _tell_role(self, role: str, now_s: float) -> None:
        is_leading = self.leads(role, now_s)
        if is_leading != self._leading.get(role, False):
            self._leading[role] = is_leading
            me = self._members.me.node
            words = f"{me} leads {role}" if is_leading else f"{me} leads {role} no more"
            self._changes.append(Change(me, "leads" if is_leading else "follows", words))
