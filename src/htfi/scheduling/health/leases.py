"""Who leads: grants of a majority of voters, each for one lease, so that two nodes never lead at once. `watch` uses it.

Leases as in Gray and Cheriton (SOSP 1989), held of a majority. A voter counts a lease from granting it, by its own
monotonic clock, and grants no other node before its end. The holder counts it from *sending* its request, and for less:
lease · (1 − drift) / (1 + drift), so that it ends first however the two clocks drift. A voter that has restarted
has forgotten what it granted and grants nothing for one lease. No message's order, repetition or loss matters for
this; they cost time only. The clock must run on while the machine is suspended.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from htfi.scheduling.health.config import NUM_ROLES, HealthConfig
from htfi.scheduling.health.messages import LeaseGrant, LeaseRelinquish, LeaseRequest

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
