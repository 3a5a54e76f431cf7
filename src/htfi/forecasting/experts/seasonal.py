"""Volatility by time of day and week: a log-range filter without the weekly pattern, which is added back ahead."""

import math

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.known_variance.coming_bars import DAY_SLOTS, SLOT_NS, WEEK_SLOTS, week_slots
from htfi.forecasting.panel import BarBatch
from htfi.forecasting.regression import RegressionExpert, clamp_logs, collect_targets

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_DAY_PRIOR, _DAY_MEMORY = (
    3.0,
    60.0,
)  # visits of a slot: how many the pattern's absence counts for, how many are kept
_WEEK_PRIOR, _WEEK_MEMORY = 8.0, 26.0
_MAX_BAR_NS = (
    8 * SLOT_NS
)  # bars longer than four hours show no pattern of a day: they are forecast without one
_MAX_BARS_PER_SLOT = 10_000
_SPANS_BARS = (1.0, 4.0, 16.0, 64.0, 256.0)
_ANCHOR_SLOTS = 64.0  # span of what the pattern is a deviation from: it must not follow the hours itself
_LEVEL_GAIN = 0.002
_PRIOR = np.array([0.0, 0.1, 0.2, 0.25, 0.2, 0.15])
_PRIOR_BARS = 100.0
_FIT_HALF_LIFE_BARS = 2000.0
_MIN_BARS = 22


class SeasonalExpert(RegressionExpert):
    """σ² over h bars = exp(level of the deseasonalised log variance expected) · Σ exp(pattern of the coming slots).

    The pattern is additive in log variance (Andersen and Bollerslev 1997): a factor by half-hour of the day and a
    correction by half-hour of the week, each a fading mean drawn to none while visits are few. Slots are in New York's
    time, which sets the hours of US equities and of currencies; which slot follows which is learnt, so that
    nights and weekends without bars are passed over. In a run the known variance is taken out of all bars before any
    expert sees them, and put back into its quantiles: what this one then finds is what is left of a pattern. Daily bars
    are forecast by the plain filter: a pattern by weekday costs more CRPS, in noise, than it brings.
    """

    name = "seasonal"
    version = "2"

    def __init__(self, config: ForecastConfig) -> None:
        super().__init__(config, _PRIOR, _PRIOR_BARS, _FIT_HALF_LIFE_BARS)
        self._ahead = np.arange(1, self._longest + 1)
        self._gains = np.array([round(1.0 - math.exp(-1.0 / span), 12) for span in _SPANS_BARS])
        self._columns.declare("slot", -1, np.int64)
        self._columns.declare("next", (np.arange(WEEK_SLOTS) + 1) % WEEK_SLOTS, np.int16)
        self._columns.declare("by_day", np.zeros(DAY_SLOTS))
        self._columns.declare("by_week", np.zeros(WEEK_SLOTS))
        self._columns.declare("day_visits", np.zeros(DAY_SLOTS), np.float32)
        self._columns.declare("week_visits", np.zeros(WEEK_SLOTS), np.float32)
        self._columns.declare("filters", np.zeros(len(_SPANS_BARS)))
        self._columns.declare("anchor", 0.0)
        self._columns.declare("level", 0.0)
        self._columns.declare("levels", np.zeros(self._longest))
        self._columns.declare("regressors", np.zeros((self._longest, len(_PRIOR))))
        self._columns.declare("newest", np.zeros(len(_PRIOR)))
        self._columns.declare("even", np.zeros(self._longest))  # deseasonalised variance

    def update(self, bars: BarBatch) -> None:
        columns, rows, age = self._columns, bars.rows, bars.age
        slot = week_slots(bars.start_ns)
        before = columns["slot"][rows]
        moved = (before >= 0) & (before != slot)
        columns["next"][bars.index[moved], before[moved]] = slot[moved]
        columns["slot"][rows] = slot
        even = bars.log_variance - self._pattern(bars.index, slot)
        level = columns["level"][rows]
        level = level + np.maximum(1.0 / (age + 1.0), _LEVEL_GAIN) * (even - level)
        filters = columns["filters"][rows]
        filters = filters + np.maximum(1.0 / (age[:, None] + 1.0), self._gains) * (even[:, None] - filters)
        columns["level"][rows], columns["filters"][rows] = level, filters
        regressors = np.ones((len(level), len(_PRIOR)))
        regressors[:, 1:] = clamp_logs(filters - level[:, None])
        columns["newest"][rows] = regressors
        coming = clamp_logs(self._fit.predict(rows, regressors))
        columns["above"][rows] = 0.5 * coming
        scale = np.sqrt(exact.exp(level[:, None] + coming) * self._coming_pattern(bars, slot))
        columns["scale"][rows] = np.where(age[:, None] >= _MIN_BARS - 1, scale, np.nan)

    def _pattern(self, at: NDArray[np.intp], slot: Places) -> Array:
        """Log factors, in the shape of the slots."""
        return self._columns["by_day"][at, slot % DAY_SLOTS] + self._columns["by_week"][at, slot]

    def _coming_pattern(self, bars: BarBatch, slot: Places) -> Array:
        """Sums of the factors of the next h bars [n, H]."""
        at, following = bars.index, self._columns["next"]
        num_within, place = _bars_per_slot(bars)
        steps = (place[:, None] + self._ahead) // num_within[:, None]  # slots ahead, [n, longest]
        chain = [slot]
        for _ in range(int(steps[:, -1].max())):
            chain.append(following[at, chain[-1]].astype(np.int64))
        factors = exact.exp(self._pattern(at[:, None], np.stack(chain, axis=1)))
        return np.cumsum(np.take_along_axis(factors, steps, axis=1), axis=1)[:, self._horizons - 1]

    def learn(self, bars: BarBatch) -> None:
        columns = self._columns
        slot = columns["slot"][bars.rows]
        pattern = self._pattern(bars.index, slot)
        even = bars.variance * exact.exp(-pattern)
        x, y, known = collect_targets(bars, even, columns["even"], columns, self._horizons, _MIN_BARS)
        self._fit.learn(bars.index, x, y, known)
        due = bars.index[bars.due]
        if len(due):
            self._fit.fit(due)
        self._learn_pattern(bars, slot, pattern)
        self._residuals.learn(bars, self._halves(bars.rows))

    def _learn_pattern(self, bars: BarBatch, slot: Places, pattern: Array) -> None:
        columns, at, hour = self._columns, bars.index, slot % DAY_SLOTS
        is_short = bars.end_ns - bars.start_ns <= _MAX_BAR_NS
        num_within = _bars_per_slot(bars)[0]
        visit = is_short / num_within  # what this bar is of one
        anchor = columns["anchor"][bars.rows]
        gain = np.maximum(1.0 / (bars.age + 1.0), 1.0 / (_ANCHOR_SLOTS * num_within))
        anchor = anchor + gain * (bars.log_variance - pattern - anchor)
        columns["anchor"][bars.rows] = anchor
        surprise = clamp_logs(bars.log_variance - pattern - anchor)
        days, weeks = columns["day_visits"][at, hour], columns["week_visits"][at, slot]
        by_day = visit * surprise / (np.minimum(days, _DAY_MEMORY) + _DAY_PRIOR + 1.0)
        by_week = visit * (surprise - by_day) / (np.minimum(weeks, _WEEK_MEMORY) + _WEEK_PRIOR + 1.0)
        columns["by_day"][at, hour] += by_day
        columns["by_week"][at, slot] += by_week
        columns["day_visits"][at, hour] = days + visit
        columns["week_visits"][at, slot] = weeks + visit


def _bars_per_slot(bars: BarBatch) -> tuple[Places, Places]:
    """How many bars of this length a slot holds, and which of them this is."""
    length_ns = np.maximum(bars.end_ns - bars.start_ns, 1)
    num = np.minimum(np.maximum(SLOT_NS // length_ns, 1), _MAX_BARS_PER_SLOT)
    return num, np.minimum(bars.start_ns % SLOT_NS // length_ns, num - 1)
