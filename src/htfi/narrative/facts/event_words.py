"""What the words of a text forbid its facts to be: a kind of event without its words, and advice, which is no news.

A network takes funds for coins and talks for purchases of bonds. A kind in `event_words.toml` needs its words, or must
not have others; the likeliest kind that a text allows counts. Set phrases tell good from bad for a company.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from htfi.narrative.facts.record import EventKind
from htfi.narrative.patterns import FilteredPattern, Patterns, PatternTable

_DATA = Patterns("htfi.narrative.facts", "event_words.toml", "words")
_ADVICE = _DATA.filtered("advice", re.IGNORECASE)
_MARKET_WRAP = _DATA.filtered("market_wrap", re.IGNORECASE)
_GOOD, _BAD = _DATA.filtered("good", re.IGNORECASE), _DATA.filtered("bad", re.IGNORECASE)
_LONG_MOVE = _DATA.filtered("long_move", re.IGNORECASE)
_AS_EXPECTED = _DATA.filtered("as_expected", re.IGNORECASE)
_UNDONE = _DATA.filtered("undone", re.IGNORECASE)
_REASSURES = _DATA.filtered("reassures", re.IGNORECASE)


class _Words(NamedTuple):
    kinds: tuple[EventKind, ...]
    needs: FilteredPattern | None
    forbids: FilteredPattern | None


_TABLE = tuple(
    _Words(
        tuple(EventKind(kind) for kind in entry["kinds"].split()),
        FilteredPattern(entry["needs"], re.IGNORECASE) if "needs" in entry else None,
        FilteredPattern(entry["forbids"], re.IGNORECASE) if "forbids" in entry else None,
    )
    for entry in _DATA.entries("kind")
)
_PATTERNS = PatternTable(one for words in _TABLE for one in (words.needs, words.forbids) if one is not None)


def _places() -> Iterator[tuple[tuple[EventKind, ...], int | None, int | None]]:
    """The kinds of each row with the places of its patterns in `_PATTERNS`."""
    places = count()
    for words in _TABLE:
        needed, forbidden = (None if one is None else next(places) for one in (words.needs, words.forbids))
        yield words.kinds, needed, forbidden


_PLACES = tuple(_places())


def forbidden_kinds(text: str) -> frozenset[EventKind]:
    """The kinds of event that a text cannot report, by its words."""
    return _forbidden_by(
        frozenset(
            [
                place
                for place in _PATTERNS.candidates(text)
                if _PATTERNS.patterns[place].search(text) is not None
            ]
        )
    )


@lru_cache(maxsize=1_024)  # texts hold the same few patterns again and again
def _forbidden_by(found: frozenset[int]) -> frozenset[EventKind]:
    """The kinds that a text cannot report in which these patterns were found, by their places."""
    return frozenset(
        kind
        for kinds, needed, forbidden in _PLACES
        if (needed is not None and needed not in found) or forbidden in found
        for kind in kinds
    )


def gives_advice(text: str) -> bool:
    """Whether a text advises readers, or looks back at what they would have made: no news."""
    return _ADVICE.search(text) is not None


def is_market_wrap(text: str) -> bool:
    """Whether a text reports how whole markets moved."""
    return _MARKET_WRAP.search(text) is not None


def reassures(text: str) -> bool:
    """Whether a company calms: 'says it has enough liquidity'. No good news: it was in doubt."""
    return _REASSURES.search(text) is not None


def reports_long_move(text: str) -> bool:
    """Whether a text reports what was gained or lost over months: 'has gained 40% this year'."""
    return _LONG_MOVE.search(text) is not None


def is_as_expected(text: str) -> bool:
    """Whether a text says that what it reports was expected."""
    return _AS_EXPECTED.search(text) is not None


def is_undone(text: str) -> bool:
    """Whether a text reports that an event did not happen or was taken back: 'backs out of', 'exits bankruptcy'."""
    return _UNDONE.search(text) is not None


class SetPhrase(NamedTuple):
    """Words at `start` to before `end` that a table knows, and what they say."""

    start: int
    end: int
    says: str


_SAYS = (
    (_GOOD, "good for its company"), (_BAD, "bad for its company"), (_AS_EXPECTED, "it was expected"),
    (_UNDONE, "it did not happen, or was taken back"), (_ADVICE, "advice, which is no news"),
    (_LONG_MOVE, "a move over months"), (_REASSURES, "a company calms"),
)  # fmt: skip


def set_phrases(text: str) -> list[SetPhrase]:
    """The first of each kind of set phrase that a text holds."""
    found = ((pattern.search(text), says) for pattern, says in _SAYS)
    return [SetPhrase(*match.span(), says) for match, says in found if match is not None and match[0].strip()]


def tone_side(text: str) -> int:
    """1 or −1 where set phrases tell whether a text is good or bad for its company, 0 where none or both do."""
    return int(_GOOD.search(text) is not None) - int(_BAD.search(text) is not None)
