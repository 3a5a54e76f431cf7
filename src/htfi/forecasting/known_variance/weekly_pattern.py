"""The pattern of variance over New York's week, learnt for each series of bars up to four hours long.

Additive in log variance (Andersen and Bollerslev 1997): a factor by half-hour of the day and a correction by half-hour
of the week, each a fading mean that is drawn to none while visits are few.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.new_york import clock_between
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance import compiled
from htfi.forecasting.known_variance.coming_bars import (
    DAY_SLOTS,
    SLOT_NS,
    WEEK_SLOTS,
    Instants,
    Places,
    week_slots,
)
from htfi.forecasting.regression import MAX_LOG_DEVIATION, clamp_logs

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

MAX_BAR_NS = 8 * SLOT_NS  # longer ones show no pattern of a day
_DAY_PRIOR, _DAY_MEMORY = 3.0, 60.0  # visits: how many the pattern's absence counts for, how many are kept
_WEEK_PRIOR, _WEEK_MEMORY = 8.0, 26.0
_ANCHOR_SLOTS = 64.0  # span of what the pattern is a deviation from: it must not follow the hours itself


class WeeklyPattern:
    """Log factors of variance of N series."""

    def __init__(self) -> None:
        self._columns = SeriesColumns()
        self._columns.declare("by_day", np.zeros(DAY_SLOTS))
        self._columns.declare("by_week", np.zeros(WEEK_SLOTS))
        self._columns.declare("day_visits", np.zeros(DAY_SLOTS), np.float32)
        self._columns.declare("week_visits", np.zeros(WEEK_SLOTS), np.float32)
        self._columns.declare("anchor", 0.0)
        self._columns.declare("num", 0.0)

    def grow(self, num_rows: int) -> None:
        self._columns.grow(num_rows)

    def factors(self, index: Rows, begins_ns: Instants, into: Array | None = None) -> Array:
        """Factors [n, B] of the variance of bars [n, B] of these series that begin then; compiled, in the array that is
        given for them, if any."""
        by_day, by_week = self._columns["by_day"], self._columns["by_week"]
        if compiled.core is not None:
            factors = np.empty(begins_ns.shape) if into is None else into
            clock = clock_between(int(begins_ns.min()), int(begins_ns.max()))
            compiled.core.fill_pattern(index, begins_ns, by_day, by_week, *clock, SLOT_NS, factors)
            return factors
        at, slot = index[:, None], week_slots(begins_ns)
        return exact.exp(by_day[at, slot % DAY_SLOTS] + by_week[at, slot])

    def learn(self, index: Rows, slot: Places, length_ns: Places, log_variance: Array) -> None:
        """Take in bars [n] whose log variance, without what was known of it, was this."""
        columns = self._columns
        if compiled.core is not None:
            names = ("by_day", "by_week", "day_visits", "week_visits", "anchor", "num")
            compiled.core.learn_pattern(
                index, slot, length_ns, log_variance, *(columns[name] for name in names), SLOT_NS, _ANCHOR_SLOTS,
                MAX_LOG_DEVIATION, _DAY_PRIOR, _DAY_MEMORY, _WEEK_PRIOR, _WEEK_MEMORY,
            )  # fmt: skip
            return
        hour = slot % DAY_SLOTS
        within = np.maximum(SLOT_NS // np.maximum(length_ns, 1), 1)
        visit = 1.0 / within  # what this bar is of one
        num, anchor = columns["num"][index], columns["anchor"][index]
        gain = np.maximum(1.0 / (num + 1.0), 1.0 / (_ANCHOR_SLOTS * within))
        anchor = anchor + gain * (log_variance - anchor)
        columns["anchor"][index], columns["num"][index] = anchor, num + 1.0
        surprise = clamp_logs(log_variance - anchor)
        days, weeks = columns["day_visits"][index, hour], columns["week_visits"][index, slot]
        by_day = visit * surprise / (np.minimum(days, _DAY_MEMORY) + _DAY_PRIOR + 1.0)
        by_week = visit * (surprise - by_day) / (np.minimum(weeks, _WEEK_MEMORY) + _WEEK_PRIOR + 1.0)
        columns["by_day"][index, hour] += by_day
        columns["by_week"][index, slot] += by_week
        columns["day_visits"][index, hour] = days + visit
        columns["week_visits"][index, slot] = weeks + visit

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)
