"""When to decide: the bars that closed at one instant are one moment. The loop splits what closed into moments."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from htfi.domain.events import Bar


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """A decision point: bars of different series, all visible from `as_of_ns` on."""

    as_of_ns: int
    bars: list[Bar]


def split_decision_points(bars: Iterable[Bar]) -> Iterator[DecisionPoint]:
    """Moments in order of time; a series with several bars at one instant gets a moment for each."""
    for as_of_ns, group in groupby(sorted(bars, key=_instant), key=_instant):
        rounds: list[list[Bar]] = []
        count: dict[tuple[str, str], int] = {}
        for bar in group:
            series = (bar.symbol, bar.interval)
            nth = count.get(series, 0)
            count[series] = nth + 1
            if nth == len(rounds):
                rounds.append([])
            rounds[nth].append(bar)
        for together in rounds:
            yield DecisionPoint(as_of_ns, together)


def _instant(bar: Bar) -> int:
    return bar.available_at_ns
