"""Keeps the few decisions worth a person's time: the widest bands and the worst surprises. The survey feeds it."""

import heapq
import itertools
from collections.abc import Callable
from typing import NamedTuple

from htfi.apps.cli.view_state import quantile_at
from htfi.domain.decision import Decision

NUM_KEPT = 12
_STRETCH_BARS = 22  # of several within this many bars of one series, only the greatest counts
_MEMORY = 0.99  # of a series' usual width, per decision
_SETTLED_AFTER = 50  # decisions, before which no width is called unusual


class Noted(NamedTuple):
    """A decision and why it stands out.

    `measure` is the width of its 90% band over the usual one, or the outcome over half that width. `low`, `high`
    and `outcome` are log returns over the next bar.
    """

    measure: float
    id: str
    series: str
    as_of_ns: int
    last_price: float
    regime: str
    low: float
    high: float
    outcome: float | None
    rationale: str


class Notable:
    """Weighs every decision; memory is bounded by the number of series."""

    def __init__(self) -> None:
        self._usual: dict[str, tuple[int, float]] = {}
        self._widest = _Peaks()
        self._surprises = _Peaks()

    def weigh_width(self, decision: Decision) -> None:
        forecast = decision.forecast
        low, high = (quantile_at(level, forecast.levels, forecast.quantiles[0]) for level in (0.05, 0.95))
        num, usual = self._usual.get(decision.series, (0, high - low))
        self._usual[decision.series] = (num + 1, _MEMORY * usual + (1 - _MEMORY) * (high - low))
        if num >= _SETTLED_AFTER and usual > 0:
            ratio = (high - low) / usual
            self._widest.offer(decision.series, num, ratio, lambda: _noted(ratio, decision, low, high, None))

    def weigh_surprise(self, decision: Decision, outcome: float, low: float, high: float) -> None:
        half = (high - low) / 2
        if half <= 0 or low <= outcome <= high:
            return
        ratio = abs(outcome - (low + high) / 2) / half
        num, _ = self._usual[decision.series]
        self._surprises.offer(
            decision.series, num, ratio, lambda: _noted(ratio, decision, low, high, outcome)
        )

    def widest(self) -> list[Noted]:
        return self._widest.sorted()

    def surprises(self) -> list[Noted]:
        return self._surprises.sorted()


class _Peaks:
    """The NUM_KEPT greatest of what was offered, at most one of a series in each stretch of bars."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, Noted]] = {}
        self._kept: list[tuple[float, int, Noted]] = []
        self._tie = itertools.count()

    def offer(self, series: str, ordinal: int, measure: float, make: Callable[[], Noted]) -> None:
        standing = self._open.get(series)
        if standing is None:
            self._open[series] = (ordinal, make())
        elif ordinal - standing[0] > _STRETCH_BARS:
            self._keep(standing[1])
            self._open[series] = (ordinal, make())
        elif measure > standing[1].measure:
            self._open[series] = (ordinal, make())

    def sorted(self) -> list[Noted]:
        for _, noted in self._open.values():
            self._keep(noted)
        self._open.clear()
        return [noted for _, _, noted in sorted(self._kept, reverse=True)]

    def _keep(self, noted: Noted) -> None:
        heapq.heappush(self._kept, (noted.measure, next(self._tie), noted))
        if len(self._kept) > NUM_KEPT:
            heapq.heappop(self._kept)


def _noted(measure: float, decision: Decision, low: float, high: float, outcome: float | None) -> Noted:
    return Noted(
        measure,
        decision.id,
        decision.series,
        decision.as_of_ns,
        decision.last_price,
        decision.regime.value,
        low,
        high,
        outcome,
        decision.rationale.text,
    )
