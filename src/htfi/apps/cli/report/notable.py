"""Keeps the few decisions worth a person's time: widest bands and worst surprises. The survey feeds it."""

import heapq
import itertools
from typing import NamedTuple

from htfi.apps.cli.view.state import quantile_at
from htfi.apps.display.known_events import known_events_words
from htfi.domain.decision import Decision

NUM_LISTED = 8
_EPISODE_BARS = 22  # of several within this many bars of one series, only the greatest counts
_WIDTH_DECAY = 0.99  # of a series' usual width, per decision
_MIN_DECISIONS = 50  # decisions, before which no width is called unusual


class NotableDecision(NamedTuple):
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


def summarise_decision(decision: Decision) -> NotableDecision:
    """The decision as it would be listed, without a measure yet; before its rationale the events of its band."""
    forecast, events = decision.forecast, known_events_words(decision)
    low, high = (quantile_at(level, forecast.levels, forecast.quantiles[0]) for level in (0.05, 0.95))
    return NotableDecision(
        0.0,
        decision.series,
        decision.as_of_ns,
        decision.last_price,
        decision.regime.value,
        low,
        high,
        None,
        f"{events[0].upper()}{events[1:]}. {decision.rationale.text}" if events else decision.rationale.text,
    )


class NotableDecisions:
    """Weighs every decision; memory is bounded by the number of series."""

    def __init__(self) -> None:
        self._usual: dict[str, tuple[int, float]] = {}
        self._widest = _EpisodePeaks()
        self._surprises = _EpisodePeaks()

    def add(self, noted: NotableDecision, outcome: float) -> None:
        """Take the next decision of its series, with the return that came."""
        noted = noted._replace(outcome=outcome)
        width = noted.high - noted.low
        num, usual = self._usual.get(noted.series, (0, width))
        self._usual[noted.series] = (num + 1, _WIDTH_DECAY * usual + (1 - _WIDTH_DECAY) * width)
        if num >= _MIN_DECISIONS and usual > 0:
            self._widest.offer(num, noted._replace(measure=width / usual))
        if width > 0 and not noted.low <= outcome <= noted.high:
            distance = abs(outcome - (noted.low + noted.high) / 2)
            self._surprises.offer(num, noted._replace(measure=distance / (width / 2)))

    def widest(self) -> list[NotableDecision]:
        return self._widest.sorted()

    def surprises(self) -> list[NotableDecision]:
        return self._surprises.sorted()


class _EpisodePeaks:
    """The NUM_KEPT greatest of what was offered, at most one of a series in each stretch of bars."""

    def __init__(self) -> None:
        self._current: dict[str, tuple[int, NotableDecision]] = {}
        self._kept: list[tuple[float, int, NotableDecision]] = []
        self._tie = itertools.count()

    def offer(self, ordinal: int, noted: NotableDecision) -> None:
        current = self._current.get(noted.series)
        if current is None or ordinal - current[0] > _EPISODE_BARS:
            if current is not None:
                self._keep(current[1])
            self._current[noted.series] = (ordinal, noted)
        elif noted.measure > current[1].measure:
            self._current[noted.series] = (ordinal, noted)

    def sorted(self) -> list[NotableDecision]:
        for _, noted in self._current.values():
            self._keep(noted)
        self._current.clear()
        return [noted for _, _, noted in sorted(self._kept, reverse=True)]

    def _keep(self, noted: NotableDecision) -> None:
        heapq.heappush(self._kept, (noted.measure, next(self._tie), noted))
        if len(self._kept) > NUM_LISTED:
            heapq.heappop(self._kept)
