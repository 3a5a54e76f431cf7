"""How much a run of letters reads like English, by pairs of letters; finds ciphers and text written backwards."""

from functools import cache
from math import log

from htfi.narrative.sanitising.lexicon import words

_MIN_LETTERS = 3


def reads_better_reversed(text: str, doubt: float) -> bool:
    """Whether the text makes more sense from its end; `doubt` is what it may make less and still be taken so."""
    return _sense(text[::-1]) > _sense(text) - doubt


def _sense(text: str) -> float:
    """Known words, names and pairs of letters together."""
    num_letters = max(sum(char.isalpha() for char in text), 1)
    num_words = max(len(text.split()), 1)
    return fluency(text) + num_known(text) / num_letters + _num_named(text) / num_words


def _num_named(text: str) -> int:
    """Words that begin with a capital and go on in lower case."""
    return sum(
        word[0].isupper() and word[-1].islower() for word in text.replace("'", " ").replace(".", " ").split()
    )


def num_known(text: str) -> int:
    """Letters of the text that belong to common words of three letters or more."""
    known = words()
    return sum(len(word) for word in _letters(text).split() if len(word) >= _MIN_LETTERS and word in known)


def fluency(text: str) -> float:
    """Mean log-likelihood of a letter after another, within words; −4 is gibberish, −2.4 usual English."""
    table = _pairs()
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
def _pairs() -> dict[str, float]:
    """Log P(letter | letter before), counted over the word list, smoothed."""
    alphabet = " abcdefghijklmnopqrstuvwxyz"
    counts = {first + second: 0.2 for first in alphabet for second in alphabet}
    for word in sorted(words()):
        padded = f" {word} "
        for at in range(len(padded) - 1):
            pair = padded[at : at + 2]
            if pair in counts:
                counts[pair] += 1.0
    totals = {first: sum(counts[first + second] for second in alphabet) for first in alphabet}
    return {pair: log(count / totals[pair[0]]) for pair, count in counts.items()}
