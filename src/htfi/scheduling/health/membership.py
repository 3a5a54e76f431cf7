"""What is claimed of every node, by gossip: merging claims, passing them on, letting suspicions become deaths.

`monitor` uses it. The idea is SWIM's (Das, Gupta, Motivala, DSN 2002; suspicion and incarnations its section 4.2), but
for the probes: heartbeats run on all streams, and claims travel with them. A claim is ordered by (incarnation,
status) and merging keeps the greatest, so neither order nor repetition of gossip matters. Times are seconds on the
observer's running clock.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from htfi.scheduling.health.config import FORGET_MS, NUM_CLAIMS, NUM_MEMBERS, SPREAD, HealthConfig
from htfi.scheduling.health.messages import MAX_INCARNATION, MembershipClaim, NodeStatus


class KnownClaim(NamedTuple):
    """A claim, since when this node has held it, and in how many bodies it was passed on."""

    claim: MembershipClaim
    since_s: float
    num_passed: int = 0


@dataclass(frozen=True, slots=True)
class MembershipTable:
    """This node's own claim, and what it holds of the others."""

    me: MembershipClaim
    others: Mapping[str, KnownClaim]
    round_at: int = 0  # which claim goes round next, hot or not, so that none is ever missed for good


def wins(new: MembershipClaim, old: MembershipClaim) -> bool:
    return (new.incarnation, new.status) > (old.incarnation, old.status)


def declare_status(members: MembershipTable, status: NodeStatus) -> MembershipTable:
    """This node's status as it sees itself. A change raises its incarnation, so that it wins everywhere."""
    if status == members.me.status:
        return members
    return replace(members, me=MembershipClaim(members.me.node, members.me.incarnation + 1, status))


def merge(members: MembershipTable, claim: MembershipClaim, ran_s: float) -> MembershipTable:
    """The members after a claim; the same object where nothing is new.

    A claim about this node itself that is not its own is refuted: by an incarnation above the claimed one.
    """
    me = members.me
    if claim.node == me.node:
        if not wins(claim, me) or claim.incarnation >= MAX_INCARNATION:
            return members
        return replace(members, me=MembershipClaim(me.node, claim.incarnation + 1, me.status))
    known = members.others.get(claim.node)
    if known is not None and not wins(claim, known.claim):
        return members
    others = dict(members.others)
    if known is None and len(others) >= NUM_MEMBERS and not _drop_oldest_dead(others):
        return members
    others[claim.node] = KnownClaim(claim, ran_s)
    return replace(members, others=others)


def choose_claims(
    members: MembershipTable, own_claim: MembershipClaim
) -> tuple[MembershipTable, tuple[MembershipClaim, ...]]:
    """The claims that ride on a heartbeat to a peer whose claim about itself is `own_claim`: first what is held of it
    instead, for it to refute (of its life before this one, too), then the least passed on, then the next in turn.
    """
    to = own_claim.node
    most = math.ceil(SPREAD * math.log2(len(members.others) + 2))
    hot = sorted(
        (known.num_passed, node) for node, known in members.others.items() if known.num_passed < most
    )
    chosen = [node for _, node in hot if node != to][:NUM_CLAIMS]
    about = members.others.get(to)
    if about is not None and about.claim != own_claim:
        chosen = [to, *chosen[: NUM_CLAIMS - 1]]
    others = members.others
    if chosen:
        passed = {node: others[node]._replace(num_passed=others[node].num_passed + 1) for node in chosen}
        others = {**others, **passed}
    names = list(others)
    if names:
        in_turn = names[members.round_at % len(names)]
        if in_turn not in chosen and in_turn != to:
            chosen.append(in_turn)
    after = replace(members, others=others, round_at=(members.round_at + 1) % max(1, len(names)))
    return after, tuple(others[node].claim for node in chosen)


def regossip(members: MembershipTable) -> MembershipTable:
    """Pass everything on again: a stream has opened, and its other end may have missed much."""
    return replace(
        members, others={node: known._replace(num_passed=0) for node, known in members.others.items()}
    )


def expire_suspicions(
    members: MembershipTable, alive: Set[str], ran_s: float, config: HealthConfig
) -> MembershipTable:
    """Suspicions that no node refuted in `suspect_ms` become deaths, but for nodes that are `alive` by heartbeats to
    this node or another; the long dead are forgotten.
    """
    changed: dict[str, KnownClaim] = {}
    forgotten: set[str] = set()
    for node, known in members.others.items():
        age_ms = (ran_s - known.since_s) * 1e3
        if known.claim.status is NodeStatus.SUSPECT and age_ms >= config.suspect_ms and node not in alive:
            changed[node] = KnownClaim(MembershipClaim(node, known.claim.incarnation, NodeStatus.DEAD), ran_s)
        elif known.claim.status is NodeStatus.DEAD and age_ms >= FORGET_MS and node not in alive:
            forgotten.add(node)
    if not (changed or forgotten):
        return members
    kept = {node: known for node, known in members.others.items() if node not in forgotten}
    return replace(members, others={**kept, **changed})


def suspect_node(members: MembershipTable, node: str, ran_s: float) -> MembershipTable:
    """Neither this node nor any that it can ask receives that node's heartbeats."""
    known = members.others.get(node)
    incarnation = known.claim.incarnation if known is not None else 0
    return merge(members, MembershipClaim(node, incarnation, NodeStatus.SUSPECT), ran_s)


def _drop_oldest_dead(others: dict[str, KnownClaim]) -> bool:
    """Drop the one that has been dead the longest; False where all are alive."""
    dead = [(known.since_s, node) for node, known in others.items() if known.claim.status is NodeStatus.DEAD]
    if dead:
        del others[min(dead)[1]]
    return bool(dead)
