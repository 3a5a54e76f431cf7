"""Splits a text into the words that names are made of."""

import re
from typing import Any, NamedTuple

from htfi.narrative.scanning import words_core

_WORD = re.compile(r"\w+(?:[&.*'’]\w+)*")
_MARKET, _PAIR = re.compile(r"\.[A-Z]"), re.compile(r"[A-Z]{3}(?:/|[A-Z]{3})")


class TextWords(NamedTuple):
    """The words of a text: where they stand (`start`, before `end`), without a possessive ending, and the same folded;
    `begun` are the numbers of those that a name begins with. `has_market`: it may hold a ticker with its market;
    `has_pair`: a pair of currencies.
    """

    places: list[tuple[int, int]]
    words: list[str]
    folded: list[str]
    begun: list[int]
    has_market: bool
    has_pair: bool


def words_to_link(text: str, names: dict[str, Any]) -> TextWords:
    """The words of a text; `names` holds the folded first words of names."""
    return (
        plain_words_to_link(text, names)
        if words_core is None
        else TextWords(*words_core.words_to_link(text, names))
    )


def plain_words_to_link(text: str, names: dict[str, Any]) -> TextWords:
    """The same without compiled code."""
    matches = list(_WORD.finditer(text))
    words = [_without_possessive(match[0]) for match in matches]
    folded = [word.casefold() for word in words]
    begun = [place for place, word in enumerate(folded) if word in names]
    has_market, has_pair = _MARKET.search(text) is not None, _PAIR.search(text) is not None
    return TextWords([match.span() for match in matches], words, folded, begun, has_market, has_pair)


def _without_possessive(word: str) -> str:
    return word[:-2] if word[-2:] in ("'s", "’s") and len(word) > 2 else word
