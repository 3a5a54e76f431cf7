"""What figures measure: the names in a text, and for each which side is good and how large surprises usually are."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from htfi.narrative.patterns import FilteredPattern, Patterns, PatternTable

_MAX_BEFORE = 160  # characters before a figure in which the name of what it measures is looked for
_MAX_AFTER = 60
_CLAUSE_END = re.compile(r"[;|\n(]|,\s|\.\s")


class Side(StrEnum):
    """What a higher figure means for what it measures."""

    GOOD = "good"
    BAD = "bad"
    HAWKISH = "hawkish"  # for higher interest rates
    SUPPLY = "supply"  # more of a commodity is in store
    UNKNOWN = "unknown"  # the measure is none of the table's


class Measure(NamedTuple):
    """What a figure measures, with its usual surprise in its unit, or as a share of what was expected."""

    name: str
    pattern: FilteredPattern
    side: Side
    usual: float
    is_share: bool = False


class Mention(NamedTuple):
    """A measure named at characters `start` to before `end`."""

    start: int
    end: int
    order: int
    measure: Measure


MEASURE_DATA = Patterns("htfi.narrative.facts", "measures.toml", "parts")
MEASURES = tuple(
    Measure(
        one["name"], FilteredPattern(one["pattern"], re.IGNORECASE), Side(one["side"]), float(one["usual"]),
        one["unit"] == "share",
    )
    for one in MEASURE_DATA.entries("measure")
)  # fmt: skip
_TABLE = PatternTable(measure.pattern for measure in MEASURES)
PER_SHARE = next(measure for measure in MEASURES if measure.name == "earnings per share")


def find_mentions(text: str) -> list[Mention]:
    """The measures that a text names, in order; of names that overlap the longer, then the earlier of the table."""
    found = sorted(
        (
            Mention(match.start(), match.end(), order, measure)
            for order in _TABLE.candidates(text)
            for measure in (MEASURES[order],)
            for match in measure.pattern.finditer(text)
        ),
        key=lambda one: (one.start, one.order),
    )
    kept: list[Mention] = []
    for one in found:
        last = kept[-1] if kept else None
        if last is not None and one.start < last.end:
            if one.order >= last.order or one.end < last.end:
                continue
            kept.pop()
        kept.append(one)
    return kept


def measure_at(text: str, mentions: Sequence[Mention], position: int) -> Measure | None:
    """The measure that a figure at `position` is of: the nearest named before it, else the first after it."""
    before = [one for one in mentions if position - _MAX_BEFORE <= one.start and one.start <= position]
    if before:
        return before[-1].measure
    after = next((one for one in mentions if position < one.start <= position + _MAX_AFTER), None)
    if after is None or _CLAUSE_END.search(text[position : after.start]):
        return None
    return after.measure
