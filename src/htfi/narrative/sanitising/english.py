"""Common English words of finance and the statistics of English letters: they separate split, masked or ciphered words
from names.

The word list was written for this project; endings are added by rule. Some of the words that result do not exist:
harmless, since a word counts only where a disguise would have produced it.
"""

from functools import cache
from importlib.resources import files
from math import log

_VOWELS = "aeiou"


def is_common(word: str) -> bool:
    return word.lower() in common_words()


@cache
def common_words() -> frozenset[str]:
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


_MIN_LETTERS = 3


def reads_better_backwards(text: str, doubt: float) -> bool:
    """Whether the text is more plausible from its end; `doubt` is the handicap that it is granted."""
    return _plausibility(text[::-1]) > _plausibility(text) - doubt


def _plausibility(text: str) -> float:
    """Known words, names and pairs of letters together."""
    num_letters = max(sum(char.isalpha() for char in text), 1)
    num_words = max(len(text.split()), 1)
    return bigram_log_likelihood(text) + num_known_letters(text) / num_letters + _num_names(text) / num_words


def _num_names(text: str) -> int:
    """Words with a capital followed by lower case."""
    return sum(
        word[0].isupper() and word[-1].islower() for word in text.replace("'", " ").replace(".", " ").split()
    )


def num_known_letters(text: str) -> int:
    """Letters of the text that belong to common words of three letters or more."""
    known = common_words()
    return sum(len(word) for word in _letters(text).split() if len(word) >= _MIN_LETTERS and word in known)


def bigram_log_likelihood(text: str) -> float:
    """Mean log-likelihood of a letter after another, within words; −4 is gibberish, −2.4 usual English."""
    table = _bigram_table()
    total = num = 0.0
    for word in _letters(text[:2_000]).split():
        before = " "
        for char in word:
            total += table.get(before + char, -8.0)
            num += 1
            before = char
        total += table.get(before + " ", -8.0)
        num += 1
    return total / num if num else -8.0


def _letters(text: str) -> str:
    return "".join(char if "a" <= char <= "z" else " " for char in text.lower())


@cache
def _bigram_table() -> dict[str, float]:
    """Log P(letter | letter before), counted over the word list, smoothed."""
    alphabet = " abcdefghijklmnopqrstuvwxyz"
    counts = {first + second: 0.2 for first in alphabet for second in alphabet}
    for word in sorted(common_words()):
        padded = f" {word} "
        for at in range(len(padded) - 1):
            pair = padded[at : at + 2]
            if pair in counts:
                counts[pair] += 1.0
    totals = {first: sum(counts[first + second] for second in alphabet) for first in alphabet}
    return {pair: log(count / totals[pair[0]]) for pair, count in counts.items()}
