"""Which words are common English of finance: tells a split, masked or accented word from a name. `undo` uses it.

The list was written for this project; endings are added by rule, which makes some words that nobody says: harmless,
since a word counts only where a trick would have produced it.
"""

from functools import cache
from importlib.resources import files

_VOWELS = "aeiou"


def is_common(word: str) -> bool:
    return word.lower() in words()


@cache
def words() -> frozenset[str]:
    found: set[str] = set()
    text = files("htfi.models").joinpath("sanitiser/words.txt").read_text(encoding="utf-8")
    for word in text.split():
        found.add(word)
        if len(word) > 2:
            found |= _inflected(word)
    return frozenset(found)


def _inflected(word: str) -> set[str]:
    if word.endswith("e"):
        stem = word[:-1]
        return {word + "s", word + "d", word + "r", word + "rs", stem + "ing", stem + "ings", word + "ly"}
    if word.endswith("y") and word[-2] not in _VOWELS:
        stem = word[:-1] + "i"
        return {stem + "es", stem + "ed", stem + "er", stem + "est", stem + "ly", word + "ing"}
    forms = {word + "s", word + "ed", word + "ing", word + "ings", word + "er", word + "ers", word + "ly"}
    if word[-1] in "sxzh":
        forms.add(word + "es")
    if word[-1] not in "wxys" + _VOWELS and word[-2] in _VOWELS and word[-3] not in _VOWELS:
        forms |= {word + word[-1] + ending for ending in ("ed", "ing", "er", "ers")}
    return forms
