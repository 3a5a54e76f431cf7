"""Nodes agree on each change of the policy bundle: it is activated once a majority of the named nodes has it on disk.

Single-decree Paxos for each position (Lamport, "Paxos Made Simple", 2001): of two changes for the same position at
most one is ever chosen, whatever is lost, late, repeated or reordered, and however often nodes crash, as long as what
was saved stays. So the changes that any two nodes go by are the same as far as both reach, and a minority that is cut
off activates nothing. Nodes are trusted not to lie; officers' signatures are checked by every node before it accepts.

Pure: each function returns the state after and what to do, in this order: save before anything is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_S
from htfi.governance.bundles.messages import (
    NO_BALLOT,
    AcceptReply,
    AcceptRequest,
    AdoptionMessage,
    AdoptionStatus,
    Ballot,
    BallotPromise,
    BallotRefusal,
    ChosenChange,
    PrepareBallot,
)

STATUS_EVERY_S = 0.25
# An attempt without a majority is given up after so long, one that was outbid sooner; later nodes wait longer, so that
# two do not outbid each other for ever.
RETRY_S = 0.8
OUTBID_RETRY_S = 0.15
MAX_CLOCK_DIFFERENCE_S = 60.0

# The objection to a change after those that are chosen, empty where there is none. Without a time only what holds for
# good is judged: a chosen change may have expired since.
CheckChange = Callable[[Sequence[str], str, int | None], str]


class AdoptionRecord(msgspec.Struct, frozen=True):
    """What a node must not forget: chosen changes in order, its promise and acceptance for the next position, and the
    change that it was asked to activate; an empty note: none.
    """

    chosen: tuple[str, ...] = ()
    promised: Ballot = NO_BALLOT
    accepted_in: Ballot = NO_BALLOT
    accepted: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class SaveRecord:
    """Make it durable before the actions after it."""

    record: AdoptionRecord


@dataclass(frozen=True, slots=True)
class ApplyChange:
    """Put a chosen change in force, unless that is done already."""

    note: str


@dataclass(frozen=True, slots=True)
class SendAdoption:
    """A message to another node."""

    to: str
    message: AdoptionMessage


@dataclass(frozen=True, slots=True)
class RefuseActivation:
    """The change that this node was asked to activate cannot be: say why."""

    why: str


AdoptionAction = SaveRecord | ApplyChange | SendAdoption | RefuseActivation


@dataclass(frozen=True, slots=True)
class ActivationAttempt:
    """A ballot of this node. `note` is empty until a majority has promised."""

    ballot: Ballot
    retry_at_s: float
    promises: Mapping[str, tuple[Ballot, str]]
    note: str = ""
    accepted_by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PeerAdoption:
    """What another node last said of itself; `ahead_s`: its clock less this node's."""

    num_chosen: int
    digest: str
    ahead_s: float


@dataclass(frozen=True, slots=True)
class AdoptionState:
    """One node's view. `digest` is that of the bundle it goes by."""

    node: str
    nodes: tuple[str, ...]
    record: AdoptionRecord = field(default_factory=AdoptionRecord)
    digest: str = ""
    peers: Mapping[str, PeerAdoption] = field(default_factory=dict[str, PeerAdoption])
    attempt: ActivationAttempt | None = None
    highest: int = 0  # number of a ballot seen for the next position
    status_at_s: float = 0.0

    @property
    def position(self) -> int:
        """The next one to be chosen."""
        return len(self.record.chosen) + 1

    @property
    def majority(self) -> int:
        return len(self.nodes) // 2 + 1


@dataclass(frozen=True, slots=True)
class AdoptionTime:
    """The instant of an event: seconds of a running clock, and what the machine's clock says (UTC ns)."""

    ran_s: float
    clock_ns: int


_Step = tuple[AdoptionState, list[AdoptionAction]]


def start_adoption(node: str, nodes: Sequence[str], record: AdoptionRecord) -> _Step:
    """A node that starts, with what it saved: what was chosen before a crash is applied again.

    Raises: InvalidInput where the nodes are fewer than two, or this one is not among them.
    """
    if len(set(nodes)) < 2 or len(set(nodes)) != len(nodes) or node not in nodes:
        raise InvalidInput(
            f"the nodes that agree on bundles must be two or more different names, {node} among them"
        )
    state = AdoptionState(node, tuple(sorted(nodes)), record)
    return state, [ApplyChange(note) for note in record.chosen]


def request_activation(state: AdoptionState, note: str, now: AdoptionTime, check: CheckChange) -> _Step:
    """Have a change chosen. It is attempted until it is, or cannot be any more, over restarts too."""
    if note in state.record.chosen:
        return state, []
    objection = check(state.record.chosen, note, now.clock_ns)
    if objection:
        return state, [RefuseActivation(objection)]
    if state.record.wanted and state.record.wanted != note:
        return state, [RefuseActivation("another change is being activated: wait for it")]
    return _attempt(replace(state, record=msgspec.structs.replace(state.record, wanted=note)), now)


def tick(state: AdoptionState, now: AdoptionTime, check: CheckChange) -> _Step:
    """Owed every few hundredths of a second."""
    actions: list[AdoptionAction] = []
    if now.ran_s >= state.status_at_s:
        state = replace(state, status_at_s=now.ran_s + STATUS_EVERY_S)
        actions = _send_all(state, _status(state, now))
    if not state.record.wanted or (state.attempt is not None and now.ran_s < state.attempt.retry_at_s):
        return state, actions
    objection = check(state.record.chosen, state.record.wanted, now.clock_ns)
    if objection:
        state, dropped = _drop_wanted(state, objection)
        return state, [*dropped, *actions]
    state, attempted = _attempt(state, now)
    return state, [*attempted, *actions]


def receive(
    state: AdoptionState, peer: str, message: AdoptionMessage, now: AdoptionTime, check: CheckChange
) -> _Step:
    """What a message of another node calls for. Of nodes that are not named nothing is taken."""
    if peer not in state.nodes or peer == state.node:
        return state, []
    if isinstance(message, AdoptionStatus):
        return _receive_status(state, peer, message, now)
    if message.position < state.position:  # decided already; what the other lacks
        if isinstance(message, AcceptReply | BallotPromise | BallotRefusal | ChosenChange):
            return state, []
        note = state.record.chosen[message.position - 1]
        return state, [SendAdoption(peer, ChosenChange(message.position, note))]
    if message.position > state.position:  # this node lacks some: its status asks for them
        return state, [SendAdoption(peer, _status(state, now))]
    match message:
        case PrepareBallot():
            return _receive_prepare(state, peer, message)
        case AcceptRequest():
            return _receive_accept(state, peer, message, check)
        case BallotPromise():
            return _receive_promise(state, peer, message)
        case AcceptReply():
            return _receive_reply(state, peer, message, now, check)
        case BallotRefusal():
            return _receive_refusal(state, message, now), []
        case ChosenChange():
            return _receive_chosen(state, peer, message, now, check)


def adoption_hold(state: AdoptionState) -> str:
    """Why this node must release nothing; empty where it may."""
    newest = max(state.peers.items(), key=lambda each: each[1].num_chosen, default=None)
    known = len(state.record.chosen)
    if newest is not None and newest[1].num_chosen > known:
        return (
            f"the quorum's newest bundle is not here: {newest[0]} has {newest[1].num_chosen} changes, "
            f"this node {known}"
        )
    ahead = sorted(each.ahead_s for each in state.peers.values())
    off = [each for each in ahead if not -MAX_CLOCK_DIFFERENCE_S <= each <= MAX_CLOCK_DIFFERENCE_S]
    if 2 * len(off) > len(state.nodes) - 1:
        middle = off[len(off) // 2]
        side = "behind" if middle > 0.0 else "ahead of"
        return f"this machine's clock is {abs(middle):.0f} s {side} the clocks of {len(off)} other nodes: set the clock"
    return ""


def _receive_status(state: AdoptionState, peer: str, message: AdoptionStatus, now: AdoptionTime) -> _Step:
    ahead_s = (message.clock_ns - now.clock_ns) / NS_PER_S
    reported = PeerAdoption(message.num_chosen, message.digest, ahead_s)
    before = state.peers.get(peer)
    # What a majority chose stays chosen: an older message that comes late must not end a hold.
    if before is not None and before.num_chosen > reported.num_chosen:
        reported = replace(reported, num_chosen=before.num_chosen)
    state = replace(state, peers={**state.peers, peer: reported})
    if message.num_chosen < len(state.record.chosen):
        position = message.num_chosen + 1
        return state, [SendAdoption(peer, ChosenChange(position, state.record.chosen[position - 1]))]
    if message.num_chosen > len(state.record.chosen):
        return state, [SendAdoption(peer, _status(state, now))]
    return state, []


def _receive_prepare(state: AdoptionState, peer: str, message: PrepareBallot) -> _Step:
    record = state.record
    if message.ballot < record.promised or message.ballot.node != peer:
        return state, [SendAdoption(peer, BallotRefusal(message.position, record.promised))]
    record = msgspec.structs.replace(record, promised=message.ballot)
    promise = BallotPromise(message.position, message.ballot, record.accepted_in, record.accepted)
    state = replace(state, record=record, highest=max(state.highest, message.ballot.number))
    return state, [SaveRecord(record), SendAdoption(peer, promise)]


def _receive_accept(state: AdoptionState, peer: str, message: AcceptRequest, check: CheckChange) -> _Step:
    record = state.record
    if message.ballot < record.promised or message.ballot.node != peer:
        return state, [SendAdoption(peer, BallotRefusal(message.position, record.promised))]
    # Without the time: a change that one node accepted and that expired since must not block its position for ever.
    if check(record.chosen, message.note, None):
        return state, []
    record = msgspec.structs.replace(
        record, promised=message.ballot, accepted_in=message.ballot, accepted=message.note
    )
    state = replace(state, record=record, highest=max(state.highest, message.ballot.number))
    return state, [SaveRecord(record), SendAdoption(peer, AcceptReply(message.position, message.ballot))]


def _receive_promise(state: AdoptionState, peer: str, message: BallotPromise) -> _Step:
    attempt = state.attempt
    if attempt is None or message.ballot != attempt.ballot or attempt.note:
        return state, []
    promises = {**attempt.promises, peer: (message.accepted_in, message.accepted)}
    return _ask_acceptance(replace(state, attempt=replace(attempt, promises=promises)))


def _ask_acceptance(state: AdoptionState) -> _Step:
    """Phase 2 once a majority has promised: with what one of them accepted in the highest ballot, if any did."""
    attempt, record = state.attempt, state.record
    if attempt is None or len(attempt.promises) < state.majority or record.promised != attempt.ballot:
        return state, []
    _, accepted = max(attempt.promises.values())
    note = accepted or record.wanted
    record = msgspec.structs.replace(record, accepted_in=attempt.ballot, accepted=note)
    attempt = replace(attempt, note=note, accepted_by=frozenset((state.node,)))
    state = replace(state, record=record, attempt=attempt)
    asked = _send_all(state, AcceptRequest(state.position, attempt.ballot, note))
    return state, [SaveRecord(record), *asked]


def _receive_reply(
    state: AdoptionState, peer: str, message: AcceptReply, now: AdoptionTime, check: CheckChange
) -> _Step:
    attempt = state.attempt
    if attempt is None or message.ballot != attempt.ballot or not attempt.note:
        return state, []
    attempt = replace(attempt, accepted_by=attempt.accepted_by | {peer})
    state = replace(state, attempt=attempt)
    if len(attempt.accepted_by) < state.majority:
        return state, []
    chosen = ChosenChange(state.position, attempt.note)
    state, actions = _choose(state, attempt.note, now, check)
    return state, [*actions, *_send_all(state, chosen)]


def _receive_refusal(state: AdoptionState, message: BallotRefusal, now: AdoptionTime) -> AdoptionState:
    state = replace(state, highest=max(state.highest, message.promised.number))
    attempt = state.attempt
    if attempt is None or message.promised <= attempt.ballot:
        return state
    retry_at_s = min(attempt.retry_at_s, now.ran_s + OUTBID_RETRY_S * _patience(state))
    return replace(state, attempt=replace(attempt, retry_at_s=retry_at_s))


def _patience(state: AdoptionState) -> float:
    return 1.0 + 0.5 * state.nodes.index(state.node)


def _receive_chosen(
    state: AdoptionState, peer: str, message: ChosenChange, now: AdoptionTime, check: CheckChange
) -> _Step:
    if check(state.record.chosen, message.note, None):
        return state, []
    state, actions = _choose(state, message.note, now, check)
    return state, [*actions, SendAdoption(peer, _status(state, now))]


def _choose(state: AdoptionState, note: str, now: AdoptionTime, check: CheckChange) -> _Step:
    chosen = (*state.record.chosen, note)
    wanted = "" if state.record.wanted == note else state.record.wanted
    objection = check(chosen, wanted, now.clock_ns) if wanted else ""
    record = AdoptionRecord(chosen, wanted="" if objection else wanted)
    state = replace(state, record=record, attempt=None, highest=0)
    refused = [RefuseActivation(f"another change was activated first: {objection}")] if objection else []
    return state, [SaveRecord(record), ApplyChange(note), *refused]


def _attempt(state: AdoptionState, now: AdoptionTime) -> _Step:
    """Phase 1, in a ballot above all that this node has seen; its own are never used twice, as it saves its promise."""
    ballot = Ballot(max(state.record.promised.number, state.highest) + 1, state.node)
    record = msgspec.structs.replace(state.record, promised=ballot)
    own = {state.node: (record.accepted_in, record.accepted)}
    attempt = ActivationAttempt(ballot, now.ran_s + RETRY_S * _patience(state), own)
    state = replace(state, record=record, attempt=attempt, highest=ballot.number)
    return state, [SaveRecord(record), *_send_all(state, PrepareBallot(state.position, ballot))]


def _drop_wanted(state: AdoptionState, why: str) -> _Step:
    record = msgspec.structs.replace(state.record, wanted="")
    return replace(state, record=record, attempt=None), [SaveRecord(record), RefuseActivation(why)]


def _status(state: AdoptionState, now: AdoptionTime) -> AdoptionStatus:
    return AdoptionStatus(len(state.record.chosen), state.digest, now.clock_ns)


def _send_all(state: AdoptionState, message: AdoptionMessage) -> list[AdoptionAction]:
    return [SendAdoption(node, message) for node in state.nodes if node != state.node]
