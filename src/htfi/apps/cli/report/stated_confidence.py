"""Compares how sure the facts of news stated a direction with what the next bar of the series did.

Each item counts once for a series, at the decision that first considered it. Items of one instant are not independent
of each other: an interval counts them as one.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from msgspec import UNSET

from htfi.domain.decision import Decision

MIN_OUTCOMES = 20  # instants with an outcome, below which a share says nothing
NUM_BINS = 5
_FROM = 0.5  # the least confidence of a stated side
_MAX_SEEN = 512  # items of a series that are remembered as counted
_MAX_INSTANTS = 4_096  # that are told apart
_SIGMAS_95 = 1.96


class _StatedSide(NamedTuple):
    direction: int
    confidence: float
    event: str
    price: float
    at_ns: int


@dataclass(slots=True)
class ConfidenceBin:
    """Stated sides with an outcome: how many at how many instants, how many right, and the sum of their confidence."""

    num: int = 0
    num_right: int = 0
    confidence: float = 0.0
    _instants: set[int] = field(default_factory=set[int])

    def add(self, side: _StatedSide, *, is_right: bool) -> None:
        self.num += 1
        self.num_right += is_right
        self.confidence += side.confidence
        if len(self._instants) < _MAX_INSTANTS:
            self._instants.add(side.at_ns)

    @property
    def num_instants(self) -> int:
        """At how many instants, at most `_MAX_INSTANTS`."""
        return len(self._instants)

    @property
    def share_right(self) -> float:
        return self.num_right / self.num if self.num else math.nan

    @property
    def mean_confidence(self) -> float:
        return self.confidence / self.num if self.num else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the share (Wilson), of as many outcomes as there were instants."""
        num, share = max(self.num_instants, 1), self.share_right
        squared = _SIGMAS_95 * _SIGMAS_95 / num
        middle = (share + squared / 2.0) / (1.0 + squared)
        half = _SIGMAS_95 * math.sqrt(share * (1.0 - share) / num + squared / (4.0 * num)) / (1.0 + squared)
        return max(middle - half, 0.0), min(middle + half, 1.0)


@dataclass(slots=True)
class StatedConfidence:
    """The stated sides of a run by confidence and by kind of event, and the share that each kind has earned last."""

    whole: ConfidenceBin = field(default_factory=ConfidenceBin)
    bins: list[ConfidenceBin] = field(default_factory=lambda: [ConfidenceBin() for _ in range(NUM_BINS)])
    kinds: dict[str, ConfidenceBin] = field(default_factory=dict[str, ConfidenceBin])
    earned: dict[str, float] = field(default_factory=dict[str, float])
    _pending: dict[str, list[_StatedSide]] = field(default_factory=dict[str, list[_StatedSide]])
    _seen: dict[str, "OrderedDict[str, None]"] = field(default_factory=dict[str, "OrderedDict[str, None]"])

    def add(self, decision: Decision) -> None:
        """Take what the items of a decision mean for its series, in order of decisions."""
        if decision.news_context is None or decision.amends:
            return
        seen = self._seen.setdefault(decision.series, OrderedDict())
        for item in decision.news_context.considered:
            reading = item.reading
            if reading is UNSET or not reading.direction:
                continue
            self.earned[reading.event] = reading.earned
            if item.id in seen:
                continue
            seen[item.id] = None
            if len(seen) > _MAX_SEEN:
                seen.popitem(last=False)
            side = _StatedSide(
                reading.direction, reading.confidence, reading.event, decision.last_price, decision.as_of_ns
            )
            self._pending.setdefault(decision.series, []).append(side)

    def bar_closed(self, series: str, price: float) -> None:
        """Judge what waits for the next bar of a series; a bar without a move judges nothing."""
        for side in self._pending.pop(series, []):
            if price == side.price:
                continue
            is_right = (price > side.price) == (side.direction > 0)
            place = int((side.confidence - _FROM) / (1.0 - _FROM) * NUM_BINS)
            kind = self.kinds.setdefault(side.event, ConfidenceBin())
            for one in (self.whole, self.bins[min(max(place, 0), NUM_BINS - 1)], kind):
                one.add(side, is_right=is_right)

    def points(self) -> list[list[float]]:
        """Of each bin with enough outcomes: mean confidence, share right, both ends of its interval."""
        return [
            [round(value, 4) for value in (one.mean_confidence, one.share_right, *one.interval)]
            for one in self.bins
            if one.num_instants >= MIN_OUTCOMES
        ]


def stated_html(stated: StatedConfidence) -> str:
    """The heading, the chart where there is enough to draw, and the table by kind; empty where nothing was stated."""
    if not stated.whole.num:
        return ""
    chart = (
        '<div id="stated" class="chart narrow"></div>'
        if stated.points()
        else f'<p class="note">Too few outcomes to draw: no fifth of the scale has {MIN_OUTCOMES} instants.</p>'
    )
    rows = "".join(
        _row(kind.replace("_", " "), found, f"{stated.earned.get(kind, 0.0):.0%}")
        for kind, found in sorted(stated.kinds.items(), key=lambda one: (-one[1].num, one[0]))
    )
    head = (
        "<th>kind of event</th><th>stated</th><th>instants</th><th>mean confidence</th><th>right</th>"
        "<th>95% interval</th><th>earned</th>"
    )
    return (
        "<h3>Confidence of the facts, against what followed</h3>"
        '<p class="note">Each stated direction of an item counts once for a series. It is right if the next bar closed '
        "in that direction, whatever else moved it, so the share right may lie below the stated confidence, which is "
        "about what the text says. Earned is the share of the stated move that such events have earned so far: at 0% "
        f"their direction moves no forecast. Of fewer than {MIN_OUTCOMES} instants the count alone is given.</p>{chart}"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{_row("all", stated.whole, "")}{rows}</tbody>'
        "</table></div>"
    )


def _row(name: str, found: ConfidenceBin, earned: str) -> str:
    share, interval = f"{found.num_right:,} of {found.num:,}", "too few"
    if found.num_instants >= MIN_OUTCOMES:
        low, high = found.interval
        share, interval = f"{found.share_right:.0%}", f"{low:.0%} to {high:.0%}"
    return (
        f"<tr><th>{escape(name)}</th><td>{found.num:,}</td><td>{found.num_instants:,}</td>"
        f"<td>{found.mean_confidence:.0%}</td><td>{share}</td><td>{interval}</td><td>{earned}</td></tr>"
    )
