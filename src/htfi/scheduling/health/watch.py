"""The watch that a node keeps over its peers: one state machine, which the node's shell drives and drains.

The shell calls `opened`, `ended` and `heard` as streams have it, `tick` each `tick_ms`, sends the bodies that they
return over `stream(peer)`, and shows the `changes`. All from one thread; `report` and what only reads (`state`,
`figures`, `peers`, `stream`, `leads`) may be called from any. `now_s` is one monotonic clock, which goes on while the
machine sleeps.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from numpy.random import Generator

from htfi.domain.errors import InvalidInput
from htfi.domain.peers import PeerState
from htfi.scheduling.health import contact as lines
from htfi.scheduling.health import doubt as doubts
from htfi.scheduling.health import membership, phi
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.contact import Contact, Figures
from htfi.scheduling.health.illness import Illness, judge
from htfi.scheduling.health.messages import (
    MAX_NAME,
    Beat,
    Claim,
    Message,
    Probe,
    Standing,
    Vitals,
    Witness,
    decode,
    encode,
    proper,
)
from htfi.scheduling.health.roles import Roles
from htfi.scheduling.health.verdict import figures_of, verdict

_NUM_CHANGES = 1_024  # kept for a shell that does not drain them


class Change(NamedTuple):
    """What a `PeerChange` tells, but for the time: a state, 'joined', 'reconnect', 'refused', 'leads', 'follows'."""

    peer: str
    what: str
    words: str


class Watch:
    """What one node knows of the others. `node` is its name by its certificate; the dice are its own."""

    def __init__(self, node: str, config: HealthConfig, dice: Generator, now_s: float) -> None:
        if not 0 < len(node) <= MAX_NAME:
            raise InvalidInput(f"a node's name must have 1 to {MAX_NAME} characters, not {len(node)}")
        self._config = config
        self._dice = dice
        self._life = int(dice.integers(1, 1 << 48))
        self._clock = phi.RunningClock(now_s)
        self._contacts: dict[str, Contact] = {}
        self._doubts: dict[str, doubts.Doubt] = {}
        self._members = membership.Members(Claim(node, 0, Standing.ALIVE), {})
        self._reported: Vitals = Vitals()
        self._vitals: Vitals = self._reported
        self._illness = Illness()
        self._judged_s = now_s
        self._roles = Roles(node, self._life, config, now_s)
        self._told: dict[str, PeerState] = {}
        self._changes: deque[Change] = deque(maxlen=_NUM_CHANGES)

    # What the shell drives.

    def opened(self, peer: str, stream: str, now_s: float) -> None:
        """A stream to the peer stands. The next tick sends the first beat over it."""
        self._run(now_s)
        if not 0 < len(peer) <= MAX_NAME:
            self._note(peer[:MAX_NAME], "refused", f"a name of {len(peer)} characters is not watched over")
            return
        before = self._contacts.get(peer)
        if before is None:
            # A random first number, so that an echo meant for another life of this node fits nothing.
            before = Contact(phi.begin(self._clock.ran_s), int(self._dice.integers(1, 1 << 40)))
        elif before.rhythm.num_beats and not before.streams:
            self._note(peer, "reconnect", f"a stream to {peer} stands again")
        elif not before.streams:
            before = replace(before, rhythm=phi.begin(self._clock.ran_s))
        streams = (*(each for each in before.streams if each != stream), stream)
        self._contacts[peer] = replace(before, streams=streams, next_at_s=now_s, told=None)
        if peer in self._doubts:  # a new stream is evidence of its own: one beat over it will do
            self._doubts[peer] = replace(self._doubts[peer], needs_back=1)
        self._members = membership.repeat(self._members)

    def ended(self, peer: str, words: str, now_s: float, stream: str = "") -> None:
        """A stream to the peer is gone; without its name, all of them."""
        self._run(now_s)
        contact = self._contacts.get(peer)
        if contact is None or not contact.streams:
            return
        streams = tuple(each for each in contact.streams if stream and each != stream)
        self._contacts[peer] = replace(contact, streams=streams)
        if not streams and contact.rhythm.num_beats:
            self._doubt(peer, f"its stream ended: {words}" if words else "its stream ended")
        self._tell(peer)

    def seen(self, peer: str, now_s: float) -> None:
        """Any other frame of the peer came: it is no silence, though a long answer holds its beats up."""
        self._run(now_s)
        contact = self._contacts.get(peer)
        if contact is not None and contact.streams and contact.rhythm.num_beats:
            self._contacts[peer] = replace(contact, rhythm=phi.seen(contact.rhythm, self._clock.ran_s))

    def heard(self, peer: str, body: bytes, now_s: float) -> list[tuple[str, bytes]]:
        """What a peer's body calls for. Raises: InvalidInput, having changed nothing, for one that cannot be."""
        message = decode(body)
        self._run(now_s)
        contact = self._contacts.get(peer)
        if contact is None or not contact.streams:
            return []
        return self._out(self._answer(peer, message, now_s))

    def tick(self, now_s: float) -> list[tuple[str, bytes]]:
        """What to send now. Owed each `tick_ms`."""
        self._run(now_s)
        sent = self._out(self._beats(now_s))
        for peer, contact in self._contacts.items():
            if not contact.streams or peer in self._doubts:
                continue
            if phi.is_silent(contact.rhythm, self._clock.ran_s, self._config):
                quiet_ms = phi.silence_ms(contact.rhythm, self._clock.ran_s)
                self._doubt(peer, f"silent for {quiet_ms:.0f} ms")
        sent += self._out(self._probes())
        self._lapse()
        sent += self._out(self._roles.tick(now_s, float(self._dice.random())))
        self._tell_turns(now_s)
        for peer in self.peers():
            self._tell(peer)
        return sent

    def changes(self) -> list[Change]:
        """What happened since the last call."""
        changes = list(self._changes)
        self._changes.clear()
        return changes

    # What the node says of itself, and wants.

    def report(self, vitals: Vitals) -> None:
        """This node's own vitals, to ride on its beats."""
        if vitals is not self._reported:
            self._reported, self._vitals = vitals, proper(vitals)

    def seek(self, role: str) -> None:
        """Try to lead a role from now on. Raises: InvalidInput where no voters are named."""
        self._roles.seek(role)

    def resign(self, role: str, now_s: float) -> list[tuple[str, bytes]]:
        """Lead the role no more, at once, and let others. What to send."""
        self._run(now_s)
        sent = self._out(self._roles.resign(role, now_s))
        self._tell_turns(now_s)
        return sent

    # What others read.

    def leads(self, role: str, now_s: float) -> bool:
        """Whether this node leads the role at this very instant. Ask right before each act."""
        return self._roles.leads(role, now_s)

    def peers(self) -> list[str]:
        """All that are known, by their streams or by hearsay."""
        return sorted({*list(self._members.others), *list(self._contacts)})

    def stream(self, peer: str) -> str | None:
        """The newest stream that stands to the peer."""
        contact = self._contacts.get(peer)
        return contact.streams[-1] if contact is not None and contact.streams else None

    def state(self, peer: str) -> PeerState:
        return self._verdict(peer)[0]

    def figures(self, peer: str) -> Figures:
        """Also of a peer that is unknown: nothing is known of it."""
        return figures_of(self._contacts.get(peer), *self._verdict(peer), self._clock.ran_s, self._config)

    # How.

    def _run(self, now_s: float) -> None:
        self._clock = phi.run_on(self._clock, now_s, self._config)

    def _out(self, messages: Iterable[tuple[str, Message]]) -> list[tuple[str, bytes]]:
        """As bytes, to those that can be reached."""
        return [(to, encode(each)) for to, each in messages if self.stream(to) is not None]

    def _is_fresh(self, peer: str) -> bool:
        return lines.has_beaten(self._contacts.get(peer)) and peer not in self._doubts

    def _verdict(self, peer: str) -> tuple[PeerState, str]:
        known = self._members.others.get(peer)
        return verdict(
            self._contacts.get(peer),
            self._doubts.get(peer),
            known.claim.standing if known is not None else None,
            self._clock.ran_s,
            self._config,
        )

    def _note(self, peer: str, what: str, words: str) -> None:
        self._changes.append(Change(peer, what, words))

    def _tell(self, peer: str) -> None:
        state, words = self._verdict(peer)
        before = self._told.get(peer, PeerState.UNKNOWN)
        if state is before:
            return
        self._told[peer] = state
        if before is PeerState.UNKNOWN:
            self._note(peer, "joined", f"{peer} is known now")
        self._note(peer, state.value, words)

    def _tell_turns(self, now_s: float) -> None:
        for role, is_leading, holder in self._roles.turns(now_s):
            me = self._members.me.node
            follows = f"{me} leads {role} no more" + (f": {holder} does" if holder else "")
            self._note(
                me, "leads" if is_leading else "follows", f"{me} leads {role}" if is_leading else follows
            )

    def _doubt(self, peer: str, why: str) -> None:
        before = self._doubts.get(peer)
        if before is None:
            self._doubts[peer] = doubts.Doubt(why, self._clock.ran_s, needs_back=self._config.num_back)
        else:
            self._doubts[peer] = replace(before, why=why, num_back=0)

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
            said = Claim(peer, contact.incarnation, contact.standing)
            self._members, claims = membership.pick(self._members, said, self._config)
            self._contacts[peer], beat = lines.beat_out(
                contact, self._members.me, self._life, self._vitals, claims, now_s, self._config
            )
            yield peer, beat

    def _probes(self) -> Iterator[tuple[str, Message]]:
        ran_s = self._clock.ran_s
        fresh = [peer for peer in self.peers() if self._is_fresh(peer)]
        for peer, doubt in list(self._doubts.items()):
            if self._told.get(peer) is PeerState.DEAD:
                continue
            self._doubts[peer], asked = doubts.ask(doubt, fresh, ran_s, self._config)
            for other in asked:
                yield other, Probe(self._doubts[peer].token, peer)
            if doubts.is_shared(doubt, ran_s, self._config):
                self._members = membership.suspect(self._members, peer, ran_s, self._config)

    def _lapse(self) -> None:
        ran_s = self._clock.ran_s
        alive = {peer for peer in self._contacts if self._is_fresh(peer)}
        alive |= {
            peer for peer, doubt in self._doubts.items() if doubts.is_vouched(doubt, ran_s, self._config)
        }
        before, self._members = self._members, membership.lapse(self._members, alive, ran_s, self._config)
        for peer in before.others.keys() - self._members.others.keys():
            if self.stream(peer) is None:
                self._contacts.pop(peer, None)
                self._doubts.pop(peer, None)
                self._told.pop(peer, None)

    def _answer(self, peer: str, message: Message, now_s: float) -> Iterator[tuple[str, Message]]:
        if isinstance(message, Beat):
            self._take(peer, message, now_s)
        elif isinstance(message, Probe):
            age_ms = -1
            if self._is_fresh(message.node):
                age_ms = round(phi.silence_ms(self._contacts[message.node].rhythm, self._clock.ran_s))
            yield peer, Witness(message.token, message.node, age_ms)
        elif isinstance(message, Witness):
            doubt = self._doubts.get(message.node)
            if doubt is not None:
                self._doubts[message.node] = doubts.heard_by(
                    doubt, peer, message.token, message.age_ms, self._clock.ran_s, self._config
                )
        else:
            yield from self._roles.heard(peer, message, now_s)
            self._tell_turns(now_s)

    def _take(self, peer: str, beat: Beat, now_s: float) -> None:
        after = lines.beat_in(self._contacts[peer], beat, self._clock, now_s, self._config)
        if after is None:  # heard before
            return
        self._contacts[peer] = after
        doubt = self._doubts.get(peer)
        if doubt is not None:
            back = doubts.beat_back(doubt, self._clock.ran_s, self._config)
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
