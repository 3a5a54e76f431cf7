"""Who does what to whom in one sentence, by its wording alone: names that no table holds, every voice and order."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.party_names import NamedSpan, name_spans, same_parties
from htfi.narrative.facts.party_roles import (
    _WORDINGS_BY_NAMES,  # pyright: ignore[reportPrivateUsage]
    roles_by_wording,
)
from htfi.narrative.facts.record import KINDS, ROLES, EventKind, PartyRole
from htfi.narrative.facts.role_assignment import assigned_roles
from role_cases import CASES, DEAL, LAWSUIT, RATING, TAKEOVER, parsed


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


_TABLE = _WORDINGS_BY_NAMES[-1][1]


def test_no_wording_that_a_text_holds_is_left_out() -> None:
    held = 0
    for _, marked in CASES:
        text, spans, _ = parsed(marked)
        lowered = re.sub(r"\s+", " ", text.lower())
        for number, one in enumerate(spans):
            lowered = lowered.replace(text[one.start : one.end].lower(), f"§{number}")
        possible = set(_TABLE.candidates(lowered))
        found = {
            place for place, one in enumerate(_TABLE.patterns) if re.search(one.text, lowered, one.flags)
        }
        assert found <= possible
        held += len(found)
    assert held >= len(CASES)


def test_every_wording_names_words_without_which_it_is_not_searched_for() -> None:
    assert len(_TABLE.patterns) > 200
    assert [one.text for one in _TABLE.patterns if not one.needed] == []


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
    roles = np.array([(word[2], 1.0 - word[2]) for word in words])
    return [text[one.start : one.end] for one in name_spans(text, [], tokens, roles)]


def test_a_commodity_that_its_verb_gives_away_is_named_without_it() -> None:
    text = "Gold slips as dollar firms"
    tokens = np.array([(0, 4), (5, 10)])
    found = name_spans(text, EntityLinker({}).mentions(text), tokens, np.array([(0.0, 1.0)] * 2))
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
