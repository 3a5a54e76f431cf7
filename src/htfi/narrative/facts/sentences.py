"""Splits a text into sentences with their places, in time linear in its length."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from htfi.narrative.patterns import Patterns


class Sentence(NamedTuple):
    """A sentence on one line, and where it stands: characters `start` to before `end` of the text."""

    start: int
    end: int
    text: str


_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "sentences")
_PARAGRAPH = re.compile(
    r"[ \t\r\f\v]*\n[ \t\r\f\v]*\n\s*|\n[ \t]*(?=(?:[*•·–-]|\(?\d{1,2}[.)]|\([a-z]\))[ \t])"
)
_STOP = re.compile(r"[.!?…。！？]+[\"'”’»)\]]*(?=\s|$|[\u3000-\u9fff])")
_ABBREVIATION = _DATA.compiled("abbreviation")
_BEGINS_SMALL = re.compile(r"\s+[a-z,;]")


@lru_cache(maxsize=4)  # of one body passages are chosen, and a central bank's decision is looked for
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text. A blank line and a list's mark end one, a line's end does not."""
    found: list[Sentence] = []
    breaks = [match.span() for match in _PARAGRAPH.finditer(text)] if "\n" in text else []
    start = 0
    for stop, following in [*breaks, (len(text), len(text))]:
        begin = start
        for match in _STOP.finditer(text, start, stop):
            if match.end() < stop and _goes_on(text, begin, match):
                continue
            _add(found, text, begin, match.end())
            begin = match.end()
        _add(found, text, begin, stop)
        start = following
    return tuple(found)


def sentence_at(sentences: Sequence[Sentence], position: int) -> int:
    """The number of the sentence that a character stands in, or of the last one before it."""
    return max(bisect_right(sentences, position, key=lambda one: one.start) - 1, 0)


def _goes_on(text: str, begin: int, match: re.Match[str]) -> bool:
    """Whether a stop is of an abbreviation, an initial or a number, and the sentence goes on."""
    if match[0][0] != ".":
        return False
    before = text[max(begin, match.start() - 16) : match.start()]
    return _ABBREVIATION.search(before) is not None or _BEGINS_SMALL.match(text, match.end()) is not None


def _add(found: list[Sentence], text: str, start: int, end: int) -> None:
    line = " ".join(text[start:end].split())
    if line:
        found.append(Sentence(start, end, line))
