"""Who does what to whom in one sentence, by its wording alone: names that no table holds, every voice and order."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.party_names import NamedSpan, name_spans, same_parties
from htfi.narrative.facts.party_roles import roles_by_wording
from htfi.narrative.facts.record import KINDS, ROLES, EventKind, PartyRole
from htfi.narrative.facts.role_assignment import assigned_roles

TAKEOVER, RATING, LAWSUIT, DEAL, STAKE = (
    EventKind.ACQUISITION, EventKind.RATING, EventKind.LAWSUIT, EventKind.DEAL, EventKind.STAKE,
)  # fmt: skip

# A name is in brackets behind its role.
CASES = [
    (TAKEOVER, "acquirer[Ambrel] agrees to acquire target[Tosk Dental] for $900 mln"),
    (TAKEOVER, "target[Tosk Dental] to be acquired by acquirer[Ambrel]"),
    (TAKEOVER, "target[Tosk Dental] taken over by acquirer[Ambrel] in cash deal"),
    (TAKEOVER, "acquirer[Ambrel] lifts its bid for target[Tosk Dental]"),
    (TAKEOVER, "target[Tosk Dental] spurns raised acquirer[Ambrel] offer"),
    (TAKEOVER, "target[Tosk Dental] accepts $900 mln bid from acquirer[Ambrel]"),
    (TAKEOVER, "acquirer[Ambrel] drops target[Tosk Dental] takeover"),
    (TAKEOVER, "target[Tosk Dental] rockets 40% on acquirer[Ambrel]'s buyout proposal"),
    (TAKEOVER, "target[Tosk Dental] slumps as acquirer[Ambrel] withdraws offer"),
    (TAKEOVER, "acquirer[Ambrel] backs out of target[Tosk Dental] deal"),
    (TAKEOVER, "acquirer[Ambrel] outbids loser[Fennimor] for target[Tosk Dental]"),
    (TAKEOVER, "Purchase of target[Tosk Dental] by acquirer[Ambrel] cleared"),
    (EventKind.DIVESTITURE, "seller[Quorane] sells its clinics business to acquirer[Ambrel]"),
    (EventKind.DIVESTITURE, "acquirer[Ambrel] buys clinics unit from seller[Quorane]"),
    (STAKE, "investor[Pellard Capital] discloses 7.2% stake in subject[Quorane]"),
    (STAKE, "investor[Pellard Capital] trims subject[Quorane] stake"),
    (RATING, "rated[Quorane] cut to underweight at rater[Stell Marsh]"),
    (RATING, "rater[Stell Marsh] raises rated[Quorane] to outperform"),
    (RATING, "rater[Stell Marsh]: rated[Quorane] raised to buy"),
    (RATING, "rated[Quorane] sinks after rater[Stell Marsh] lowers price target"),
    (RATING, "rated[Quorane] is overvalued, says rater[Stell Marsh]"),
    (LAWSUIT, "plaintiff[Tresk] sues defendant[Wendal Audio] over patents"),
    (LAWSUIT, "defendant[Wendal Audio] sued by plaintiff[Tresk] over patents"),
    (LAWSUIT, "Judge throws out plaintiff[Tresk] lawsuit against defendant[Wendal Audio]"),
    (LAWSUIT, "Jury orders defendant[Wendal Audio] to pay plaintiff[Tresk] $40 mln"),
    (LAWSUIT, "Court rules in favour of plaintiff[Tresk] against defendant[Wendal Audio]"),
    (LAWSUIT, "defendant[Wendal Audio] gets dismissal of plaintiff[Tresk] claims"),
    (LAWSUIT, "plaintiff[Tresk] and defendant[Wendal Audio] end patent row"),
    (LAWSUIT, "Judge dismisses plaintiff[Tresk] appeal in defendant[Wendal Audio] case"),
    (LAWSUIT, "Jury awards plaintiff[Tresk] $40 mln in patent fight with defendant[Wendal Audio]"),
    (DEAL, "customer[Osk Lines] moves work from loser[Holmgard] to winner[Rovex]"),
    (EventKind.GUIDANCE, "subject[Holmgard]'s profit warning drags peer[Rovex] lower"),
    (TAKEOVER, "target[Tosk Dental] investors oppose acquirer[Ambrel] bid"),
    (TAKEOVER, "acquirer[Fennimor] tops loser[Ambrel] bid for target[Tosk Dental]"),
    (TAKEOVER, "target[Tosk Dental] falls as takeover by acquirer[Ambrel] stalls"),
    (DEAL, "winner[Rovex] beats loser[Holmgard] to Baltic ferry contract"),
    (DEAL, "loser[Holmgard] loses ferry contract to winner[Rovex]"),
    (DEAL, "Ferry contract goes to winner[Rovex]"),
    (DEAL, "customer[Osk Lines] chooses winner[Rovex] over loser[Holmgard]"),
    (DEAL, "customer[Osk Lines] ditches loser[Holmgard] for winner[Rovex]"),
    (DEAL, "winner[Rovex] snatches market share from loser[Holmgard]"),
    (DEAL, "supplier[Rovex] wins order from customer[Osk Lines]"),
    (DEAL, "customer[Osk Lines] awards ferry contract to supplier[Rovex]"),
    (DEAL, "customer[Osk Lines] buys six vessels from supplier[Rovex]"),
    (DEAL, "supplier[Rovex] to supply engines to customer[Osk Lines]"),
    (DEAL, "supplier[Rovex] chosen by customer[Osk Lines]"),
    (DEAL, "customer[Osk Lines] cancels supplier[Rovex] order"),
    (DEAL, "partner[Rovex] and partner[Holmgard] team up on ferries"),
    (DEAL, "partner[Rovex] forms alliance with partner[Holmgard]"),
    (TAKEOVER, "acquirer[Ambrel] calls off target[Tosk Dental] merger"),
    (TAKEOVER, "target[Tosk Dental] plunges after court bars acquirer[Ambrel] takeover"),
    (TAKEOVER, "target[Tosk Dental] says no to acquirer[Ambrel]"),
    (TAKEOVER, "target[Tosk Dental] urges holders to shun acquirer[Ambrel] bid"),
    (TAKEOVER, "target[Tosk Dental] gives in to acquirer[Ambrel]"),
    (TAKEOVER, "acquirer[Ambrel] backs off target[Tosk Dental]"),
    (TAKEOVER, "acquirer[Ambrel] buys seller[Quorane] clinics business"),
    (EventKind.DIVESTITURE, "seller[Quorane] spins target[Tosk Dental] off to acquirer[Ambrel]"),
    (STAKE, "investor[Pellard Capital] unloads 8 million subject[Quorane] shares"),
    (TAKEOVER, "investor[Pellard Capital] ploughs $4 bln into subject[Quorane]"),
    (RATING, "rater[Stell Marsh] names rated[Quorane] its favourite software stock"),
    (LAWSUIT, "defendant[Wendal Audio] fends off most of plaintiff[Tresk]'s antitrust claims"),
    (LAWSUIT, "defendant[Wendal Audio] pays plaintiff[Tresk] $40 mln to end recorder patent case"),
    (LAWSUIT, "plaintiff[Tresk] loses appeal against defendant[Wendal Audio] in patent fight"),
    (LAWSUIT, "defendant[Wendal Audio] did not infringe plaintiff[Tresk] patents, jury finds"),
    (LAWSUIT, "Jury clears defendant[Wendal Audio] of breaching plaintiff[Tresk] patents"),
    (LAWSUIT, "plaintiff[Tresk] shares double as jury awards it $40 mln from defendant[Wendal Audio]"),
    (LAWSUIT, "plaintiff[Tresk] demands $40 mln from defendant[Wendal Audio]"),
    (LAWSUIT, "defendant[Wendal Audio] fails to overturn plaintiff[Tresk]'s $40 mln verdict"),
    (DEAL, "winner[Rovex] wrests ferry work from loser[Holmgard]"),
    (DEAL, "winner[Rovex] wins customer[Osk Lines] ferry contract from loser[Holmgard]"),
    (DEAL, "winner[Rovex] pushes loser[Holmgard] aside to win ferry order"),
    (DEAL, "loser[Holmgard] lags winner[Rovex] in ferry sales"),
    (DEAL, "winner[Rovex] takes loser[Holmgard]'s crown as biggest yard"),
    (DEAL, "loser[Holmgard] sheds market share to winner[Rovex]"),
    (DEAL, "loser[Holmgard] protests award of ferry contract to winner[Rovex]"),
    (DEAL, "customer[Osk Lines] rejects loser[Holmgard] in favour of winner[Rovex]"),
    (EventKind.INDEX_CHANGE, "winner[Rovex] joins FTSE 100 while loser[Holmgard] leaves"),
    (EventKind.INDEX_CHANGE, "loser[Holmgard] makes way for winner[Rovex] in benchmark index"),
    (DEAL, "customer[Osk Lines] to stop buying supplier[Rovex] engines"),
    (DEAL, "customer[Osk Lines] signs engine supply deal with supplier[Rovex]"),
    (DEAL, "customer[Osk Lines] halves purchases from supplier[Rovex]"),
    (DEAL, "partner[Rovex] and partner[Holmgard] to build battery plant"),
    (EventKind.GUIDANCE, "peer[Rovex] falls after rival subject[Holmgard] cuts outlook"),
    (EventKind.GUIDANCE, "subject[Holmgard] warning bodes ill for peer[Rovex]"),
    (LAWSUIT, "defendant[Wendal Audio] reaches $5 bln settlement with merchants"),
]  # fmt: skip
_MARK = re.compile(r"([a-z]+)\[([^\]]+)\]")


def parsed(marked: str) -> tuple[str, list[NamedSpan], list[PartyRole]]:
    text, after = "", 0
    spans: list[NamedSpan] = []
    for mark in _MARK.finditer(marked):
        text += marked[after : mark.start()]
        spans.append(NamedSpan(len(text), len(text) + len(mark[2]), ()))
        text, after = text + mark[2], mark.end()
    return text + marked[after:], spans, [PartyRole(mark[1]) for mark in _MARK.finditer(marked)]


def by_wording(text: str, spans: list[NamedSpan], kinds: set[EventKind]) -> list[PartyRole | None]:
    numbers = same_parties(text, spans)
    found = roles_by_wording(text, [one[:2] for one in spans], numbers, kinds).of_kinds
    return [found.get(number) for number in numbers]


@pytest.mark.parametrize(("kind", "marked"), CASES, ids=[marked for _, marked in CASES])
def test_each_party_has_the_role_that_the_wording_gives(kind: EventKind, marked: str) -> None:
    text, spans, roles = parsed(marked)
    assert by_wording(text, spans, {kind}) == roles


@pytest.mark.parametrize("write", [str.upper, str.title], ids=["capitals", "title"])
def test_capitals_change_no_role(write: Callable[[str], str]) -> None:
    text, spans, roles = parsed("target[Tosk Dental] to be acquired by acquirer[Ambrel]")
    assert by_wording(write(text), spans, {TAKEOVER}) == roles


def test_a_wording_of_another_kind_of_event_does_not_count() -> None:
    text, spans, _ = parsed("acquirer[Ambrel] eyes target[Tosk]")
    assert by_wording(text, spans, {TAKEOVER}) == [PartyRole.ACQUIRER, PartyRole.TARGET]
    assert by_wording(text, spans, {EventKind.INFLATION}) == [None, None]


def shares_of(role: PartyRole, share: float) -> NDArray[np.float64]:
    shares = np.full(len(ROLES), (1.0 - share) / (len(ROLES) - 1))
    shares[ROLES.index(role)] = share
    return shares


def events_of(kind: EventKind) -> NDArray[np.float64]:
    return np.array([float(one is kind) for one in KINDS])


def test_a_wording_counts_more_than_a_network_that_is_unsure() -> None:
    text, spans, roles = parsed("target[Tosk Dental] to be acquired by acquirer[Ambrel]")
    shares = [shares_of(PartyRole.ACQUIRER, 0.5), shares_of(PartyRole.TARGET, 0.5)]
    found = assigned_roles(text, spans, shares, events_of(TAKEOVER))
    assert [role for role, _ in found] == roles
    assert all(0.0 < sure < 1.0 for _, sure in found)


def test_a_network_that_is_sure_counts_more_than_a_wording_of_another_kind() -> None:
    text, spans, _ = parsed("acquirer[Ambrel] eyes target[Tosk]")
    shares = [shares_of(PartyRole.SUBJECT, 0.98), shares_of(PartyRole.PEER, 0.98)]
    found = assigned_roles(text, spans, shares, events_of(EventKind.INFLATION))
    assert [role for role, _ in found] == [PartyRole.SUBJECT, PartyRole.PEER]


def test_names_of_one_company_have_one_role() -> None:
    text, spans, _ = parsed("rated[Tosk Dental] cut to sell at rater[Stell]; rated[Tosk] slides")
    found = assigned_roles(text, spans, [shares_of(PartyRole.SUBJECT, 0.4)] * 3, events_of(RATING))
    assert [role for role, _ in found] == [PartyRole.RATED, PartyRole.RATER, PartyRole.RATED]


def test_nationalities_and_courts_take_no_place_in_a_wording() -> None:
    text, spans, _ = parsed("winner[German] court rejects plaintiff[Tresk] plea against defendant[Wendal]")
    found = assigned_roles(text, spans, [shares_of(PartyRole.SUBJECT, 0.3)] * 3, events_of(LAWSUIT))
    assert [role for role, _ in found[1:]] == [PartyRole.PLAINTIFF, PartyRole.DEFENDANT]


def test_a_company_whose_symbol_is_a_currency_has_a_role() -> None:
    text = "Nokia sued by Tresk over patents"
    spans = [NamedSpan(0, 5, ("NOK",)), NamedSpan(14, 19, ())]
    found = assigned_roles(text, spans, [shares_of(PartyRole.SUBJECT, 0.3)] * 2, events_of(LAWSUIT))
    assert [role for role, _ in found] == [PartyRole.DEFENDANT, PartyRole.PLAINTIFF]


def test_two_partners_belong_together() -> None:
    text, spans, _ = parsed("partner[Rovex], partner[Holmgard] talk about ferries")
    shares = [shares_of(PartyRole.PARTNER, 0.5), shares_of(PartyRole.SUBJECT, 0.5)]
    shares[1][ROLES.index(PartyRole.PARTNER)] = 0.3
    found = assigned_roles(text, spans, shares, events_of(DEAL))
    assert [role for role, _ in found] == [PartyRole.PARTNER, PartyRole.PARTNER]


def seen_names(text: str, seen: dict[str, float]) -> list[str]:
    """The names that are found where the network gives each word of `seen` its probability, and others none."""
    words = [
        (match.start(), match.end(), seen.get(match[0], 0.0)) for match in re.finditer(r"\w+|[^\w\s]", text)
    ]
    tokens = np.array([word[:2] for word in words])
    named = np.array([word[2] for word in words])
    return [text[one.start : one.end] for one in name_spans(text, [], tokens, named)]


def test_a_commodity_that_its_verb_gives_away_is_named_without_it() -> None:
    text = "Gold slips as dollar firms"
    tokens = np.array([(0, 4), (5, 10)])
    found = name_spans(text, EntityLinker({}).mentions(text), tokens, np.zeros(2))
    assert found[0] == NamedSpan(0, 4, ("GOLD",))


def test_names_have_clean_bounds() -> None:
    assert seen_names("Gold slips as dollar firms", {"Gold": 0.9, "slips": 0.6}) == ["Gold"]
    assert seen_names("Hask cuts U.S. rating", {"Hask": 0.9, "U": 0.9, "S": 0.9}) == ["Hask", "U.S."]
    assert seen_names("GOLD SLIPS AS DOLLAR FIRMS", {"GOLD": 0.9, "SLIPS": 0.6}) == ["GOLD"]
    assert seen_names("Suitor Orvane Oil raises bid", {"Suitor": 0.9, "Orvane": 0.9, "Oil": 0.9}) == [
        "Orvane Oil"
    ]
    assert seen_names("Rovex and Holmgard fall", {"Rovex": 0.9, "and": 0.7, "Holmgard": 0.9}) == [
        "Rovex",
        "Holmgard",
    ]
    assert seen_names("Upgrade at Hask & Co lifts it", {"Hask": 0.9, "&": 0.9, "Co": 0.4}) == ["Hask & Co"]
    assert seen_names("Deal for Osker Lines's ferries", {"Osker": 0.9, "Lines": 0.2, "s": 0.1}) == [
        "Osker Lines"
    ]
