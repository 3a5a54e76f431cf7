"""What an audit finds: figures of groups, gaps between groups with their error, and a verdict on each gap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

MAX_P = 0.05  # adjusted p-value up to which a gap is a finding
NOT_REPORTED = "(not reported)"
MIN_ROWS = 10  # a group with fewer rows is listed and not compared


class GapVerdict(StrEnum):
    """The outcome of the comparison of two groups."""

    ALIKE = "alike"  # the gap is within what is tolerated
    NOISE = "within noise"  # larger, but chance alone makes such gaps
    DIFFERENT = "different"


class Correction(StrEnum):
    """How p-values are corrected for the number of comparisons of one measure."""

    HOLM = "holm"  # chance of any false finding (Holm 1979)
    BENJAMINI_HOCHBERG = (
        "benjamini-hochberg"  # expected share of false findings (Benjamini and Hochberg 1995)
    )


@dataclass(frozen=True, slots=True)
class GroupFigure:
    """A measure of one group; `low` to `high` is its 95% interval. NaN where the group has no row to measure."""

    measure: str
    attribute: str
    group: str
    num: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GroupGap:
    """A measure of the first group less that of the second, with its 95% interval and p-values for no gap."""

    measure: str
    attribute: str
    first: str
    second: str
    gap: float
    low: float
    high: float
    p: float
    adjusted_p: float = math.nan
    tolerated: float = 0.0
    verdict: GapVerdict = GapVerdict.NOISE


def judge_gaps(gaps: Sequence[GroupGap], correction: Correction) -> list[GroupGap]:
    """The gaps of one measure with corrected p-values and verdicts; what is not a number is no finding."""
    adjusted = adjust([gap.p for gap in gaps], correction)
    return [
        replace(gap, adjusted_p=p, verdict=_verdict(gap, p)) for gap, p in zip(gaps, adjusted, strict=True)
    ]


def adjust(chances: Sequence[float], correction: Correction) -> list[float]:
    """P-values corrected for their number; NaN stays NaN and is not counted."""
    known = [place for place, p in enumerate(chances) if not math.isnan(p)]
    order = sorted(known, key=lambda place: chances[place])
    adjusted, num = list(chances), len(order)
    if correction is Correction.HOLM:
        highest = 0.0
        for rank, place in enumerate(order):
            highest = max(highest, min(1.0, (num - rank) * chances[place]))
            adjusted[place] = highest
    else:
        lowest = 1.0
        for rank in range(num - 1, -1, -1):
            lowest = min(lowest, chances[order[rank]] * num / (rank + 1))
            adjusted[order[rank]] = lowest
    return adjusted


def _verdict(gap: GroupGap, adjusted_p: float) -> GapVerdict:
    if abs(gap.gap) <= gap.tolerated:
        return GapVerdict.ALIKE
    return GapVerdict.DIFFERENT if adjusted_p <= MAX_P else GapVerdict.NOISE
