"""Who leads: grants of a majority of voters, each for one lease, so that two nodes never lead at once.

Leases as in Gray and Cheriton (SOSP 1989), held of a majority. A voter counts a lease from granting it, by its own
monotonic clock, and grants no other node before its end. The holder counts it from *sending* its request, and for less:
lease · (1 − drift) / (1 + drift), so that it ends first however the two clocks drift. A voter that has restarted
has forgotten what it granted and grants nothing for one lease. No message's order, repetition or loss matters for
this; they cost time only. The clock must run on while the machine is suspended.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from htfi.domain.errors import InvalidInput
from htfi.scheduling.health.config import NUM_ROLES, HealthConfig
from htfi.scheduling.health.messages import MAX_NAME, LeaseGrant, LeaseRelinquish, LeaseRequest

_NUM_OPEN_REQUESTS = 8  # that may still be answered
_ROUND_SHARE = 0.25  # of a lease: a round of asks, and between renewals


class HeldLease(NamedTuple):
    """Who holds a role, by which start of its process, up to which of its asks, until when by the voter's clock."""

    holder: str
    life: int
    seq: int
    until_s: float


@dataclass(frozen=True, slots=True)
class VoterState:
    """A voter: when it started, and what it granted."""

    started_s: float
    granted: Mapping[str, HeldLease] = field(default_factory=dict[str, HeldLease])


def vote_on_request(
    voter_state: VoterState, candidate: str, request: LeaseRequest, now_s: float, config: HealthConfig
) -> tuple[VoterState, LeaseGrant]:
    """The answer to an ask. The same holder's lease is renewed; anybody else waits for its end."""
    silent_s = voter_state.started_s + config.lease_ms / 1e3 - now_s
    if silent_s > 0.0:
        return voter_state, _make_denial(request, "", silent_s)
    granted = {role: each for role, each in voter_state.granted.items() if each.until_s > now_s}
    held = granted.get(request.role)
    if held is not None and (held.holder, held.life) != (candidate, request.life):
        return voter_state, _make_denial(request, held.holder, held.until_s - now_s)
    if held is None and len(granted) >= NUM_ROLES:
        return voter_state, _make_denial(request, "", config.lease_ms / 1e3)
    # A late ask must not lower the number, or the release that once followed it would free a newer grant.
    seq = max(request.seq, held.seq) if held is not None else request.seq
    granted[request.role] = HeldLease(candidate, request.life, seq, now_s + config.lease_ms / 1e3)
    return replace(voter_state, granted=granted), LeaseGrant(
        request.role, request.life, request.seq, True, candidate, 0
    )


def free_lease(voter_state: VoterState, holder: str, release: LeaseRelinquish) -> VoterState:
    """The holder gives back what it was granted up to an ask."""
    held = voter_state.granted.get(release.role)
    if held is None or (held.holder, held.life) != (holder, release.life) or held.seq > release.seq:
        return voter_state
    return replace(
        voter_state,
        granted={role: each for role, each in voter_state.granted.items() if role != release.role},
    )


def _make_denial(request: LeaseRequest, holder: str, left_s: float) -> LeaseGrant:
    return LeaseGrant(request.role, request.life, request.seq, False, holder, math.ceil(left_s * 1e3))


@dataclass(frozen=True, slots=True)
class LeaseBid:
    """One node's wish to lead a role. Times by its own clock.

    `asked` are the asks that may still be answered (number and sending), `valid` until when each voter's grant counts.
    """

    role: str
    life: int
    seq: int = 0
    asked: tuple[tuple[int, float], ...] = ()
    valid: Mapping[str, float] = field(default_factory=dict[str, float])
    denied: Mapping[str, float] = field(default_factory=dict[str, float])  # when each voter may grant again
    next_s: float = -math.inf
    is_round_open: bool = False
    holder: str = ""  # who leads, as the last denial had it


def lease_end_s(bid: LeaseBid, config: HealthConfig) -> float:
    """When a majority's grants end, by this node's clock; −inf where there never was one."""
    ends = sorted((bid.valid[voter] for voter in config.voters if voter in bid.valid), reverse=True)
    majority = len(config.voters) // 2 + 1
    return ends[majority - 1] if len(ends) >= majority else -math.inf


def holds_lease(bid: LeaseBid, now_s: float, config: HealthConfig) -> bool:
    return now_s < lease_end_s(bid, config)


def next_lease_message(
    bid: LeaseBid, now_s: float, jitter: float, config: HealthConfig
) -> tuple[LeaseBid, LeaseRequest | LeaseRelinquish | None]:
    """What to send to all voters now: an ask when it is time, a release when a round has failed, or nothing.

    `jitter` 0–1: after a failed round candidates wait for different times, or they would split the voters again.
    """
    lease_s = config.lease_ms / 1e3
    if holds_lease(bid, now_s, config):
        if now_s < bid.next_s:
            return bid, None
        return _make_request(bid, now_s, lease_s)
    is_over = now_s >= bid.next_s
    if bid.is_round_open and (is_over or _is_lost(bid, config)):
        # Grants of a minority make no leader and block other candidates.
        wait_s = max(0.0, _majority_possible_s(bid, config) - now_s) if _is_lost(bid, config) else 0.0
        wait_s = min(wait_s, lease_s) + (0.02 + jitter) * _ROUND_SHARE * lease_s
        failed = replace(bid, asked=(), valid={}, denied={}, next_s=now_s + wait_s, is_round_open=False)
        return failed, LeaseRelinquish(bid.role, bid.life, bid.seq)
    if not is_over:
        return bid, None
    return _make_request(replace(bid, denied={}), now_s, lease_s)


def receive_grant(
    bid: LeaseBid, voter: str, grant: LeaseGrant, now_s: float, config: HealthConfig
) -> tuple[LeaseBid, LeaseRelinquish | None]:
    """A voter's answer. A grant that is no longer wanted is given back at once."""
    if voter not in config.voters or grant.life != bid.life:
        return bid, None
    sent_s = next((sent for seq, sent in bid.asked if seq == grant.seq), None)
    if sent_s is None:
        is_unwanted = grant.is_granted and grant.seq <= bid.seq and not bid.asked
        return bid, LeaseRelinquish(bid.role, bid.life, grant.seq) if is_unwanted else None
    if not grant.is_granted:
        if grant.seq != bid.seq:
            return bid, None
        denied = {**bid.denied, voter: now_s + grant.remaining_ms / 1e3}
        return replace(bid, denied=denied, holder=grant.holder), None
    end_s = sent_s + config.lease_ms / 1e3 * (1.0 - config.clock_drift) / (1.0 + config.clock_drift)
    valid = {**bid.valid, voter: max(end_s, bid.valid.get(voter, -math.inf))}
    denied = {other: when for other, when in bid.denied.items() if other != voter}
    after = replace(bid, valid=valid, denied=denied)
    if holds_lease(after, now_s, config):
        after = replace(after, is_round_open=False, holder="")
    return after, None


def resign_bid(bid: LeaseBid) -> tuple[LeaseBid, LeaseRelinquish]:
    """Lead no more from now on. The release may be lost: leases end by themselves."""
    return replace(bid, asked=(), valid={}, denied={}, is_round_open=False), LeaseRelinquish(
        bid.role, bid.life, bid.seq
    )


def _make_request(bid: LeaseBid, now_s: float, lease_s: float) -> tuple[LeaseBid, LeaseRequest]:
    seq = bid.seq + 1
    asked = (*bid.asked[1 - _NUM_OPEN_REQUESTS :], (seq, now_s))
    after = replace(bid, seq=seq, asked=asked, next_s=now_s + _ROUND_SHARE * lease_s, is_round_open=True)
    return after, LeaseRequest(bid.role, bid.life, seq)


def _is_lost(bid: LeaseBid, config: HealthConfig) -> bool:
    """So many voters have denied that no majority is left."""
    return len(config.voters) - len(bid.denied) < len(config.voters) // 2 + 1


def _majority_possible_s(bid: LeaseBid, config: HealthConfig) -> float:
    """When enough of the voters that denied may grant, if no lease is renewed."""
    spare = len(config.voters) - len(config.voters) // 2 - 1
    ends = sorted(bid.denied.values())
    return ends[len(ends) - spare - 1]


class RoleLeases:
    """Bids and ballot of one life of a node. Messages go out with their receiver's name."""

    def __init__(self, node: str, life: int, config: HealthConfig, now_s: float) -> None:
        self._node = node
        self._life = life
        self._config = config
        self._voter = VoterState(now_s)
        self._bids: dict[str, LeaseBid] = {}
        self._sought: set[str] = set()
        self._was_leading: dict[str, bool] = {}

    def seek(self, role: str) -> None:
        """Raises: InvalidInput where no voters are named."""
        if not self._config.voters:
            raise InvalidInput("health.voters is empty: name the clouds whose grants make a leader")
        if not 0 < len(role) <= MAX_NAME:
            raise InvalidInput(f"a role's name must have 1 to {MAX_NAME} characters, not {len(role)}")
        # The number continues if the role was led before: a late grant must not pass for one of a new ask.
        self._bids.setdefault(role, LeaseBid(role, self._life))
        self._sought.add(role)

    def resign(self, role: str, now_s: float) -> list[tuple[str, LeaseRequest | LeaseRelinquish]]:
        """Effective at once: `leads` is False from now on, whether or not the messages arrive."""
        if role not in self._sought:
            return []
        self._sought.remove(role)
        self._bids[role], release = resign_bid(self._bids[role])
        return list(self._to_voters(release, now_s))

    def leads(self, role: str, now_s: float) -> bool:
        bid = self._bids.get(role)
        return bid is not None and holds_lease(bid, now_s, self._config)

    def tick(self, now_s: float, jitter: float) -> Iterator[tuple[str, LeaseRequest | LeaseRelinquish]]:
        for role in sorted(self._sought):
            self._bids[role], message = next_lease_message(self._bids[role], now_s, jitter, self._config)
            if message is not None:
                yield from self._to_voters(message, now_s)

    def receive(
        self, peer: str, message: LeaseRequest | LeaseGrant | LeaseRelinquish, now_s: float
    ) -> Iterator[tuple[str, LeaseGrant | LeaseRelinquish]]:
        if isinstance(message, LeaseGrant):
            bid = self._bids.get(message.role)
            if bid is not None:
                self._bids[message.role], release = receive_grant(bid, peer, message, now_s, self._config)
                if release is not None:
                    yield peer, release
        elif self._node not in self._config.voters:
            return
        elif isinstance(message, LeaseRelinquish):
            self._voter = free_lease(self._voter, peer, message)
        else:
            self._voter, grant = vote_on_request(self._voter, peer, message, now_s, self._config)
            yield peer, grant

    def leadership_changes(self, now_s: float) -> Iterator[tuple[str, bool, str]]:
        """Roles that this node has begun or ceased to lead since the last call, and their holder where known."""
        for role, bid in self._bids.items():
            is_leading = holds_lease(bid, now_s, self._config)
            if is_leading != self._was_leading.get(role, False):
                self._was_leading[role] = is_leading
                yield role, is_leading, bid.holder

    def _to_voters(
        self, message: LeaseRequest | LeaseRelinquish, now_s: float
    ) -> Iterator[tuple[str, LeaseRequest | LeaseRelinquish]]:
        for voter in self._config.voters:
            if voter != self._node:
                yield voter, message
            elif isinstance(message, LeaseRelinquish):
                self._voter = free_lease(self._voter, voter, message)
            else:
                self._voter, grant = vote_on_request(self._voter, voter, message, now_s, self._config)
                self._bids[message.role], _ = receive_grant(
                    self._bids[message.role], voter, grant, now_s, self._config
                )
