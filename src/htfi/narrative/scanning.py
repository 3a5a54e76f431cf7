"""Which patterns may match in a text, and at which words: compiled (scan_core), or in Python where no compiler was at
hand.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from htfi.narrative.prefilter import Words, words_of

try:
    from htfi.narrative import figures_core
    from htfi.narrative import scan_core as core
except ImportError:
    core = figures_core = None

__all__ = ["PlainWordFilter", "WordFilter", "any_filter_passes", "figures_core", "filters_that_pass"]


class PlainWordFilter:
    """One pattern and the sets of words that it needs. The words that its matches begin with are not used: to find them
    in Python takes longer than to search.
    """

    def __init__(
        self, needed: Sequence[Words], starts: Words | None, compiled: Callable[[], re.Pattern[str]]
    ) -> None:
        """`compiled` gives the compiled pattern."""
        del starts
        self._needed, self._compiled = needed, compiled

    def may_match(self, text: str) -> bool:
        """Whether a text has the words without which the pattern matches nowhere in it."""
        words = words_of(text)
        for one in self._needed:  # noqa: SIM110 -- this stands in the way of every pattern, and `any` takes twice as long
            if words.isdisjoint(one):
                return False
        return True

    def search(self, text: str) -> re.Match[str] | None:
        """What `search` of the pattern finds."""
        return self._compiled().search(text) if self.may_match(text) else None

    def match_first(self, text: str) -> re.Match[str] | None:
        """What `match` of the pattern finds at the beginning of a text."""
        return self._compiled().match(text) if self.may_match(text) else None

    def finditer(self, text: str, start: int = 0) -> Iterable[re.Match[str]]:
        """What `finditer` of the pattern finds from a place on."""
        return self._compiled().finditer(text, start) if self.may_match(text) else ()


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
