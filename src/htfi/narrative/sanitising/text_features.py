"""What a text states at a glance: its words, figures, names and direction, by the word lists of `bearings.toml`.

It is made of deobfuscated text only. It distinguishes items; it does not understand them.
"""

import re
import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

from htfi.narrative.sanitising import compiled

_tables: dict[str, Any] = tomllib.loads(
    files("htfi.narrative.sanitising").joinpath("bearings.toml").read_text(encoding="utf-8")
)


def _word_set(name: str) -> frozenset[str]:
    return frozenset(_tables[name].split())


def _topic_of_word(name: str) -> dict[str, str]:
    return {word: topic for topic, words in _tables[name].items() for word in words.split()}


UP_WORDS, DOWN_WORDS, DENYING_WORDS, FRESH_WORDS = (
    _word_set("up"),
    _word_set("down"),
    _word_set("denies"),
    _word_set("fresh"),
)
EVENTS, MEASURES = _topic_of_word("events"), _topic_of_word("measures")
TOPICS = frozenset(EVENTS) | frozenset(MEASURES)


MAX_CHARS = 800  # of headline and body together: what two items of a story share stands at the front
MAX_FIGURES = 12
MAX_NAMES = 12

_WORD = re.compile(
    r"(?<![A-Za-z])\d[\d,.]*|[^\W\d_]+"
)  # a figure after a letter, as in Q1, is a count or a name
_LABEL = re.compile(
    r"\s*(?:\(?(?:update|wrapup|rpt|refile|recast|corrected|correction|exclusive|breaking|alert|flash|urgent)\)?"
    r"(?:[ -]*\d{1,2})?\s*[-:–—|]+\s*)+",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af]")  # scripts without spaces

DENIES, CORRECTS = 4, 8
_DIRECTION_WORDS = ((UP_WORDS, 1), (DOWN_WORDS, 2), (DENYING_WORDS, DENIES))


class TextFeatures(NamedTuple):
    """`words` of headline and body in order, lower case; `head` of them stand in the headline.

    `way` holds bits of the headline: 1 up, 2 down, 4 denied, 8 marked as a correction. `names` are its words in
    capitals, lower case; none where every word has one.
    """

    words: list[str]
    head: int
    figures: frozenset[str]
    names: frozenset[str]
    way: int

    @property
    def direction(self) -> int:
        return direction_of(self.way)


def direction_of(way: int) -> int:
    """1 up, −1 down, 0 for both or neither. A denial reverses it."""
    side = (way & 1) - (way >> 1 & 1)
    return -side if way & DENIES else side


def text_features(headline: str, body: str) -> TextFeatures:
    """The features of a deobfuscated headline and body."""
    labelled = _LABEL.match(headline)
    text = headline[labelled.end() : MAX_CHARS] if labelled else headline[:MAX_CHARS]
    words, upper, numbers = _words(text)
    head = len(words)
    way = CORRECTS if labelled and "correct" in labelled[0].lower() else 0
    for kind, bit in _DIRECTION_WORDS:
        if not kind.isdisjoint(words):
            way |= bit
    names = frozenset(upper[:MAX_NAMES]) if 2 * len(upper) <= head + 1 else frozenset[str]()
    figures = [_plain_figure(word) for word in numbers]
    if body:
        more, _, numbers = _words(body[: MAX_CHARS - len(text)])
        figures += [_figure_but_no_year(word) for word in numbers]
        words += more
    return TextFeatures(words, head, frozenset(figures[:MAX_FIGURES]) - {""}, names, way)


def _words(text: str) -> tuple[list[str], list[str], list[str]]:
    """The words of a text in lower case; those of them that begin with a capital; and the figures among them."""
    core = compiled.similarity
    if core is not None and (found := core.words_of(text)) is not None:
        return found
    capitals = [word.lower() for word in _WORD.findall(text) if word[0].isupper()]
    words = _WORD.findall(text.lower())
    if not text.isascii() and _WIDE.search(text):
        words = [part for word in words for part in _parts_without_spaces(word)]
    return words, capitals, [word for word in words if word[0] <= "9"]


def _parts_without_spaces(word: str) -> list[str]:
    """Pairs of neighbouring letters in scripts that have no spaces between words."""
    if not _WIDE.search(word):
        return [word]
    return [word[at : at + 2] for at in range(max(len(word) - 1, 1))]


def _plain_figure(word: str) -> str:
    return word.rstrip(".,").replace(",", "")


def _figure_but_no_year(word: str) -> str:
    """A number without its commas; empty for a year, which in a body is a date."""
    plain = _plain_figure(word)
    return "" if len(plain) == 4 and _YEAR.match(plain) else plain
