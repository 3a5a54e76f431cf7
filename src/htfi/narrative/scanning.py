"""Which patterns may match in a text, and at which words: compiled (`scan_core`), or in Python where no compiler was at
hand.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from htfi.narrative.pattern_starts import MAX_LENGTH, NUM_LETTERS
from htfi.narrative.prefilter import Words, small_letters, words_of

try:
    from htfi.narrative import scan_core as core
except ImportError:
    core = None

__all__ = ["PlainWordFilter", "WordFilter", "any_filter_passes", "core", "filters_that_pass"]
_WORD = re.compile(r"\w+")


class PlainWordFilter:
    """One pattern: the sets of words that it needs, and the set of words that its matches begin with, if known."""

    def __init__(
        self, needed: Sequence[Words], starts: Words | None, compiled: Callable[[], re.Pattern[str]]
    ) -> None:
        """`compiled` gives the compiled pattern."""
        self._needed, self._starts, self._compiled = needed, starts, compiled

    def may_match(self, text: str) -> bool:
        """Whether a text has the words without which the pattern matches nowhere in it."""
        words = words_of(text)
        for one in self._needed:
            if words.isdisjoint(one):
                return False
        return self._starts is None or bool(self._places(text))

    def search(self, text: str) -> re.Match[str] | None:
        """What `search` of the pattern finds."""
        return next(iter(self.finditer(text)), None)

    def match_first(self, text: str) -> re.Match[str] | None:
        """What `match` of the pattern finds at the beginning of a text."""
        if not self.may_match(text) or (self._starts is not None and self._places(text)[0] > 0):
            return None
        return self._compiled().match(text)

    def finditer(self, text: str, start: int = 0) -> Iterable[re.Match[str]]:
        """What `finditer` of the pattern finds from a place on."""
        if not self.may_match(text):
            return ()
        if self._starts is None:
            return self._compiled().finditer(text, start)
        return self._tried(text, start)

    def _tried(self, text: str, start: int) -> Iterator[re.Match[str]]:
        match_at = self._compiled().match
        for place in self._places(text):
            if place >= start and (match := match_at(text, place)) is not None:
                yield match
                start = match.end()

    def _places(self, text: str) -> list[int]:
        """Where the words stand that matches may begin with."""
        by_word = _places_by_word(text)
        starts = self._starts or frozenset[str]()
        return sorted(place for word in by_word.keys() & starts for place in by_word[word])


@lru_cache(maxsize=16)  # several patterns ask for the same text
def _places_by_word(text: str) -> dict[str, list[int]]:
    """Where words begin, by how `pattern_starts` may know them; each place once for every name of its word."""
    found: dict[str, list[int]] = {}
    for match in _WORD.finditer(text):
        word = small_letters(match[0])[:NUM_LETTERS]
        names = [word, *(f"{word[:length]}*" for length in range(1, min(len(word), NUM_LETTERS - 1) + 1))]
        names += [f"@{length}" for length in range(1, min(len(match[0]), MAX_LENGTH) + 1)]
        for name in (*names, "#") if word[0].isdecimal() else names:
            found.setdefault(name, []).append(match.start())
    return found


def plain_filters_that_pass(filters: Sequence[PlainWordFilter], text: str) -> list[int]:
    """The places of those of several filters whose words a text has, rising."""
    return [place for place, one in enumerate(filters) if one.may_match(text)]


def any_plain_filter_passes(filters: Sequence[PlainWordFilter], text: str) -> bool:
    """Whether a text has the words of any of several filters."""
    return any(one.may_match(text) for one in filters)


if TYPE_CHECKING or core is None:
    WordFilter = PlainWordFilter
    filters_that_pass, any_filter_passes = plain_filters_that_pass, any_plain_filter_passes
else:
    WordFilter = core.WordFilter
    filters_that_pass, any_filter_passes = core.filters_that_pass, core.any_filter_passes
