"""Tests of counterfactual texts: the same news with another identity in it."""

import pytest

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.name_swaps import (
    SwapKind,
    companies,
    nationalities,
    people,
    religions,
    replace_word,
    swap_gender,
    swapped_texts,
    ticker_of,
)

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
