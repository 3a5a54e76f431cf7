"""Which bars held a scheduled event, by the times that the run wrote: the cells of the tables one bar ahead."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.known_variance.relations import HOME, currencies_of
from htfi.wiring.event_file import EventTimes

Instants = NDArray[np.int64]

EVENT_CELLS = ("high impact", "company's results", "none")
HIGH_IMPACT, RESULTS, NONE = range(3)
UNKNOWN = -1
_NO_TIMES = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class BarSpan:
    """A bar of `symbol` that holds an event at t where begin ≤ t < end; `is_daily`: of a day or longer."""

    symbol: str
    begin_ns: int
    end_ns: int
    is_daily: bool


@dataclass(slots=True, eq=False)
class EventBars:
    """The cell of each bar; without times none has one. Before the first and after the last of all times the calendar
    says nothing.
    """

    times: Sequence[EventTimes]
    _first_ns: int = 0
    _last_ns: int = -1
    _sorted: dict[tuple[int, str, bool], Instants] = field(
        default_factory=dict[tuple[int, str, bool], Instants]
    )

    def __post_init__(self) -> None:
        for one in self.times:
            cell = RESULTS if one.are_results else HIGH_IMPACT
            self._sorted[cell, one.owner, one.is_day] = np.array(sorted(one.times_ns), np.int64)
        ends = [(int(each[0]), int(each[-1])) for each in self._sorted.values() if len(each)]
        if ends:
            self._first_ns, self._last_ns = min(first for first, _ in ends), max(last for _, last in ends)

    def cell(self, bar: BarSpan) -> int:
        """The place among `EVENT_CELLS`; −1 where nothing is known.

        A pair of currencies has the events of both, all else the dollar's; a company's results are of its own symbol.
        """
        if not self._first_ns < bar.end_ns or not bar.begin_ns <= self._last_ns:
            return UNKNOWN
        symbol = bar.symbol.upper()
        if self._holds(RESULTS, symbol, bar):
            return RESULTS
        owners = (symbol, *(currencies_of(symbol) or (HOME,)))
        return HIGH_IMPACT if any(self._holds(HIGH_IMPACT, owner, bar) for owner in owners) else NONE

    def _holds(self, cell: int, owner: str, bar: BarSpan) -> bool:
        for is_day in (False, True) if bar.is_daily else (False,):
            times = self._sorted.get((cell, owner, is_day), _NO_TIMES)
            first, beyond = np.searchsorted(times, [bar.begin_ns, bar.end_ns])
            if first < beyond:
                return True
        return False
