"""Decides the roles of the parties of a text from what a network says of each, from wordings and from pairs.

Each of them is evidence: the logarithms of the network's probabilities are added to what a wording, and a pair of roles
that belong together, are worth. Names of one company have one role.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityMention, names_company
from htfi.narrative.facts.party_names import NamedSpan, is_no_firm, same_parties
from htfi.narrative.facts.party_roles import roles_by_wording
from htfi.narrative.facts.record import KINDS, ROLES, PartyRole
from htfi.narrative.headline_roles import CompanyRole, mention_roles

Floats = NDArray[np.float64]

_MIN_KIND = 0.15  # probability of a kind of event, from which its wordings count in full
_MIN_SHARE = 0.02  # added to every probability: the network may be wrong by so much
# Natural logarithms, set on labelled lines that the network had not seen.
_WORDING_GAIN = 3.5  # of a role that a wording of the text's kind of event gives
_OTHER_KIND_GAIN = 2.0  # the same, of another kind
_RULE_GAIN = 1.5  # of a role that a rule of `headline_roles` gives
_PAIR_GAIN = 2.0  # of two roles that belong together
_REGULATOR_LEAD = 1.5
_PAIRS = (
    (PartyRole.ACQUIRER, PartyRole.TARGET),
    (PartyRole.ACQUIRER, PartyRole.SELLER),
    (PartyRole.RATER, PartyRole.RATED),
    (PartyRole.PLAINTIFF, PartyRole.DEFENDANT),
    (PartyRole.SUPPLIER, PartyRole.CUSTOMER),
    (PartyRole.WINNER, PartyRole.CUSTOMER),
    (PartyRole.WINNER, PartyRole.LOSER),
    (PartyRole.INVESTOR, PartyRole.SUBJECT),
    (PartyRole.PARTNER, PartyRole.PARTNER),
    (PartyRole.SUBJECT, PartyRole.PEER),
    (PartyRole.REGULATOR, PartyRole.DEFENDANT),
)
_ROLE_OF_RULE = {
    CompanyRole.ACQUIRER: PartyRole.ACQUIRER,
    CompanyRole.TARGET: PartyRole.TARGET,
    CompanyRole.SELLER: PartyRole.SELLER,
    CompanyRole.PLAINTIFF: PartyRole.PLAINTIFF,
    CompanyRole.DEFENDANT: PartyRole.DEFENDANT,
    CompanyRole.SUPPLIER: PartyRole.SUPPLIER,
    CompanyRole.CUSTOMER: PartyRole.CUSTOMER,
    CompanyRole.ANALYST: PartyRole.RATER,
    CompanyRole.RATED: PartyRole.RATED,
    CompanyRole.INVESTOR: PartyRole.INVESTOR,
    CompanyRole.COMPARED: PartyRole.PEER,
}
_PLACES = {role: place for place, role in enumerate(ROLES)}
_PAIR_PLACES = [(_PLACES[role], _PLACES[other]) for role, other in _PAIRS]


class _Company(NamedTuple):
    """The names of one company, by their places in the list, and the evidence [roles] for its role."""

    names: list[int]
    evidence: list[float]


def assigned_roles(
    text: str, names: Sequence[NamedSpan], shares: Floats | Sequence[Floats], events: Floats
) -> list[tuple[PartyRole, float]]:
    """The role of each name with its probability, in order.

    Shapes: `shares` [names, roles], each row summing to 1; `events` [kinds].
    """
    if not names:
        return []
    evidence: Floats = np.log(np.asarray(shares) + _MIN_SHARE)  # [names, roles]
    firms = [place for place, one in enumerate(names) if _may_be_firm(text, one)]
    numbers = same_parties(text, [names[place] for place in firms])
    by_number: dict[int, list[int]] = {}
    for place, number in zip(firms, numbers, strict=True):
        by_number.setdefault(number, []).append(place)
    gains = _gains(text, [names[place] for place in firms], numbers, events)
    for number, places in by_number.items():
        known = evidence[places[0]]
        for place in places[1:]:
            known = known + evidence[place]
        if len(places) > 1:
            known = known / len(places)
        if number in gains:
            role, gain = gains[number]
            if role is PartyRole.PLAINTIFF and not any(names[place].symbols for place in places):
                surer = known[_PLACES[PartyRole.REGULATOR]] - known[_PLACES[PartyRole.PLAINTIFF]]
                role = PartyRole.REGULATOR if surer > _REGULATOR_LEAD else role  # an authority sues as such
            known[_PLACES[role]] += gain
        for place in places if len(places) > 1 else ():
            evidence[place] = known
    likeliest: list[int] = evidence.argmax(axis=1).tolist()
    powers = np.exp(evidence - np.maximum.reduce(evidence, axis=1, keepdims=True))
    wholes = np.add.reduce(powers, axis=1)
    if len(by_number) > 1:
        companies = [_Company(places, evidence[places[0]].tolist()) for places in by_number.values()]
        for company, role in _best_pair(companies):
            for place in company.names:
                likeliest[place] = role
    return [(ROLES[role], float(powers[place, role] / wholes[place])) for place, role in enumerate(likeliest)]


def _may_be_firm(text: str, name: NamedSpan) -> bool:
    """Whether a name may be that of a firm or an authority, not of an index, a nation or a kind of goods."""
    if name.symbols:
        written = text[name.start : name.end]
        return any(names_company(symbol, written) for symbol in name.symbols)
    return not is_no_firm(text, name)


def _gains(
    text: str, firms: Sequence[NamedSpan], numbers: Sequence[int], events: Floats
) -> dict[int, tuple[PartyRole, float]]:
    """What wordings and rules say of the companies: the role, and what it is worth."""
    likely: list[int] = (events >= _MIN_KIND).nonzero()[0].tolist()
    kinds = {KINDS[place] for place in [*likely, int(events.argmax())]}
    spans = [one[:2] for one in firms]
    by_wording = roles_by_wording(text, spans, numbers, kinds)
    found = {number: (role, _OTHER_KIND_GAIN) for number, role in by_wording.of_any.items()}
    found |= {number: (role, _WORDING_GAIN) for number, role in by_wording.of_kinds.items()}
    if found.keys() >= set(numbers):
        return found
    mentions = [
        EntityMention(one.start, one.end, f"PARTY{number}")
        for one, number in zip(firms, numbers, strict=True)
    ]
    others = sorted(set(numbers) - found.keys())
    for number, ruled in zip(
        others, mention_roles(text, mentions, [f"PARTY{one}" for one in others]), strict=True
    ):
        if ruled in _ROLE_OF_RULE:
            found[number] = _ROLE_OF_RULE[ruled], _RULE_GAIN
    return found


def _best_pair(companies: Sequence[_Company]) -> list[tuple[_Company, int]]:
    """The two companies that most likely stand in roles that belong together, each with the place of its role; none
    where none likely do.
    """
    best, found = 0.0, list[tuple[_Company, int]]()
    likeliest = [max(one.evidence) for one in companies]
    for (one, own), (other, others) in permutations(zip(companies, likeliest, strict=True), 2):
        alone = own + others
        mine, theirs = one.evidence, other.evidence
        for place, other_place in _PAIR_PLACES:
            gain = mine[place] + theirs[other_place] - alone + _PAIR_GAIN
            if gain > best:
                best, found = gain, [(one, place), (other, other_place)]
    return found
