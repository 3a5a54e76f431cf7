"""Compares what was reported with what was expected: by the figures of a text, or where it has none by its words.

A surprise is actual minus expected, in the measure's own unit and in units of its usual size (`measures.toml`).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from htfi.narrative.calendar.headlines import expectation_sides, plain_letters, split_clauses
from htfi.narrative.facts.figures import Figure, FigureRole, FigureUnit, find_figures
from htfi.narrative.patterns import Patterns

_MIN_RELATIVE = 1e-9
_RELATIVE_MEASURES = ("earnings per share", "revenue", "deliveries")  # their usual surprise is a share of what was expected


class Side(StrEnum):
    """What a higher figure means for what it measures."""

    GOOD = "good"
    BAD = "bad"
    HAWKISH = "hawkish"  # for higher interest rates
    SUPPLY = "supply"  # more of a commodity is in store
    UNKNOWN = "unknown"  # the measure is none of the table's


class Measure(NamedTuple):
    """What a figure measures, with its usual surprise in its unit, or as a share for a company's figures."""

    name: str
    pattern: re.Pattern[str]
    side: Side
    usual: float


class Verdict(StrEnum):
    """How a report compares with what was expected."""

    ABOVE = "above"
    IN_LINE = "in line"
    BELOW = "below"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Surprise:
    """A comparison with expectations. Without figures `actual` and `expected` are None and `usual_sizes` is NaN."""

    measure: str
    side: Side
    verdict: Verdict
    actual: float | None = None
    expected: float | None = None
    prior: float | None = None
    usual_sizes: float = math.nan

    @property
    def is_good(self) -> bool | None:
        """Whether it is better than expected for what it measures; None where that is unclear or of neither sort."""
        if self.verdict in (Verdict.UNCLEAR, Verdict.IN_LINE) or self.side not in (Side.GOOD, Side.BAD):
            return None
        return (self.verdict is Verdict.ABOVE) == (self.side is Side.GOOD)


_DATA = Patterns("htfi.narrative.facts", "measures.toml", "parts")
MEASURES = tuple(
    Measure(one["name"], re.compile(one["pattern"], re.IGNORECASE), Side(one["side"]), float(one["usual"]))
    for one in _DATA.entries("measure")
)
_OTHER = Measure("other", re.compile(""), Side.UNKNOWN, math.nan)
_FALLS = _DATA.compiled("falls", re.IGNORECASE)
_FALLS_AFTER = _DATA.compiled("falls_after", re.IGNORECASE)
_BEATS = re.compile(r"\b(?:beat|top|exceed|above|better|more|higher|ahead)", re.IGNORECASE)


def find_surprises(text: str) -> list[Surprise]:
    """The comparisons with expectations that a text states, one for each measure, in the order of the text."""
    figures = [_signed(text, figure) for figure in find_figures(text)]
    found: list[Surprise] = []
    for group in _groups(figures):
        surprise = _of_figures(text, group)
        if surprise is not None:
            found.append(surprise)
    return found or _of_words(text)


def measure_at(text: str, position: int) -> Measure | None:
    """The measure that a figure at `position` is of: the nearest that is named before it, else the first after it."""
    best: tuple[int, int, Measure] | None = None
    for order, measure in enumerate(MEASURES):
        for match in measure.pattern.finditer(text):
            distance = position - match.end() if match.end() <= position else 10_000 + match.start() - position
            if best is None or (distance, order) < (best[0], best[1]):
                best = (distance, order, measure)
    return None if best is None else best[2]


def _groups(figures: Sequence[Figure]) -> list[list[Figure]]:
    """The figures of each comparison: an actual one with those behind it, and those before the first."""
    groups: list[list[Figure]] = []
    leading: list[Figure] = []
    for figure in figures:
        if figure.role is FigureRole.ACTUAL:
            groups.append([*leading, figure])
            leading = []
        elif groups:
            groups[-1].append(figure)
        else:
            leading.append(figure)
    return groups


def _of_figures(text: str, group: Sequence[Figure]) -> Surprise | None:
    actual = next(figure for figure in group if figure.role is FigureRole.ACTUAL)
    measure = measure_at(text, actual.start) or _OTHER
    alike = [figure for figure in group if figure.unit is actual.unit or _is_bare(figure) or _is_bare(actual)]
    expected = next((figure for figure in alike if figure.role is FigureRole.EXPECTED), None)
    prior = next((figure for figure in alike if figure.role is FigureRole.PRIOR), None)
    actual_value = actual.middle
    if expected is not None:
        expected_value = _scaled_alike(expected, actual)
        difference = actual_value - expected_value
    else:
        by = next((figure for figure in alike if figure.role is FigureRole.DIFFERENCE), None)
        if by is None:
            return None
        difference = by.middle if _BEATS.search(text[actual.end : by.start]) else -by.middle
        expected_value = actual_value - difference
    usual = measure.usual
    if measure.name in _RELATIVE_MEASURES:
        usual *= max(abs(expected_value), _MIN_RELATIVE)
    verdict = Verdict.IN_LINE if abs(difference) < 1e-9 * max(abs(actual_value), 1.0) else Verdict.ABOVE if difference > 0.0 else Verdict.BELOW
    return Surprise(
        measure.name, measure.side, verdict, actual_value, expected_value, prior.middle if prior else None,
        difference / usual if usual > 0.0 else math.nan,
    )  # fmt: skip


def _is_bare(figure: Figure) -> bool:
    return figure.unit is FigureUnit.NUMBER and not figure.currency


def _scaled_alike(expected: Figure, actual: Figure) -> float:
    """The expected value in the scale of the actual one, where only one of them has a scale: '4.5 vs 4.3 billion'."""
    value, other = expected.middle, actual.middle
    for scale in (1e3, 1e6, 1e9, 1e12):
        if value and other and 0.2 < abs(other / (value * scale)) < 5.0 and _is_bare(expected):
            return value * scale
    return value


def _signed(text: str, figure: Figure) -> Figure:
    """A figure without a sign is below zero after 'fell', 'a loss of' or 'contracted', and before 'decline'."""
    if figure.value <= 0.0 or text[figure.start] in "+-−–(":
        return figure
    before = text[max(0, figure.start - 40) : figure.start]
    after = text[figure.end : figure.end + 20]
    if _FALLS.search(before) or _FALLS_AFTER.match(after):
        return replace(figure, value=-figure.value, high=None if figure.high is None else -figure.high)
    return figure


def _of_words(text: str) -> list[Surprise]:
    plain = plain_letters(text)
    for clause in split_clauses(plain) or [plain]:
        sides = expectation_sides(plain, 1, 1)
        measure = measure_at(plain, len(clause))
        if measure is None or sides is None or not sides:
            continue
        directions = {side.direction for side in sides}
        verdict = Verdict.UNCLEAR if len(directions) > 1 else {1: Verdict.ABOVE, 0: Verdict.IN_LINE, -1: Verdict.BELOW}[sides[0].direction]
        return [Surprise(measure.name, measure.side, verdict)]
    return []
