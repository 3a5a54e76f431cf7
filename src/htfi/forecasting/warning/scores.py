"""Scores of warnings: of ranking, of stated probabilities, and of alerts; with intervals that allow for few events."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.warning.events import StressEvents
from htfi.forecasting.warning.walk_forward import SESSIONS_A_YEAR

Array = NDArray[np.float64]
Places = NDArray[np.intp]
ScoreFunction = Callable[[Array, Array], float]


@dataclass(frozen=True, slots=True)
class AlertScores:
    """Of alerts over some years. A hit came true; an event is caught where an alert before its onset came true.

    Rates are NaN where there was nothing to count; lead_days: sessions from each caught event's first such alert to its
    onset.
    """

    num_alerts: int
    num_false: int
    num_open: int  # not decided yet
    num_events: int
    num_caught: int
    years: float
    lead_days: tuple[int, ...]

    @property
    def false_alarms_a_year(self) -> float:
        return self.num_false / self.years if self.years else float("nan")

    @property
    def hit_rate(self) -> float:
        return self.num_caught / self.num_events if self.num_events else float("nan")

    @property
    def precision(self) -> float:
        num_closed = self.num_alerts - self.num_open
        return (num_closed - self.num_false) / num_closed if num_closed else float("nan")

    @property
    def median_lead_days(self) -> float:
        return float(np.median(self.lead_days)) if self.lead_days else float("nan")


def score_alerts(raised: Places, events: StressEvents, first: int, last: int) -> AlertScores:
    """Alerts and events of the sessions first … last, both included; `raised` lies within."""
    label = events.label[raised]
    true = raised[label == 1.0]
    onsets = events.onsets[(events.onsets > first) & (events.onsets <= last)]
    caught: dict[int, int] = {}
    for t in true.tolist():
        onset = int(events.onset[t])
        caught[onset] = max(caught.get(onset, 0), onset - t)
    leads = tuple(lead for onset, lead in sorted(caught.items()) if onset in set(onsets.tolist()))
    return AlertScores(
        len(raised),
        int((label == 0.0).sum()),
        int(np.isnan(label).sum()),
        len(onsets),
        len(leads),
        (last - first + 1) / SESSIONS_A_YEAR,
        leads,
    )


def roc_auc(chance: Array, label: Array) -> float:
    """The share of pairs of a 1 and a 0 in which the 1 was given more; ties count half. NaN without both."""
    num_ones = float(label.sum())
    num_zeros = len(label) - num_ones
    if not num_ones or not num_zeros:
        return float("nan")
    values, place = np.unique(chance, return_inverse=True)
    count = np.bincount(place, minlength=len(values))
    rank = np.cumsum(count) - (count - 1) / 2  # mean rank of ties, from 1
    return float((rank[place][label == 1.0].sum() - num_ones * (num_ones + 1) / 2) / (num_ones * num_zeros))


def average_precision(chance: Array, label: Array) -> float:
    """The area under precision by recall, as steps; ties enter together. NaN without a 1."""
    recall, precision = precision_recall(chance, label)
    return float((np.diff(recall, prepend=0.0) * precision).sum()) if len(recall) else float("nan")


def precision_recall(chance: Array, label: Array) -> tuple[Array, Array]:
    """Recall and precision at each distinct chance as threshold, from the highest; empty without a 1."""
    hits, passed = _counts(chance, label)
    return (hits / hits[-1], hits / passed) if len(hits) and hits[-1] else (np.empty(0), np.empty(0))


def roc(chance: Array, label: Array) -> tuple[Array, Array]:
    """Shares of zeros and of ones at or above each threshold, from (0, 0) to (1, 1)."""
    hits, passed = _counts(chance, label)
    false = passed - hits
    if not len(hits) or not hits[-1] or not false[-1]:
        return np.empty(0), np.empty(0)
    return np.append(0.0, false / false[-1]), np.append(0.0, hits / hits[-1])


def brier(chance: Array, label: Array) -> float:
    """Mean squared error of the chance; lower is better."""
    return float(np.square(chance - label).mean()) if len(label) else float("nan")


def reliability(chance: Array, label: Array, num_bins: int) -> tuple[Array, Array, Array]:
    """Mean chance stated, share that came true and number, in bins of equally many sessions."""
    parts = [part for part in np.array_split(np.argsort(chance, kind="stable"), num_bins) if len(part)]
    stated = np.array([chance[part].mean() for part in parts])
    return stated, np.array([label[part].mean() for part in parts]), np.array([float(len(p)) for p in parts])


def interval95(
    scores: Callable[[Places], float], num: int, block: int, rng: np.random.Generator, num_draws: int = 1000
) -> tuple[float, float]:
    """Of a score of sessions by place, redrawn in circular blocks; NaN where most draws have no score.

    Blocks must be longer than an event with its horizon. Source: Politis and Romano (1992).
    """
    found: list[float] = []
    num_blocks = -(-num // block)
    for _ in range(num_draws):
        starts = rng.integers(0, num, num_blocks)
        places = ((starts[:, None] + np.arange(block)) % num).ravel()[:num]
        found.append(scores(places))
    known = np.array(found)[np.isfinite(found)]
    if len(known) < num_draws / 2:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.025, 0.975]).tolist()
    return low, high


def share_interval95(num: int, of: int) -> tuple[float, float]:
    """Wilson's interval of a share counted on independent cases, such as events caught."""
    if not of:
        return float("nan"), float("nan")
    z2 = 1.959964**2
    middle = (num + z2 / 2) / (of + z2)
    half = np.sqrt(z2 * (num * (of - num) / of + z2 / 4)) / (of + z2)
    return float(middle - half), float(middle + half)


def _counts(chance: Array, label: Array) -> tuple[Array, Array]:
    """Ones, and all, at or above each distinct chance from the highest."""
    if not len(chance):
        return np.empty(0), np.empty(0)
    order = np.argsort(-chance, kind="stable")
    last = np.flatnonzero(np.append(np.diff(chance[order]) != 0, True))
    return np.cumsum(label[order])[last], (last + 1).astype(np.float64)
