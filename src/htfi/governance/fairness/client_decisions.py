"""A table of client decisions by group: demographic parity, equalised odds, calibration within groups.

Sources: Hardt, Price and Srebro (2016) for equalised odds; Kleinberg, Mullainathan and Raghavan (2017) for calibration
within groups, which with unequal base rates no decision can have together with equalised odds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.governance.fairness.findings import (
    MIN_ROWS,
    NOT_REPORTED,
    Correction,
    GroupFigure,
    GroupGap,
    judge_gaps,
)
from htfi.governance.fairness.ports import GroupMetrics

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

SELECTION, TRUE_POSITIVE, FALSE_POSITIVE = "selection rate", "true positive rate", "false positive rate"
BASE_RATE, CALIBRATION = "base rate", "outcome less score"
NUM_SCORE_BINS = 10
TOLERATED_RATE = 0.03  # gap of a rate that is not judged
_SIGMAS_95 = 1.959964


@dataclass(frozen=True, slots=True)
class ClientDecisions:
    """Rows [N] of a table: `decision` and `outcome` true where favourable, `score` in 0–1 their forecast of it.

    `groups`: each protected attribute's group of every row [N].
    """

    groups: Mapping[str, list[str]]
    decision: Flags | None = None
    outcome: Flags | None = None
    score: Floats | None = None


@dataclass(frozen=True, slots=True)
class ClientAudit:
    """Figures of all groups and the judged gaps between each two; `disparities`: fairlearn's largest difference."""

    figures: list[GroupFigure]
    gaps: list[GroupGap]
    disparities: dict[str, dict[str, float]]  # attribute → measure → difference


def audit_decisions(table: ClientDecisions, metrics: GroupMetrics, correction: Correction) -> ClientAudit:
    """Measure every group of every attribute and compare each two. Raises: InvalidInput where that is impossible."""
    check_table(table)
    figures: list[GroupFigure] = []
    disparities: dict[str, dict[str, float]] = {}
    gaps: dict[str, list[GroupGap]] = {}
    for measure, (flags, among) in _rates(table).items():
        for attribute, labels in table.groups.items():
            chosen = [label for label, inside in zip(labels, among.tolist(), strict=True) if inside]
            found = rate_figures(measure, attribute, flags[among], chosen, sorted(set(labels)), metrics)
            figures += found
            gaps.setdefault(measure, []).extend(rate_gaps(found, metrics))
            known = comparable(found)
            if len(known) > 1:
                kept = np.array([label in known for label in chosen])
                disparities.setdefault(attribute, {})[measure] = metrics.largest_difference(
                    flags[among][kept], [label for label in chosen if label in known]
                )
    if table.score is not None and table.outcome is not None:
        for attribute, labels in table.groups.items():
            found = _calibration(attribute, table.outcome, table.score, labels)
            figures += found[0]
            gaps.setdefault(CALIBRATION, []).extend(found[1])
    judged = [gap for found in gaps.values() for gap in judge_gaps(found, correction)]
    return ClientAudit(figures, judged, disparities)


def check_table(table: ClientDecisions) -> None:
    """Raises: InvalidInput where the table cannot be judged, with what is missing."""
    if not table.groups:
        raise InvalidInput("no protected attribute is named: give --protected COL")
    if table.decision is None and table.outcome is None:
        raise InvalidInput(
            "neither decision nor outcome is named: give --decision COL, --outcome COL, or both"
        )
    for name, flags in (("decision", table.decision), ("outcome", table.outcome)):
        if flags is not None and len(set(flags.tolist())) == 1:
            which = "favourable" if flags[0] else "unfavourable"
            raise InvalidInput(f"every {name} is {which}: groups do not differ in it")
    for attribute, labels in table.groups.items():
        sizes = {label: labels.count(label) for label in set(labels)}
        large = [label for label, num in sizes.items() if num >= MIN_ROWS and label != NOT_REPORTED]
        if len(large) < 2:
            raise InvalidInput(
                f"column '{attribute}' has {len(large)} group(s) of {MIN_ROWS} rows or more: "
                "a comparison needs two"
            )


def rate_figures(
    measure: str, attribute: str, flags: Flags, labels: list[str], groups: list[str], metrics: GroupMetrics
) -> list[GroupFigure]:
    """The share of true flags [N] in each of `groups`, with its exact interval; NaN in a group without rows."""
    rates = metrics.rates(flags, labels) if labels else {}
    found: list[GroupFigure] = []
    for group in groups:
        num = labels.count(group)
        if num == 0:
            found.append(GroupFigure(measure, attribute, group, 0, math.nan, math.nan, math.nan))
            continue
        low, high = metrics.rate_interval(round(rates[group] * num), num)
        found.append(GroupFigure(measure, attribute, group, num, rates[group], low, high))
    return found


def comparable(figures: list[GroupFigure]) -> list[str]:
    """Groups that are reported and have rows enough."""
    return [one.group for one in figures if one.num >= MIN_ROWS and one.group != NOT_REPORTED]


def rate_gaps(figures: list[GroupFigure], metrics: GroupMetrics) -> list[GroupGap]:
    """The gap of each two groups that can be compared; its interval is made of the exact ones (Newcombe 1998)."""
    known = [one for one in figures if one.group in comparable(figures)]
    gaps: list[GroupGap] = []
    for first, second in combinations(known, 2):
        gap = first.value - second.value
        low = gap - math.hypot(first.value - first.low, second.high - second.value)
        high = gap + math.hypot(first.high - first.value, second.value - second.low)
        counts = [(round(one.value * one.num), one.num) for one in (first, second)]
        p = metrics.rates_p(counts[0], counts[1])
        gaps.append(
            GroupGap(
                first.measure, first.attribute, first.group, second.group, gap, low, high, p,
                tolerated=TOLERATED_RATE,
            )
        )  # fmt: skip
    return gaps


def _rates(table: ClientDecisions) -> dict[str, tuple[Flags, Flags]]:
    """Flags [N] and the rows [N] among which each measure counts them."""
    found: dict[str, tuple[Flags, Flags]] = {}
    if table.decision is not None:
        found[SELECTION] = (table.decision, np.ones(len(table.decision), np.bool_))
    if table.outcome is not None:
        found[BASE_RATE] = (table.outcome, np.ones(len(table.outcome), np.bool_))
    if table.decision is not None and table.outcome is not None:
        found[TRUE_POSITIVE] = (table.decision, table.outcome)
        found[FALSE_POSITIVE] = (table.decision, ~table.outcome)
    return found


def _calibration(
    attribute: str, outcome: Flags, score: Floats, labels: list[str]
) -> tuple[list[GroupFigure], list[GroupGap]]:
    """How far outcomes lie above their scores on average, by group; gaps are compared within tenths of the score."""
    excess = outcome.astype(np.float64) - score
    names = np.array(labels)
    figures: list[GroupFigure] = []
    for group in sorted(set(labels)):
        inside = excess[names == group]
        error = float(inside.std(ddof=1)) / math.sqrt(len(inside)) if len(inside) > 1 else math.nan
        mean = float(inside.mean())
        figures.append(
            GroupFigure(
                CALIBRATION, attribute, group, len(inside), mean,
                mean - _SIGMAS_95 * error, mean + _SIGMAS_95 * error,
            )
        )  # fmt: skip
    edges = np.quantile(score, np.linspace(0.0, 1.0, NUM_SCORE_BINS + 1)[1:-1])
    bins = np.searchsorted(edges, score, side="right")
    gaps = [
        _calibration_gap(attribute, first, second, excess, bins, names)
        for first, second in combinations(comparable(figures), 2)
    ]
    return figures, gaps


def _calibration_gap(
    attribute: str, first: str, second: str, excess: Floats, bins: NDArray[np.intp], names: NDArray[np.str_]
) -> GroupGap:
    """The mean gap within bins of the score, weighted as Cochran, Mantel and Haenszel do, with its normal interval."""
    total = weight = variance = 0.0
    for tenth in range(NUM_SCORE_BINS):
        one, other = (excess[(bins == tenth) & (names == group)] for group in (first, second))
        if len(one) < 2 or len(other) < 2:
            continue
        share = len(one) * len(other) / (len(one) + len(other))
        total += share * float(one.mean() - other.mean())
        variance += share * share * float(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
        weight += share
    if not variance > 0.0:
        return GroupGap(CALIBRATION, attribute, first, second, math.nan, math.nan, math.nan, math.nan)
    gap, error = total / weight, math.sqrt(variance) / weight
    p = math.erfc(abs(gap) / error / math.sqrt(2.0))
    low, high = gap - _SIGMAS_95 * error, gap + _SIGMAS_95 * error
    return GroupGap(CALIBRATION, attribute, first, second, gap, low, high, p, tolerated=TOLERATED_RATE)
