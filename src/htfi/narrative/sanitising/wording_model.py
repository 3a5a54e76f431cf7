"""A linear model of words and pairs of words: how much a text reads like instructions to a model, or like a pump.

`htfi_train.simulation.attacks.fitting` fits the weights to text that this project wrote. A text is judged
sentence by sentence, so that one planted sentence does not drown in honest ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from math import sqrt
from typing import NamedTuple

import numpy as np

from htfi.narrative.patterns import Patterns

FILE = "sanitiser/wording.npz"
_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "wording_model")
_TOKEN = _DATA.compiled("token")
_ENDS = frozenset(".:…\n。！？；")
START = "^"
_MIN_WORDS = 2
_MIN_KNOWN = 0.45  # of a sentence's words: other languages are not judged by these weights
_SHORT = 8  # words of a sentence that is also judged with its neighbour
_MAX_WORDS = 48  # a longer sentence is judged in pieces
_MAX_TOKENS = 4_000
_CALL_WORD_LIST = _DATA.text("call_word_list")
_SIGNS = "\u2190"  # arrows, and every sign after them
_CALL_WORDS = frozenset(_CALL_WORD_LIST.split())
_CALL_WORDS_ON_RATES = _CALL_WORDS - _DATA.words("rate_word_list")
_PICTURES = "\U0001f300"  # emoji, after flags


@dataclass(frozen=True, slots=True)
class WordingWeights:
    """For each feature its weight in the log-odds of each class; `biases` are the constants."""

    of: dict[str, tuple[float, float]]
    biases: tuple[float, float]


_NO_WEIGHT = (0.0, 0.0)
# Of both classes, over how many tokens, whether it reads as English, and whether it calls to trade.
_SentenceScore = tuple[float, float, int, bool, bool]


def tokens(lower: str) -> list[str]:
    """Words, numbers and signs of a text in lower case."""
    return _TOKEN.findall(lower)[:_MAX_TOKENS]


def max_log_odds(
    tokens: list[str], weights: WordingWeights, *, is_on_rates: bool = False
) -> tuple[float, float]:
    """The highest log-odds of any sentence: of instructions to a model, of a pump. In a text `is_on_rates`, interest
    rates, only words and signs that reports on them do not use make a sentence a call to trade.
    """
    best, second_best = -9.0, -9.0
    first, second = weights.biases
    before: _SentenceScore = (0.0, 0.0, 0, False, False)
    for sums in _sentences(tokens, weights.of, is_on_rates):
        left, right, num, is_english, calls = sums
        if num >= _MIN_WORDS and is_english:
            norm = sqrt(2 * num)
            best = max(best, first + left / norm)
            if calls:
                second_best = max(second_best, second + right / norm)
        num_both = num + before[2]
        if before[2] and num and min(before[2], num) < _SHORT and (is_english or before[3]):
            norm = sqrt(2 * num_both)
            best = max(best, first + (left + before[0]) / norm)
            if calls or before[4]:
                second_best = max(second_best, second + (right + before[1]) / norm)
        if num:
            before = sums
    return round(best, 3), round(second_best, 3)


def _sentences(
    tokens: list[str], of: dict[str, tuple[float, float]], is_on_rates: bool
) -> Iterator[_SentenceScore]:
    call_words = _CALL_WORDS_ON_RATES if is_on_rates else _CALL_WORDS
    left = right = 0.0
    num = num_words = num_known = 0
    calls = False
    before = START
    found = of.get
    for token in tokens:
        if token in _ENDS or num >= _MAX_WORDS:
            yield left, right, num, num_known >= _MIN_KNOWN * num_words and num_words > 0, calls
            left, right, num, num_words, num_known, before, calls = 0.0, 0.0, 0, 0, 0, START, False
            if token in _ENDS:
                continue
        is_word = token.isalpha()
        word = token if is_word else _plain(token)
        known = found(word)
        one, two = known or _NO_WEIGHT
        if is_word:
            num_words += 1
            num_known += known is not None
            calls = calls or token in call_words
        elif is_on_rates:
            calls = calls or token[0] >= _PICTURES or "!!" in token
        else:
            calls = calls or _is_calling_sign(token)
        three, four = found(f"{before} {word}", _NO_WEIGHT)
        left += one + three
        right += two + four
        num += 1
        before = word
        if word == "!" or word == "?":
            yield left, right, num, num_known >= _MIN_KNOWN * num_words and num_words > 0, calls
            left, right, num, num_words, num_known, before, calls = 0.0, 0.0, 0, 0, 0, START, False
    yield left, right, num, num_known >= _MIN_KNOWN * num_words and num_words > 0, calls


def _is_calling_sign(token: str) -> bool:
    """Whether what is no word calls to trade: exclamations, cashtags and tags, pictures."""
    return token[0] == "!" or (token[0] in "$#" and len(token) > 1) or token[0] >= _SIGNS


class TokenWeights(NamedTuple):
    """What the model makes of one token: the word that it counts as, whether it `ends` a sentence, its weights."""

    word: str
    is_word: bool
    is_known: bool
    calls: bool
    ends: bool
    weights: tuple[float, float]


def token_weights(token: str, weights: WordingWeights) -> TokenWeights:
    """A token's share in `max_log_odds`, in a text that is not on rates."""
    is_word = token.isalpha()
    word = token if is_word else _plain(token)
    known = weights.of.get(word)
    calls = token in _CALL_WORDS if is_word else _is_calling_sign(token)
    return TokenWeights(word, is_word, known is not None, calls, token in _ENDS, known or _NO_WEIGHT)


def features(text: str) -> list[str]:
    """Words, pairs of neighbours, and how each sentence begins: the features of `max_log_odds`, two per word."""
    found: list[str] = []
    before = START
    for token in tokens(text.lower()):
        if token in _ENDS:
            before = START
            continue
        word = token if token.isalpha() else _plain(token)
        found += (word, f"{before} {word}")
        before = START if word in ("!", "?") else word
    return found


def _plain(token: str) -> str:
    """Tickers, tags, addresses and numbers as their kind."""
    first = token[0]
    if first.isalpha():
        return "<url>" if "://" in token else token.replace("’", "'")
    if first.isdigit():
        return "0" + (token[-1] if token[-1] in "%xkh" else "")
    if first in "$#@" and len(token) > 1:
        return f"<{first}>"
    return first


@cache
def shipped_weights() -> WordingWeights:
    """The weights that come with the package."""
    return read_weights(files("htfi.models").joinpath(FILE).read_bytes())


def read_weights(raw: bytes) -> WordingWeights:
    with np.load(BytesIO(raw), allow_pickle=False) as held:
        names = bytes(held["features"]).decode("utf-8").split("\n")
        values = (held["weights"].astype(np.float64) * held["scales"]).tolist()
        biases = held["biases"].tolist()
    return WordingWeights(
        {name: (left, right) for name, (left, right) in zip(names, values, strict=True)},
        (biases[0], biases[1]),
    )


def write_weights(names: list[str], values: np.ndarray, biases: tuple[float, float]) -> bytes:
    """Weights [F, 2] as a file, rounded to 8 bits by class."""
    scales = np.abs(values).max(axis=0) / 127.0
    held = BytesIO()
    np.savez_compressed(
        held,
        features=np.frombuffer("\n".join(names).encode("utf-8"), dtype=np.uint8),
        weights=np.rint(values / scales).astype(np.int8),
        scales=scales,
        biases=np.array(biases),
    )
    return held.getvalue()
