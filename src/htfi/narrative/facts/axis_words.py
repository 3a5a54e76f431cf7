"""Finds the side of an event by its words: tariffs imposed or paused, supply cut or raised, profit up or down.

The network sees what a text is about; where the same nouns stand in good and bad news, verbs tell the side, and a table
knows more of them (`axis_words.toml`). Where the words of both sides are found, it says nothing.
"""

import re
from typing import NamedTuple

from htfi.narrative.facts.record import EventKind
from htfi.narrative.patterns import FilteredPattern, Patterns

_DATA = Patterns("htfi.narrative.facts", "axis_words.toml", "words")
_NEGATION = _DATA.compiled("negation")
_NEGATED_BEHIND = _DATA.compiled("negated_behind")


class _Sides(NamedTuple):
    about: FilteredPattern | None
    unless: FilteredPattern | None
    up: FilteredPattern
    down: FilteredPattern


_TABLE = {
    EventKind(kind): _Sides(
        FilteredPattern(entry["about"]) if "about" in entry else None,
        FilteredPattern(entry["unless"]) if "unless" in entry else None,
        FilteredPattern(entry["up"]),
        FilteredPattern(entry["down"]),
    )
    for entry in _DATA.entries("side")
    for kind in entry["kind"].split(" | ")
}


class SidePhrase(NamedTuple):
    """Words at `start` to before `end` that tell a side: 1 up, −1 down, turned where they are negated."""

    start: int
    end: int
    side: int


def axis_side(kind: EventKind, text: str) -> int:
    """1 or −1 along the axis of the kind (of a company event: its tone), 0 where words tell neither side or both."""
    found = {one.side for one in side_phrases(kind, text.lower())}
    return found.pop() if len(found) == 1 else 0


def side_phrases(kind: EventKind, lowered: str) -> list[SidePhrase]:
    """The words of a text in small letters that tell a side of a kind of event."""
    sides = _TABLE.get(kind)
    if sides is None:
        return []
    if sides.about is not None and sides.about.search(lowered) is None:
        return []
    if sides.unless is not None and sides.unless.search(lowered) is not None:
        return []
    found: list[SidePhrase] = []
    for side, pattern in ((1, sides.up), (-1, sides.down)):
        for match in pattern.finditer(lowered):
            if any(match.start() < one.end and match.end() > one.start for one in found):
                continue  # 'pauses new tariffs': what was found first holds
            found.append(SidePhrase(*match.span(), -side if _is_negated(lowered, match) else side))
    return found


def _is_negated(text: str, match: re.Match[str]) -> bool:
    before, behind = text[: match.start()], text[match.end() :]
    return _NEGATION.search(before) is not None or _NEGATED_BEHIND.match(behind) is not None
