"""Scores the decisions that answered news between two bars against the standing ones that they replaced.

Both state returns to the same ends, so their CRPS are of one unit and are compared in pairs. Outcomes of one instant
are not independent of each other: the interval counts them as one.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.domain.decision import Decision
from htfi.forecasting.scores import crps

FloatArray = NDArray[np.float64]

MIN_INSTANTS = 20  # outcomes at fewer instants say nothing
_SIGMAS_95 = 1.96


class ForecastFromPrice(NamedTuple):
    """Quantiles [H, Q] of log returns from a price."""

    last_price: float
    quantiles: NDArray[np.float32]


class _PendingAnswer(NamedTuple):
    decision_id: str
    ordinal: int  # bars of the series until then
    standing: ForecastFromPrice
    answer: ForecastFromPrice


@dataclass(slots=True)
class PairedScore:
    """Sums over pairs of CRPS at one horizon, and over instants of their summed differences."""

    num: int = 0
    standing: float = 0.0
    answer: float = 0.0
    num_instants: int = 0
    _at_ns: int = -1
    _open: tuple[float, int] = (0.0, 0)  # difference and number of pairs at the newest instant
    _sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])  # of d², d·n and n² over the others

    def add(self, standing: float, answer: float, at_ns: int) -> None:
        """Add a pair whose outcome came at an instant; instants never fall."""
        if at_ns != self._at_ns:
            self._sums = self._closed()
            self._at_ns, self._open = at_ns, (0.0, 0)
            self.num_instants += 1
        self._open = (self._open[0] + answer - standing, self._open[1] + 1)
        self.num += 1
        self.standing += standing
        self.answer += answer

    @property
    def change(self) -> float:
        """The answers' mean CRPS against that of the standing decisions, −1…: below 0 they were better."""
        return self.answer / self.standing - 1.0 if self.standing > 0.0 else 0.0

    @property
    def half_width(self) -> float | None:
        """Half the 95% interval of `change`; None where there are too few outcomes to say."""
        if self.num_instants < MIN_INSTANTS or self.standing <= 0.0:
            return None
        mean = (self.answer - self.standing) / self.num
        squares, products, counts = self._closed()
        variance = max(squares - 2.0 * mean * products + mean * mean * counts, 0.0)
        return _SIGMAS_95 * math.sqrt(variance * self.num_instants / (self.num_instants - 1)) / self.standing

    def _closed(self) -> list[float]:
        difference, num = self._open
        squares, products, counts = self._sums
        return [squares + difference * difference, products + difference * num, counts + num * num]


@dataclass(slots=True)
class NewsAnswers:
    """The decisions between bars of a run: how many, of how many items, and how good at each horizon."""

    num: int = 0
    num_withheld: int = 0
    num_items: int = 0
    num_suppressed: int = 0
    scores: dict[int, PairedScore] = field(default_factory=dict[int, PairedScore])  # by horizon
    _pending: dict[str, deque[_PendingAnswer]] = field(default_factory=dict[str, deque[_PendingAnswer]])

    def add(self, decision: Decision, ordinal: int, standing: ForecastFromPrice | None) -> None:
        """Take a released decision; `standing` is the forecast of the one that it replaced, where that was released."""
        self.num += 1
        if decision.news_trigger is not UNSET:
            self.num_items += len(decision.news_trigger.items)
            self.num_suppressed += decision.news_trigger.num_suppressed
        if standing is not None:
            answer = ForecastFromPrice(decision.last_price, _quantiles(decision))
            pending = _PendingAnswer(decision.id, ordinal, standing, answer)
            self._pending.setdefault(decision.series, deque()).append(pending)

    def amend(self, decision: Decision, ordinal: int) -> None:
        """Let an amendment take the place of its first decision, where no bar has closed since."""
        waiting = self._pending.get(decision.series, deque[_PendingAnswer]())
        for place, pending in enumerate(waiting):
            if pending.decision_id == decision.amends and pending.ordinal == ordinal:
                answer = ForecastFromPrice(decision.last_price, _quantiles(decision))
                waiting[place] = pending._replace(answer=answer)

    def bar_closed(
        self,
        series: str,
        price: float,
        ordinal: int,
        at_ns: int,
        horizons: tuple[int, ...],
        levels: FloatArray,
    ) -> None:
        """Score what ends with a bar of a series, its `ordinal`-th."""
        waiting = self._pending.get(series)
        if not waiting:
            return
        for pending in waiting:
            age = ordinal - pending.ordinal
            if age not in horizons:
                continue
            place = horizons.index(age)
            standing, answer = (
                float(crps(one.quantiles[place].astype(np.float64), _outcome(price, one), levels))
                for one in (pending.standing, pending.answer)
            )
            self.scores.setdefault(age, PairedScore()).add(standing, answer, at_ns)
        while waiting and ordinal - waiting[0].ordinal >= horizons[-1]:
            waiting.popleft()


def _quantiles(decision: Decision) -> NDArray[np.float32]:
    return np.array(decision.forecast.quantiles, np.float32)


def _outcome(price: float, forecast: ForecastFromPrice) -> FloatArray:
    return np.array(math.log(price / forecast.last_price))
