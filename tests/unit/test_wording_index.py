"""Which patterns a text may hold at all, by the first letters of its words."""

import re

import pytest

from htfi.narrative.facts.party_roles import _INDEX, _WORDINGS  # pyright: ignore[reportPrivateUsage]
from htfi.narrative.facts.wording_index import WordingIndex, first_letters
from role_cases import CASES, parsed


@pytest.mark.parametrize(
    ("pattern", "letters"),
    [
        ("(?:up|down)grade", {"upg", "dow"}),
        ("(?:to )?(?:buy(?:s|ing)?|bought)", {"to", "buy", "bou"}),
        (r"\b(?:bids?|offers?)\b", {"bid", "off"}),
        ("(?!a)b{2,3}c", {"b"}),
        ("ru?les", {"rul", "rle"}),
        (" no longer", {"no"}),
    ],
)
def test_letters_by_which_a_pattern_can_begin(pattern: str, letters: set[str]) -> None:
    assert first_letters(pattern) == letters


@pytest.mark.parametrize("pattern", ["'s?", "[$€]5", r"\d+ jets", "(?:x)?", "(?:buys|)"])
def test_a_pattern_that_may_begin_with_no_letter_has_none(pattern: str) -> None:
    assert first_letters(pattern) is None


def test_every_part_must_be_able_to_begin() -> None:
    index = WordingIndex([["buys", "from"], ["sells", "to"], ["'s", "from"]])
    assert index.possible("§1 buys it from §2") == [0, 2]
    assert index.possible("§1 sells it to §2") == [1]
    assert index.possible("from") == [2]


def test_no_wording_that_a_text_holds_is_left_out() -> None:
    texts = [re.sub(r"\s+", " ", parsed(marked)[0].lower()) for _, marked in CASES]
    names = [
        [text[one.start : one.end].lower() for one in parsed(marked)[1]]
        for text, (_, marked) in zip(texts, CASES, strict=True)
    ]
    held = 0
    for text, called in zip(texts, names, strict=True):
        for number, name in enumerate(called):
            text = text.replace(name, f"§{number}")
        possible = set(_INDEX.possible(text))
        found = {place for place, one in enumerate(_WORDINGS) if one.pattern.search(text)}
        assert found <= possible
        held += len(found)
    assert held >= len(CASES)
