"""Compares a reported figure with the one before it: a year or a quarter earlier, or 'from … to …'.

Only pairs that a text states in full count, of measures whose good side is known (`measures.toml`). A loss is a figure
below zero, so a smaller one is better, and a profit after a loss is.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from htfi.narrative.facts.figure_scan import Figure, FigureUnit
from htfi.narrative.facts.figures import FigureContext, FigureRole, PlacedFigure
from htfi.narrative.facts.measures import MEASURE_DATA, Measure, Side, measure_at
from htfi.narrative.patterns import Patterns

_DATA = Patterns("htfi.narrative.facts", "figures.toml", "prior_changes")
_BESIDE = _DATA.compiled("beside", re.IGNORECASE)
_FROM = _DATA.compiled("from", re.IGNORECASE)
_ENDS_IN_FROM = _DATA.compiled("ends_in_from", re.IGNORECASE)
_TO = _DATA.compiled("to", re.IGNORECASE)
_BY = _DATA.compiled("by", re.IGNORECASE)
_EXCEPTED = _DATA.compiled("excepted", re.IGNORECASE)
_EARLIER = _DATA.compiled("earlier", re.IGNORECASE)
_EXPECTED = _DATA.compiled("expected", re.IGNORECASE)
_NEXT_CLAUSE = re.compile(r"[;\n]|\.\s|,\s+(?:and|but|while)\b")
_LOSSES = MEASURE_DATA.compiled("losses", re.IGNORECASE)
_NO_LOSSES = MEASURE_DATA.compiled("no_losses", re.IGNORECASE)
_GAINS = re.compile(r"\b(?:profits?|gains?|earnings|income|surplus|positive)\b", re.IGNORECASE)
_BELOW_ZERO = re.compile(r"\b(?:negative|minus)\b", re.IGNORECASE)
_RESULTS = frozenset({"profit", "earnings per share", "results", "cash flow"})
_IN_PERCENT = frozenset(
    {"margin", "return", "combined ratio", "capital ratio", "churn", "comparable sales", "unemployment rate"}
)
_NAME_CHARS = 110  # before a figure, in which a loss or a profit may be named
_BEHIND_CHARS = 90  # behind the earlier figure, in which its time may be named
_CONVERSION_CHARS = 12  # between a figure and itself in another currency
_MIN_CHANGE = 0.005  # of the earlier figure


class PriorChange(NamedTuple):
    """A measure's figure and the one before it, each below zero for a loss; `is_good` for the company that it is of."""

    measure: str
    actual: float
    prior: float
    is_good: bool


def changes_among(text: str, context: FigureContext) -> list[PriorChange]:
    """The comparisons with an earlier figure that a text states, in its order."""
    found: list[PriorChange] = []
    placed = _without_conversions(context.placed)
    ends = [0, *(one.figure.end for one in placed)]
    for (left, right), before in zip(pairwise(placed), ends, strict=False):
        pair = _in_order(text, left, right, before)
        if pair is not None:
            change = _compared(text, *pair, before, context)
            if change is not None:
                found.append(change)
    return found


def _without_conversions(placed: Sequence[PlacedFigure]) -> list[PlacedFigure]:
    """The figures but for those that give the one before them in another currency: 'EUR 7.9 mln ($ 10.4 mln)'."""
    kept: list[PlacedFigure] = []
    for one in placed:
        last = kept[-1].figure if kept else None
        is_beside = last is not None and one.figure.start - last.end <= _CONVERSION_CHARS
        if not (is_beside and last and one.figure.currency not in ("", last.currency)):
            kept.append(one)
    return kept


def _is_alike(one: Figure, other: Figure) -> bool:
    """Whether two figures can be of one measure: '41 mln eur' and '33 mln' can."""
    if one.currency and other.currency and one.currency != other.currency:
        return False
    numbers = {FigureUnit.MONEY, FigureUnit.NUMBER}
    return one.unit is other.unit or ({one.unit, other.unit} == numbers and one.scale == other.scale)


def _is_cut(text: str, figure: Figure) -> bool:
    """Whether a blank parts a figure, so that its value is unknown: 'EUR0 .29', 'EUR928 ,000'."""
    return bool(
        re.match(r"\s[.,]\d", text[figure.end : figure.end + 3])
        or re.search(r"\d\s$", text[max(0, figure.start - 2) : figure.start])
    )


def _in_order(
    text: str, left: PlacedFigure, right: PlacedFigure, before: int
) -> tuple[Figure, Figure] | None:
    """The reported figure and the earlier one; None where the two are not said to be these."""
    one, other = left.figure, right.figure
    if {FigureRole.EXPECTED, FigureRole.DIFFERENCE} & {one.role, other.role}:
        return None
    if not _is_alike(one, other) or _is_cut(text, one) or _is_cut(text, other):
        return None
    gap = text[one.end : other.start]
    behind = _NEXT_CLAUSE.split(text[other.end : other.end + _BEHIND_CHARS])[0]
    lead = text[max(before, one.start - _NAME_CHARS) : one.start]
    if _EXPECTED.search(gap) or _EXPECTED.search(behind) or _EXPECTED.search(lead):
        return None
    if _BY.search(lead) or _BY.search(gap):
        return None
    if _TO.fullmatch(gap) and _ENDS_IN_FROM.search(lead):
        return other, one
    if _FROM.search(gap):
        return one, other
    if _BESIDE.search(gap) and (_EARLIER.search(gap) or _EARLIER.search(behind)):
        return one, other
    return None


def _compared(
    text: str, actual: Figure, prior: Figure, before: int, context: FigureContext
) -> PriorChange | None:
    first = min(actual.start, prior.start)
    lead = text[max(before, first - _NAME_CHARS) : first]
    gap = text[min(actual.end, prior.end) : max(actual.start, prior.start)]
    sign = _sign(lead) or 1.0
    other_sign = _sign(gap) or sign
    actual_sign, prior_sign = (sign, other_sign) if actual.start < prior.start else (other_sign, sign)
    mentions = [one for one in context.mentions if not _EXCEPTED.search(text[: one.start])]
    measure = measure_at(text, mentions, first)
    side = _side(measure, actual, is_result=-1.0 in (sign, other_sign))
    if side is None or _scales_differ(actual, prior):
        return None
    now, then = (
        figure.middle * (turn if figure.middle > 0.0 else 1.0)
        for figure, turn in ((actual, actual_sign), (prior, prior_sign))
    )
    if abs(now - then) < _MIN_CHANGE * max(abs(then), abs(now)) or now == then:
        return None
    name = "profit" if measure is None else measure.name
    return PriorChange(name, now, then, (now > then) == (side is Side.GOOD))


def _side(measure: Measure | None, figure: Figure, *, is_result: bool) -> Side | None:
    """Which side of a figure is good: a loss or a profit needs no other name; a rate of growth is no level."""
    if is_result and (measure is None or measure.name in _RESULTS or measure.side is Side.UNKNOWN):
        return Side.GOOD
    if measure is None or measure.side not in (Side.GOOD, Side.BAD):
        return None
    if figure.unit is FigureUnit.PERCENT and measure.name not in _IN_PERCENT:
        return None
    return measure.side


def _scales_differ(one: Figure, other: Figure) -> bool:
    """'EUR 4.0 mn compared to EUR 8.6': one of the two lacks its scale."""
    return (
        one.scale != other.scale and 1.0 in (one.scale, other.scale) and abs(one.middle) != abs(other.middle)
    )


def _sign(words: str) -> float | None:
    """−1 after the name of a loss, 1 after that of a profit; None where neither stands."""
    words = _NO_LOSSES.sub("", words)
    losses = [match.start() for pattern in (_LOSSES, _BELOW_ZERO) for match in pattern.finditer(words)]
    gains = [match.start() for match in _GAINS.finditer(words)]
    if not losses and not gains:
        return None
    return -1.0 if max(losses, default=-1) > max(gains, default=-1) else 1.0
