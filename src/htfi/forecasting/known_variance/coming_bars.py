"""When the next bars of each series will begin and end, from when its earlier ones did.

Bars shorter than a day follow New York's week: which half-hour follows which is learnt, so that nights, breaks and
weekends are passed over. Daily bars end on business days, on all days once one ended on a Saturday or a Sunday.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.new_york import clock_between, to_local_ns, to_utc_ns
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance import compiled

Instants = NDArray[np.int64]
Places = NDArray[np.int64]

SLOT_NS = 1800 * NS_PER_S
DAY_SLOTS = NS_PER_DAY // SLOT_NS
WEEK_SLOTS = 7 * DAY_SLOTS
_WEEK_NS = 7 * NS_PER_DAY
_MAX_BARS_PER_SLOT = 10_000
_UNKNOWN = -1
_SATURDAY = 2  # 1970-01-01 was a Thursday: days since then, modulo 7
_FRIDAY = 1
_MAX_CLOSED_DAYS = 10  # in a row


def week_slots(start_ns: Instants) -> Places:
    """The half-hour of New York's week, 0 … 335 from Thursday 0:00 on, in which each bar begins [n]."""
    if compiled.core is not None and len(start_ns):
        slots = np.empty(start_ns.shape, np.int64)
        clock = clock_between(int(start_ns.min()), int(start_ns.max()))
        compiled.core.fill_week_slots(start_ns, *clock, SLOT_NS, WEEK_SLOTS, slots)
        return slots
    return to_local_ns(start_ns) // SLOT_NS % WEEK_SLOTS


class ComingBars:
    """What is learnt of N series' hours."""

    def __init__(self) -> None:
        self._columns = SeriesColumns()
        self._columns.declare("slot", _UNKNOWN, np.int64)
        # Slots from each to the next with a bar: the smaller of the last two seen, so that a holiday is forgotten.
        self._columns.declare("step", np.full(WEEK_SLOTS, _UNKNOWN), np.int16)
        self._columns.declare("seen", np.full(WEEK_SLOTS, _UNKNOWN), np.int16)

    def grow(self, num_rows: int) -> None:
        self._columns.grow(num_rows)

    def learn(self, index: NDArray[np.intp], start_ns: Instants) -> None:
        """Take in bars shorter than a day that began then."""
        columns, slot = self._columns, week_slots(start_ns)
        if compiled.core is not None:
            compiled.core.learn_hours(index, slot, columns["slot"], columns["step"], columns["seen"])
            return
        before = columns["slot"][index]
        moved = (before >= 0) & (before != slot)
        at, since = index[moved], before[moved]
        step = (slot[moved] - since) % WEEK_SLOTS
        last = columns["seen"][at, since]
        columns["step"][at, since] = np.where(last == _UNKNOWN, step, np.minimum(step, last))
        columns["seen"][at, since] = step
        columns["slot"][index] = slot

    def spans(
        self,
        index: NDArray[np.intp],
        start_ns: Instants,
        end_ns: Instants,
        num: int,
        into: tuple[Instants, Instants] | None = None,
    ) -> tuple[Instants, Instants]:
        """Begin and end [n, num] of the bars that will follow those of these series, shorter than a day; compiled, in
        the arrays that are given for them, if any."""
        if compiled.core is not None:
            begins, ends = into or (
                np.empty((len(index), num), np.int64),
                np.empty((len(index), num), np.int64),
            )
            last_ns = int(start_ns.max()) + num * _WEEK_NS  # no bar is further from the one before
            clock = clock_between(int(start_ns.min()), last_ns)
            compiled.core.fill_spans(
                index,
                start_ns,
                end_ns,
                self._columns["step"],
                *clock,
                SLOT_NS,
                _MAX_BARS_PER_SLOT,
                begins,
                ends,
            )
            return begins, ends
        length_ns = np.maximum(end_ns - start_ns, 1)
        local = to_local_ns(start_ns)
        within = np.minimum(np.maximum(SLOT_NS // length_ns, 1), _MAX_BARS_PER_SLOT)
        begin = local - local % SLOT_NS
        offset = np.where(within > 1, 0, local - begin)  # of bars as long as a slot or longer
        place = np.where(within > 1, np.minimum((local - begin) // length_ns, within - 1), 0)
        ahead = place[:, None] + np.arange(1, num + 1)
        slots_ahead = ahead // within[:, None]
        usual_step = -(-length_ns // SLOT_NS)
        chain = [begin]
        for _ in range(int(slots_ahead[:, -1].max(initial=0))):
            step = self._columns["step"][index, chain[-1] // SLOT_NS % WEEK_SLOTS].astype(np.int64)
            chain.append(chain[-1] + np.where(step == _UNKNOWN, usual_step, step) * SLOT_NS)
        begins = np.take_along_axis(np.stack(chain, axis=1), slots_ahead, axis=1)
        begins += offset[:, None] + ahead % within[:, None] * length_ns[:, None]
        utc = to_utc_ns(begins)
        return utc, utc + length_ns[:, None]

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)


def daily_ends(
    end_ns: Instants, trades_at_weekends: NDArray[np.bool_], num: int, closed_days: Instants
) -> Instants:
    """Ends [n, num] of the daily bars that will follow, at the same hour in New York, on none of `closed_days`."""
    local = to_local_ns(end_ns)
    days = local // NS_PER_DAY
    if not len(closed_days):
        ahead = np.where(trades_at_weekends[:, None], np.arange(1, 1 + num), _business_days(num)[days % 7])
        return to_utc_ns((days[:, None] + ahead) * NS_PER_DAY + (local % NS_PER_DAY)[:, None])
    ends = np.empty((len(end_ns), num), np.int64)
    for step in range(num):
        days = next_day(days, trades_at_weekends)
        for _ in range(_MAX_CLOSED_DAYS):
            closed = np.isin(days, closed_days)
            if not closed.any():
                break
            days = np.where(closed, next_day(days, trades_at_weekends), days)
        ends[:, step] = days
    return to_utc_ns(ends * NS_PER_DAY + (local % NS_PER_DAY)[:, None])


@lru_cache(maxsize=8)
def _business_days(num: int) -> Places:
    """Days from each day of the week [7], Thursday first, to the next `num` business days [7, num]."""
    first = np.arange(7, dtype=np.int64)
    days, ahead = first, np.empty((7, num), np.int64)
    for step in range(num):
        days = next_day(days, False)
        ahead[:, step] = days - first
    return ahead


def next_day(days: Places, trades_at_weekends: NDArray[np.bool_] | bool) -> Places:
    """The day with a bar after each of these [...], counted since 1970-01-01, if no day is a holiday."""
    weekday = days % 7
    on_business_days = np.where(weekday == _FRIDAY, 3, np.where(weekday == _SATURDAY, 2, 1))
    return days + np.where(trades_at_weekends, 1, on_business_days)


def is_weekend(end_ns: Instants) -> NDArray[np.bool_]:
    """Whether bars end on a Saturday or a Sunday of New York."""
    weekday = to_local_ns(end_ns) // NS_PER_DAY % 7
    return (weekday == _SATURDAY) | (weekday == _SATURDAY + 1)
