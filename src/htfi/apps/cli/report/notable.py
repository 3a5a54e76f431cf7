"""Keeps the few decisions worth a person's time: widest bands and worst surprises. The survey feeds it."""

import heapq
import itertools
from typing import NamedTuple

from htfi.apps.cli.view_state import quantile_at
from htfi.domain.decision import Decision

NUM_KEPT = 8
_STRETCH_BARS = 22  # of several within this many bars of one series, only the greatest counts
_MEMORY = 0.99  # of a series' usual width, per decision
_SETTLED_AFTER = 50  # decisions, before which no width is called unusual


class Noted(NamedTuple):
    """A decision that may stand out. `low`, `high` and `outcome` are log returns over the shortest horizon.

    `measure` says how much it does: the width of the 90% band over the usual one, or the outcome's distance
    from the band's middle over half the width.
    """

    measure: float
    series: str
    as_of_ns: int
    last_price: float
    regime: str
    low: float
    high: float
    outcome: float | None
    rationale: str


def note(decision: Decision) -> Noted:
    """The decision as it would be listed, without a measure yet."""
    forecast = decision.forecast
    low, high = (quantile_at(level, forecast.levels, forecast.quantiles[0]) for level in (0.05, 0.95))
    return Noted(
        0.0,
        decision.series,
        decision.as_of_ns,
        decision.last_price,
        decision.regime.value,
        low,
        high,
        None,
        decision.rationale.text,
    )


class Notable:
    """Weighs every decision; memory is bounded by the number of series."""

    def __init__(self) -> None:
        self._usual: dict[str, tuple[int, float]] = {}
        self._widest = _Peaks()
        self._surprises = _Peaks()

    def weigh(self, noted: Noted, outcome: float) -> None:
        """Take the next decision of its series, with the return that came."""
        noted = noted._replace(outcome=outcome)
        width = noted.high - noted.low
        num, usual = self._usual.get(noted.series, (0, width))
        self._usual[noted.series] = (num + 1, _MEMORY * usual + (1 - _MEMORY) * width)
        if num >= _SETTLED_AFTER and usual > 0:
            self._widest.offer(num, noted._replace(measure=width / usual))
        if width > 0 and not noted.low <= outcome <= noted.high:
            distance = abs(outcome - (noted.low + noted.high) / 2)
            self._surprises.offer(num, noted._replace(measure=distance / (width / 2)))

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

    def offer(self, ordinal: int, noted: Noted) -> None:
        standing = self._open.get(noted.series)
        if standing is None or ordinal - standing[0] > _STRETCH_BARS:
            if standing is not None:
                self._keep(standing[1])
            self._open[noted.series] = (ordinal, noted)
        elif noted.measure > standing[1].measure:
            self._open[noted.series] = (ordinal, noted)

    def sorted(self) -> list[Noted]:
        for _, noted in self._open.values():
            self._keep(noted)
        self._open.clear()
        return [noted for _, _, noted in sorted(self._kept, reverse=True)]

    def _keep(self, noted: Noted) -> None:
        heapq.heappush(self._kept, (noted.measure, next(self._tie), noted))
        if len(self._kept) > NUM_KEPT:
            heapq.heappop(self._kept)
