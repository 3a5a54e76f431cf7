"""Tests of counterfactual texts: the same news with another identity in it."""

import pytest

from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.name_swaps import (
    SwapKind,
    companies,
    nationalities,
    people,
    people_in,
    religions,
    replace_word,
    swap_gender,
    swapped_questions,
    swapped_texts,
    ticker_of,
)
from htfi.narrative.question import Question

LINKER = EntityLinker({})
LINE = "German investor John Walsh says he sold his stake in Zorvane to a Muslim charity"


def test_each_kind_of_identity_in_a_text_is_swapped_once() -> None:
    found = {one.kind: one for one in swapped_texts(LINE, ("ZRV", "Zorvane"), LINKER)}
    assert set(found) == set(SwapKind)
    assert found[SwapKind.FAME].new in companies(famous=True)
    assert found[SwapKind.COMPANY].new in companies(famous=False)
    assert found[SwapKind.PERSON].new in people()
    assert found[SwapKind.NATIONALITY].new in nationalities()
    assert found[SwapKind.RELIGION].new in religions()
    assert "she sold her stake" in found[SwapKind.GENDER].text
    assert all(one.old not in one.text for one in found.values() if one.old)


def test_the_same_text_gives_the_same_swaps() -> None:
    assert swapped_texts(LINE, ("ZRV", "Zorvane"), LINKER, 3) == swapped_texts(
        LINE, ("ZRV", "Zorvane"), LINKER, 3
    )


def test_a_nationality_that_names_an_economy_is_left() -> None:
    kinds = [one.kind for one in swapped_texts("German factory orders fall 3%", ("DAX", ""), LINKER)]
    assert kinds == []


def test_an_index_and_a_commodity_are_no_company() -> None:
    assert swapped_texts("Gold slips as dollar firms", ("XAU", "Gold"), LINKER) == []


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Chairman says HE will stay", "Chairwoman says SHE will stay"),
        ("Spokesman for the theme park", "Spokeswoman for the theme park"),
        ("The other results", "The other results"),
    ],
)
def test_gendered_words_are_swapped_whole(text: str, swapped: str) -> None:
    assert swap_gender(text).casefold() == swapped.casefold()


def test_a_word_is_replaced_as_a_whole_and_in_capitals_where_the_text_is() -> None:
    assert replace_word("Apple and Applebee", "Apple", "Norvik") == "Norvik and Applebee"
    assert replace_word("APPLE FALLS", "APPLE", "Norvik") == "NORVIK FALLS"


def test_swapped_companies_have_tickers_of_no_company() -> None:
    assert not [
        name for name in (*companies(famous=True), *companies(famous=False)) if LINKER.knows(ticker_of(name))
    ]


def test_a_company_is_swapped_wherever_it_stands_by_any_of_its_names() -> None:
    found = swapped_texts("Apple falls 2% as $AAPL options expire", ("AAPL", "Apple"), LINKER)
    assert [one.text for one in found if one.kind is SwapKind.FAME] == [
        "Zorvane falls 2% as Zorvane options expire"
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Norvik CEO José O'Brien quits over a probe", ["José O'Brien"]),
        ("Norvik hires investor Anna B. Smith as Chief Compliance Officer", ["Anna B. Smith"]),
        ("Norvik CEO Steps Down Amid Probe", []),
        ("Norvik chief Jorge Paulo Lemann buys shares", ["Jorge Paulo Lemann"]),
    ],
)
def test_a_person_is_named_behind_a_title(text: str, names: list[str]) -> None:
    assert people_in(text) == names


def test_joint_swaps_are_the_same_for_texts_that_differ_in_names_alone() -> None:
    other = "Mexican investor Mary Brown says he sold his stake in Braxiton to a Hindu charity"
    first, second = (
        [one for one in swapped_texts(text, (symbol, name), LINKER, 3) if one.kind is SwapKind.JOINT]
        for text, symbol, name in ((LINE, "ZRV", "Zorvane"), (other, "BRX", "Braxiton"))
    )
    assert len(first) == 3
    assert [one.text for one in first] == [one.text for one in second]
    assert [(one.name, one.symbol) for one in first] == [(one.name, one.symbol) for one in second]


def test_a_joint_swap_replaces_names_in_all_items_of_a_question() -> None:
    items = tuple(
        News(at, at, "wire", at, f"n{at}", text, ("ZRV",))
        for at, text in enumerate((LINE, "Zorvane denies talks with investor John Walsh"))
    )
    found = swapped_questions(Question("ZRV", 5, NS_PER_DAY, items), "Zorvane", LINKER, 2)
    joint = [one for kind, one, _ in found if kind is SwapKind.JOINT and one.items[0].headline != LINE]
    assert joint
    assert not [one for one in joint if "John Walsh" in one.items[1].headline]
    assert {one.symbol for one in joint} == {symbol for one in joint for symbol in one.items[1].symbols}
