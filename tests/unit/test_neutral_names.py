"""Tests that texts which differ in names alone are read alike: they become one text with neutral names."""

from collections.abc import Sequence

import numpy as np
import pytest

from checks import nonempty
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.record import KINDS, ROLES, EventKind, PartyRole
from htfi.narrative.name_swaps import companies, nationalities, people, religions
from htfi.narrative.named_companies import NamedCompany, companies_in
from htfi.narrative.neutral_names import neutral_texts
from htfi.narrative.neutral_reader import NeutralFactReader
from htfi.narrative.neutral_scores import mean_scores, with_text_as_written

LINKER = EntityLinker({})
LINE = "German investor John Walsh says he sold his stake in Zorvane to a Muslim charity"


def neutral(text: str, symbol: str = "ZRV", name: str = "Zorvane") -> list[str]:
    return [one.text for one in neutral_texts(text, (symbol, name), LINKER)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("German investor John Walsh says he sold his stake in Apple to a Muslim charity", "Apple"),
        ("German investor Ingrid Solberg-Hansen says she sold her stake in Zorvane to a Muslim charity", "Zorvane"),
        ("Kenyan investor John Walsh says he sold his stake in Al-Hadar to a Jain charity", "Al-Hadar"),
        ("Finnish investor José O'Brien says he sold his stake in Quill Foods to a Shia charity", "Quill Foods"),
    ],
)  # fmt: skip
def test_texts_that_differ_in_names_alone_become_one_text(text: str, name: str) -> None:
    assert neutral(text, "SYM", name) == neutral(LINE)
    assert len(neutral(LINE)) > 1


def test_names_of_the_swap_test_are_no_neutral_names() -> None:
    swapped = (
        *companies(famous=True),
        *companies(famous=False),
        *people(),
        *religions()[1:],
        *nationalities()[1:],
    )
    assert not [name for name in swapped for text in neutral(LINE) if name in text]


def test_two_companies_have_two_names_and_names_of_one_company_have_one() -> None:
    (first, *_) = neutral("Microsoft sues Oracle; $MSFT falls", "MSFT", "")
    before, after = first.split(" sues ")
    assert after.startswith("Globex; ")
    assert after.endswith(f"; {before} falls")


def test_a_surname_by_itself_is_that_of_the_person() -> None:
    (first, *_) = neutral("Zorvane CEO Mary Brown quits; Brown will join Kelbrook")
    assert "Brown" not in first


def test_a_text_that_names_nobody_is_left() -> None:
    assert neutral_texts("Gold slips as dollar firms", ("XAU", "Gold"), LINKER) == []


def test_a_neutral_name_that_a_text_uses_for_another_is_not_used() -> None:
    texts = neutral("Zorvane to buy carmaker Acme Motors")
    assert not [text for text in texts if text.startswith("Acme")]


def test_spans_of_a_neutral_text_are_those_of_the_text() -> None:
    text = "Regulators fine Zorvane 400 million"
    for one in nonempty(neutral_texts(text, ("ZRV", "Zorvane"), LINKER)):
        words = [(place, place + len(word)) for word in one.text.split() for place in [one.text.index(word)]]
        spans = one.original(np.array([(0, 0), *words], np.int64)).tolist()
        assert [text[start:end] for start, end in spans] == ["", *text.split()]


def test_a_part_of_a_neutral_name_is_the_whole_name() -> None:
    (one, *_) = neutral_texts("Zorvane falls", ("ZRV", "Zorvane"), LINKER)
    part = one.original(np.array([(0, 2), (2, 4)], np.int64))
    assert part.tolist() == [[0, 7], [0, 7]]


class LetterNetwork:
    """A network for which every letter counts: the same text alone gives the same scores."""

    version = "letters"

    def __init__(self) -> None:
        self.read_texts: list[str] = []

    def read(self, texts: Sequence[str]) -> list[FactScores]:
        self.read_texts += texts
        return [self._scores(text) for text in texts]

    def _scores(self, text: str) -> FactScores:
        rng = np.random.Generator(np.random.PCG64(list(text.encode())))
        places = [(text.index(word), text.index(word) + len(word)) for word in dict.fromkeys(text.split())]
        sides = (rng.dirichlet(np.ones(size)) for size in (len(KINDS), 3, 3, 5, 3))
        return FactScores(
            *sides,
            spans=np.array(places, np.int64),
            roles=rng.dirichlet(np.ones(len(ROLES) + 1), len(places)),
            effects=rng.dirichlet(np.ones(3), len(places)),
        )


def test_facts_are_the_same_for_texts_that_differ_in_names_alone() -> None:
    reader = NeutralFactReader(LetterNetwork(), LINKER)
    first, second = reader.read(
        ["Zorvane cuts its outlook", "Kelbrook cuts its outlook"],
        asked=[("ZRV", "Zorvane"), ("KLB", "Kelbrook")],
    )
    assert (first.event, first.tone, first.axis, first.neutral) == (
        second.event,
        second.tone,
        second.axis,
        second.neutral,
    )
    (own,), (other,) = first.parties, second.parties
    assert (own.name, own.effect) == ("Zorvane", other.effect)
    assert first.text == "Zorvane cuts its outlook"
    usual = FactReader(LetterNetwork(), LINKER).read(
        ["Zorvane cuts its outlook", "Kelbrook cuts its outlook"]
    )
    assert usual[0].tone != usual[1].tone


def test_texts_that_differ_in_names_alone_are_read_once() -> None:
    network = LetterNetwork()
    texts = [f"{name} cuts its outlook" for name in companies(famous=False)]
    NeutralFactReader(network, LINKER).read(texts, asked=[("", name) for name in companies(famous=False)])
    as_written = [text for text in network.read_texts if text in texts]
    assert sorted(as_written) == sorted(texts)
    assert len(network.read_texts) - len(texts) == len(neutral(texts[0]))


def test_scores_are_the_mean_of_the_forms() -> None:
    texts = neutral_texts("Zorvane falls", ("ZRV", "Zorvane"), LINKER)
    scores = LetterNetwork().read([one.text for one in texts])
    found = mean_scores(texts, scores)
    assert found.spans.tolist() == [[0, 7], [8, 13]]
    assert found.tone.tolist() == pytest.approx(np.mean([one.tone for one in scores], axis=0).tolist())
    assert found.roles[0].tolist() == pytest.approx(
        np.mean([one.roles[0] for one in scores], axis=0).tolist()
    )


def test_tickers_with_a_sign_and_repeated_names_are_one_company() -> None:
    (first, *_) = neutral("$IACI up as IACI buys back; Zorvane, Inc. falls", "IACI", "")
    assert first.startswith("Acme up as Acme buys back")
    (first, *_) = neutral("Anheuser-Busch InBev raises offer for Rival Foods, Inc.", "RVF", "Rival Foods")
    assert first == "Globex raises offer for Acme"


def test_a_firm_in_the_place_of_the_name_asked_for_is_it() -> None:
    named = companies_in(
        "BNP Paribas Asset Management expects cuts", ("SYM", "BNP Paribas Asset Management"), LINKER
    )
    assert named == [NamedCompany(("BNP Paribas Asset Management", "BNP Paribas"), True)]


class PartyNetwork(LetterNetwork):
    """A network that sees a party in every word with a capital, and nothing that moves markets in a text of `ford`."""

    def _scores(self, text: str) -> FactScores:
        found = super()._scores(text)
        capital = np.array([text[start].isupper() for start, _ in found.spans.tolist()])
        roles = np.zeros_like(found.roles)
        roles[:, -1] = ~capital
        role = "subject" if "Acme" in text or "Globex" in text else "rater"
        roles[capital, ROLES.index(PartyRole(role))] = 1.0
        unrelated = np.zeros(len(KINDS))
        unrelated[KINDS.index(EventKind.UNRELATED if "Ford" in text else EventKind.STAKE)] = 1.0
        return found._replace(roles=roles, event=unrelated)


def test_a_company_in_no_list_gets_a_neutral_name_where_the_network_sees_a_party() -> None:
    network = PartyNetwork()
    NeutralFactReader(network, LINKER).read(
        ["Zorvane sues Kelbrook", "Quillmark sues Farrowgate"], asked=[("", "Zorvane"), ("", "Quillmark")]
    )
    assert "Acme sues Globex" in network.read_texts
    assert [text for text in network.read_texts if "Acme sues K" in text] == ["Acme sues Kelbrook"]
    assert [text for text in network.read_texts if "Ford sues K" in text] == []


def test_the_text_as_it_is_written_says_whether_it_is_news_of_markets() -> None:
    reader = NeutralFactReader(PartyNetwork(), LINKER)
    ford, other = reader.read(
        ["Ford closed to walkers", "Zorvane closed to walkers"], asked=[("F", "Ford"), ("ZRV", "Zorvane")]
    )
    assert (ford.event, other.event) == (EventKind.UNRELATED, EventKind.STAKE)


def test_half_of_a_role_is_read_from_the_text_as_it_is_written() -> None:
    text = "Zorvane falls"
    forms = neutral_texts(text, ("ZRV", "Zorvane"), LINKER)
    network = LetterNetwork()
    mean = mean_scores(forms, network.read([one.text for one in forms]))
    (written,) = network.read([text])
    found = with_text_as_written(mean, forms[0].replaced, text, written)
    assert found.roles == pytest.approx((mean.roles + written.roles) / 2.0)
    assert found.effects.tolist() == mean.effects.tolist()
    assert found.tone.tolist() == mean.tone.tolist()


def test_a_nationality_is_no_party() -> None:
    texts = neutral_texts("Nigerian supplier sues Zorvane", ("ZRV", "Zorvane"), LINKER)
    found = mean_scores(texts, LetterNetwork().read([one.text for one in texts]))
    assert found.spans[0].tolist() == [0, 8]
    assert found.roles[0].tolist() == [0.0] * len(ROLES) + [1.0]
    assert found.roles[-1, -1] < 1.0


def test_the_version_says_that_names_were_neutral() -> None:
    assert NeutralFactReader(LetterNetwork(), LINKER).version == "letters+neutral/2"
