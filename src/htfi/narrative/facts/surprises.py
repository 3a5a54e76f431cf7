"""Compares what was reported with what was expected: by the figures of a text, or where it has none by its words.

A surprise is actual minus expected, in the measure's own unit and in units of its usual size (`measures.toml`). A loss
is a figure below zero, so a larger one is below what was expected.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from htfi.narrative.facts.expectations import Comparison, is_not_comparable
from htfi.narrative.facts.figures import (
    Figure,
    FigureContext,
    FigureRole,
    FigureUnit,
    PlacedFigure,
    figures_in_context,
)
from htfi.narrative.facts.measures import PER_SHARE, Measure, Side, measure_at
from htfi.narrative.facts.signs import SIGN_CHARS, names_loss, signed, turned_with
from htfi.narrative.patterns import FilteredPattern

__all__ = ["Side", "Surprise", "Verdict", "find_surprises"]
_MIN_RELATIVE = 1e-9
_REMARK_CHARS = 60  # around a comparison, in which it may be said not to compare
_WORDS_CHARS = 90  # between a figure and the words that compare it
_MAX_PER_SHARE = 500.0


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


_OTHER = Measure("other", FilteredPattern(""), Side.UNKNOWN, math.nan)
_GAAP = re.compile(r"(?<!non-)(?<!non )\bgaap\b", re.IGNORECASE)
_NON_GAAP = re.compile(r"\bnon[- ]gaap\b|\badj(?:usted)?\b", re.IGNORECASE)
_CLAUSE_BREAK = re.compile(r"[;|\n()]|\.\s|,\s|\s-\s|\bbut\b|\bwhile\b|\band\b", re.IGNORECASE)


def find_surprises(text: str) -> list[Surprise]:
    """The comparisons with expectations that a text states, one for each measure, in the order of the text."""
    return surprises_among(text, figures_in_context(text))


def surprises_among(text: str, context: FigureContext) -> list[Surprise]:
    """The same from the figures of the text, where they are known."""
    found: list[tuple[int, Surprise]] = []
    used: set[int] = set()
    groups = _groups(context.placed)
    for index, group in enumerate(groups):
        until = groups[index + 1][0].figure.start if index + 1 < len(groups) else len(text)
        surprise = _of_figures(text, group, context)
        if surprise is None:
            surprise = _of_words_beside(text, group, until, context, used)
        if surprise is not None:
            found.append((group[0].figure.start, surprise))
    covered = {surprise.measure for _, surprise in found}
    for comparison in context.comparisons:
        if comparison.start in used or (found and _is_near(comparison, groups)):
            continue
        surprise = _of_words(text, comparison, context)
        if surprise is not None and surprise.measure not in covered:
            covered.add(surprise.measure)
            found.append((comparison.start, surprise))
    return [surprise for _, surprise in sorted(found, key=lambda one: one[0])]


def _groups(placed: Sequence[PlacedFigure]) -> list[list[PlacedFigure]]:
    """The figures of each comparison."""
    groups: list[list[PlacedFigure]] = []
    for one in placed:
        if one.begins or not groups:
            groups.append([])
        groups[-1].append(one)
    return groups


def _is_near(comparison: Comparison, groups: Sequence[Sequence[PlacedFigure]]) -> bool:
    """Whether words stand within the figures of a comparison, so that they are about these."""
    return any(
        group[0].figure.start <= comparison.start <= group[-1].figure.end
        for group in groups
        if len(group) > 1
    )


_COMPARED = (FigureRole.EXPECTED, FigureRole.DIFFERENCE)


def _of_figures(text: str, group: Sequence[PlacedFigure], context: FigureContext) -> Surprise | None:
    if not any(one.figure.role in _COMPARED for one in group):
        return None  # of most figures in the news nothing was expected
    figures = [replace(one, figure=signed(text, one.figure)) for one in group]
    actual = _first(figures, FigureRole.ACTUAL)
    expectations = [one for one in figures if one.figure.role is FigureRole.EXPECTED]
    if actual is not None and expectations and not any(_is_alike(actual, one.figure) for one in expectations):
        actual = next(
            (
                one.figure
                for one in figures
                if one.figure.role in (FigureRole.NONE, FigureRole.CHANGE)
                and _is_alike(one.figure, expectations[0].figure)
            ),
            None,
        )
    by = next((one for one in figures if one.figure.role is FigureRole.DIFFERENCE), None)
    if actual is None:
        return None if by is None else _of_difference(text, by, context)
    measure = _measure_of(text, actual, context)
    alike = [one for one in expectations if _is_alike(actual, one.figure)]
    expected = max(alike, key=lambda one: one.rank).figure if alike else None
    prior = next(
        (
            one.figure
            for one in figures
            if one.figure.role is FigureRole.PRIOR and _is_alike(actual, one.figure)
        ),
        None,
    )
    if expected is None:
        return None if by is None else _with_difference(text, actual, by, prior, measure, context)
    if _does_not_compare(text, actual, expected):
        return Surprise(
            measure.name, measure.side, Verdict.UNCLEAR, actual.middle, expected.middle, _middle(prior)
        )
    expected = _scaled_alike(turned_with(text, actual, expected), actual)
    difference = actual.middle - expected.middle
    is_same = _brackets(actual, expected) or abs(difference) <= 1e-9 * max(
        abs(actual.middle), abs(expected.middle)
    )
    return _surprise(measure, actual, expected.middle, prior, 0.0 if is_same else difference)


def _surprise(
    measure: Measure, actual: Figure | None, expected: float | None, prior: Figure | None, difference: float
) -> Surprise:
    usual = measure.usual
    if measure.is_share:
        usual = math.nan if expected is None else usual * max(abs(expected), _MIN_RELATIVE)
    verdict = Verdict.IN_LINE if difference == 0.0 else Verdict.ABOVE if difference > 0.0 else Verdict.BELOW
    return Surprise(
        measure.name,
        measure.side,
        verdict,
        None if actual is None else actual.middle,
        expected,
        _middle(prior),
        difference / usual if usual > 0.0 else math.nan,
    )


def _middle(figure: Figure | None) -> float | None:
    return None if figure is None else figure.middle


def _first(figures: Sequence[PlacedFigure], role: FigureRole) -> Figure | None:
    return next((one.figure for one in figures if one.figure.role is role), None)


def _measure_of(text: str, figure: Figure, context: FigureContext) -> Measure:
    found = measure_at(text, context.mentions, figure.start)
    if found is not None:
        return found
    is_per_share = (
        figure.unit is FigureUnit.MONEY and figure.scale <= 1.0 and abs(figure.middle) < _MAX_PER_SHARE
    )
    return PER_SHARE if is_per_share else _OTHER


def _is_alike(one: Figure, other: Figure) -> bool:
    is_zero = (one.is_bare and one.value == 0.0) or (other.is_bare and other.value == 0.0)
    return one.unit is other.unit or one.is_bare or other.is_bare or is_zero


def _brackets(one: Figure, other: Figure) -> bool:
    """Whether one of them is a range that holds the other."""

    def holds(outer: Figure, inner: Figure) -> bool:
        if outer.high is None:
            return False
        slack = 1e-9 * max(abs(outer.value), abs(outer.high))
        return outer.value - slack <= inner.middle <= outer.high + slack

    return holds(one, other) or holds(other, one)


def _scaled_alike(expected: Figure, actual: Figure) -> Figure:
    """The expected value in the scale of the actual one, where only one of them has a scale: '4.5 vs 4.3 billion'."""
    if expected.scale == actual.scale or not (expected.scale == 1.0 or actual.scale == 1.0):
        return expected
    factor = actual.scale / expected.scale
    value, other = expected.middle, actual.middle
    if not value or not other:
        return expected
    as_written, as_scaled = abs(math.log(abs(other / value))), abs(math.log(abs(other / (value * factor))))
    if as_scaled >= as_written:
        return expected
    high = None if expected.high is None else expected.high * factor
    return replace(expected, value=expected.value * factor, high=high)


def _does_not_compare(text: str, actual: Figure, expected: Figure) -> bool:
    start, end = min(actual.start, expected.start), max(actual.end, expected.end)
    if is_not_comparable(text[max(0, start - _REMARK_CHARS) : end + _REMARK_CHARS]):
        return True
    between = text[min(actual.end, expected.end) : max(actual.start, expected.start)]
    own = text[max(0, actual.start - 24) : actual.start], text[expected.end : expected.end + 16]
    is_gaap = _GAAP.search(own[0]) is not None and _NON_GAAP.search(between) is not None
    return is_gaap or (_NON_GAAP.search(own[0]) is not None and _GAAP.search(between) is not None)


def _direction_of(text: str, by: PlacedFigure, context: FigureContext) -> int | None:
    """The direction of a difference: that of the words beside it, else its sign."""
    if by.direction is not None:
        return by.direction
    after = text[by.figure.end : by.figure.end + 4]
    for one in context.comparisons:
        if by.figure.end <= one.start <= by.figure.end + len(after) and one.direction is not None:
            return one.direction
    return 0 if by.figure.value == 0.0 else 1 if by.figure.value > 0.0 else -1


def _with_difference(
    text: str,
    actual: Figure,
    by: PlacedFigure,
    prior: Figure | None,
    measure: Measure,
    context: FigureContext,
) -> Surprise | None:
    context_words = text[by.figure.end : by.figure.end + _REMARK_CHARS]
    if is_not_comparable(context_words):
        return Surprise(measure.name, measure.side, Verdict.UNCLEAR, actual.middle, None, _middle(prior))
    direction = _direction_of(text, by, context)
    if direction is None:
        return None
    size = abs(by.figure.middle)
    if by.figure.unit is FigureUnit.PERCENT and actual.unit is not FigureUnit.PERCENT:
        size = abs(actual.middle) * size / 100.0
    elif by.figure.scale == 1.0 and actual.scale != 1.0 and by.figure.is_bare:
        size *= actual.scale
    return _surprise(measure, actual, actual.middle - direction * size, prior, direction * size)


def _of_difference(text: str, by: PlacedFigure, context: FigureContext) -> Surprise | None:
    """A difference without the figures that it lies between: 'tops by two cents', 'EPS surprise +4.8%'."""
    direction = _direction_of(text, by, context)
    if direction is None:
        return None
    measure = _measure_of(text, by.figure, context)
    return replace(_surprise(measure, None, None, None, float(direction)), usual_sizes=math.nan)


def _of_words_beside(
    text: str, group: Sequence[PlacedFigure], until: int, context: FigureContext, used: set[int]
) -> Surprise | None:
    """A reported figure whose comparison is in words: 'rate 3.50%, as forecast', '4.1%, well above consensus'."""
    actual = next((one.figure for one in group if one.figure.role is FigureRole.ACTUAL), None)
    if actual is None:
        return None
    for one in context.comparisons:
        if (
            one.end < actual.start - _WORDS_CHARS
            or one.start > min(until, actual.end + _WORDS_CHARS)
            or one.start in used
        ):
            continue
        if not one.names_expectation and one.end <= actual.start:
            continue
        if re.search(r"[;\n]|\.\s", text[min(one.end, actual.end) : max(one.start, actual.start)]):
            continue
        used.add(one.start)
        measure = _measure_of(text, actual, context)
        return _judged(text, one, measure, actual)
    return None


def _of_words(text: str, comparison: Comparison, context: FigureContext) -> Surprise | None:
    """A comparison without any figure: 'EPS tops estimates'."""
    measure = measure_at(text, context.mentions, comparison.start)
    between = None
    if measure is not None:
        near = [one for one in context.mentions if one.start <= comparison.start]
        between = text[near[-1].end : comparison.start] if near else ""
    after = next(
        (one for one in context.mentions if comparison.start < one.start <= comparison.end + 24), None
    )
    if after is not None and (between is None or _CLAUSE_BREAK.search(between)):
        measure = after.measure
    return None if measure is None else _judged(text, comparison, measure, None)


def _judged(text: str, comparison: Comparison, measure: Measure, actual: Figure | None) -> Surprise:
    """The verdict of words: better is less of a bad measure, and a larger loss is below."""
    direction = comparison.direction
    if direction is not None and comparison.is_quality and measure.side is Side.BAD:
        direction = -direction
    if direction is not None and comparison.is_size:
        start = comparison.start if actual is None else min(actual.start, comparison.start)
        before = text[max(0, start - SIGN_CHARS) : comparison.start]
        is_negative = (actual is not None and signed(text, actual).middle < 0.0) or names_loss(before)
        is_falling = re.search(
            r"\b(?:f[ae]ll\w*|drop\w*|declin\w*|shr[aiu]nk\w*|contract\w*|draw\w*|slid\w*|slump\w*|cae\w*|baja\w*|recul\w*|baiss\w*|sink\w*|fällt|fiel|cala\w*|scend\w*|cai\w*|daal\w*|falt)\b",
            before,
            re.IGNORECASE,
        )
        direction = -direction if is_negative or is_falling else direction
    verdict = (
        Verdict.UNCLEAR
        if direction is None
        else Verdict.IN_LINE
        if direction == 0
        else Verdict.ABOVE
        if direction > 0
        else Verdict.BELOW
    )
    value = None if actual is None else signed(text, actual).middle
    return Surprise(measure.name, measure.side, verdict, value)
