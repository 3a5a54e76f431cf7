"""Who leads: grants of a majority of voters, each for one lease, so that two nodes never lead at once. `watch` uses it.

Leases as in Gray and Cheriton (SOSP 1989), held of a majority. A voter counts a lease from granting it, by its own
monotonic clock, and grants nobody else before its end. The holder counts it from *sending* its ask, and for less:
lease · (1 − drift) / (1 + drift), so that it ends first however the two clocks drift. A voter that has started anew
has forgotten what it granted and grants nothing for one lease. No message's order, repetition or loss matters for
this; they cost time only. The clock must not stand still while the machine is suspended.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import Ask, Grant, Release

_NUM_ASKS = 8  # that may still be answered
_ROUND = 0.25  # of a lease: a round of asks, and between renewals


class Granted(NamedTuple):
    """Who holds a role, by which start of its process, up to which of its asks, until when by the voter's clock."""

    holder: str
    life: int
    seq: int
    until_s: float


@dataclass(frozen=True, slots=True)
class Ballot:
    """A voter: when it started, and what it granted."""

    started_s: float
    granted: Mapping[str, Granted] = field(default_factory=dict[str, Granted])


def vote(ballot: Ballot, asker: str, ask: Ask, now_s: float, config: HealthConfig) -> tuple[Ballot, Grant]:
    """The answer to an ask. The same holder's lease is renewed; anybody else waits for its end."""
    silent_s = ballot.started_s + config.lease_ms / 1e3 - now_s
    if silent_s > 0.0:
        return ballot, _denied(ask, "", silent_s)
    granted = {role: each for role, each in ballot.granted.items() if each.until_s > now_s}
    held = granted.get(ask.role)
    if held is not None and (held.holder, held.life) != (asker, ask.life):
        return ballot, _denied(ask, held.holder, held.until_s - now_s)
    if held is None and len(granted) >= config.num_roles:
        return ballot, _denied(ask, "", config.lease_ms / 1e3)
    # A late ask must not lower the number, or the release that once followed it would free a newer grant.
    seq = max(ask.seq, held.seq) if held is not None else ask.seq
    granted[ask.role] = Granted(asker, ask.life, seq, now_s + config.lease_ms / 1e3)
    return replace(ballot, granted=granted), Grant(ask.role, ask.life, ask.seq, True, asker, 0)


def free(ballot: Ballot, holder: str, release: Release) -> Ballot:
    """The holder gives back what it was granted up to an ask."""
    held = ballot.granted.get(release.role)
    if held is None or (held.holder, held.life) != (holder, release.life) or held.seq > release.seq:
        return ballot
    return replace(
        ballot, granted={role: each for role, each in ballot.granted.items() if role != release.role}
    )


def _denied(ask: Ask, holder: str, left_s: float) -> Grant:
    return Grant(ask.role, ask.life, ask.seq, False, holder, math.ceil(left_s * 1e3))


@dataclass(frozen=True, slots=True)
class Bid:
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


def until_s(bid: Bid, config: HealthConfig) -> float:
    """When a majority's grants end, by this node's clock; −inf where there never was one."""
    ends = sorted((bid.valid[voter] for voter in config.voters if voter in bid.valid), reverse=True)
    majority = len(config.voters) // 2 + 1
    return ends[majority - 1] if len(ends) >= majority else -math.inf


def leads(bid: Bid, now_s: float, config: HealthConfig) -> bool:
    return now_s < until_s(bid, config)


def pursue(bid: Bid, now_s: float, dice: float, config: HealthConfig) -> tuple[Bid, Ask | Release | None]:
    """What to send to all voters now: an ask when it is time, a release when a round has failed, or nothing.

    `dice` 0–1: after a failed round candidates wait for unlike times, or they would split the voters for ever.
    """
    lease_s = config.lease_ms / 1e3
    if leads(bid, now_s, config):
        if now_s < bid.next_s:
            return bid, None
        return _ask(bid, now_s, lease_s)
    is_over = now_s >= bid.next_s
    if bid.is_round_open and (is_over or _is_lost(bid, config)):
        # Grants of a minority help nobody and keep others out.
        wait_s = max(0.0, _sooner_s(bid, config) - now_s) if _is_lost(bid, config) else 0.0
        wait_s = min(wait_s, lease_s) + (0.02 + dice) * _ROUND * lease_s
        failed = replace(bid, asked=(), valid={}, denied={}, next_s=now_s + wait_s, is_round_open=False)
        return failed, Release(bid.role, bid.life, bid.seq)
    if not is_over:
        return bid, None
    return _ask(replace(bid, denied={}), now_s, lease_s)


def answered(
    bid: Bid, voter: str, grant: Grant, now_s: float, config: HealthConfig
) -> tuple[Bid, Release | None]:
    """A voter's answer. A grant that is no longer wanted is given back at once."""
    if voter not in config.voters or grant.life != bid.life:
        return bid, None
    sent_s = next((sent for seq, sent in bid.asked if seq == grant.seq), None)
    if sent_s is None:
        is_unwanted = grant.is_granted and grant.seq <= bid.seq and not bid.asked
        return bid, Release(bid.role, bid.life, grant.seq) if is_unwanted else None
    if not grant.is_granted:
        if grant.seq != bid.seq:
            return bid, None
        denied = {**bid.denied, voter: now_s + grant.left_ms / 1e3}
        return replace(bid, denied=denied, holder=grant.holder), None
    end_s = sent_s + config.lease_ms / 1e3 * (1.0 - config.clock_drift) / (1.0 + config.clock_drift)
    valid = {**bid.valid, voter: max(end_s, bid.valid.get(voter, -math.inf))}
    denied = {other: when for other, when in bid.denied.items() if other != voter}
    after = replace(bid, valid=valid, denied=denied)
    if leads(after, now_s, config):
        after = replace(after, is_round_open=False, holder="")
    return after, None


def resign(bid: Bid) -> tuple[Bid, Release]:
    """Lead no more from now on. The release may be lost: leases end by themselves."""
    return replace(bid, asked=(), valid={}, denied={}, is_round_open=False), Release(
        bid.role, bid.life, bid.seq
    )


def _ask(bid: Bid, now_s: float, lease_s: float) -> tuple[Bid, Ask]:
    seq = bid.seq + 1
    asked = (*bid.asked[1 - _NUM_ASKS :], (seq, now_s))
    after = replace(bid, seq=seq, asked=asked, next_s=now_s + _ROUND * lease_s, is_round_open=True)
    return after, Ask(bid.role, bid.life, seq)


def _is_lost(bid: Bid, config: HealthConfig) -> bool:
    """So many voters have denied that no majority is left."""
    return len(config.voters) - len(bid.denied) < len(config.voters) // 2 + 1


def _sooner_s(bid: Bid, config: HealthConfig) -> float:
    """When enough of those that denied may grant, if nobody renews."""
    spare = len(config.voters) - len(config.voters) // 2 - 1
    ends = sorted(bid.denied.values())
    return ends[len(ends) - spare - 1]
