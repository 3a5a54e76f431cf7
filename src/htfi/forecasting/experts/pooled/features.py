"""What the pooled learner reads of each series and of its market: features of one meaning over all series.

Training and forecasting read through this one class, so that a model meets what it was fitted to.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.columns import SeriesColumns, distinct
from htfi.forecasting.experts.quarterly_recurrence import NUM_RECURRENCE_FEATURES, QuarterlyRecurrence
from htfi.forecasting.known_variance.coming_bars import DAY_SLOTS, SLOT_NS, week_slots
from htfi.forecasting.panel import BarBatch
from htfi.forecasting.regression import clamp_logs

Array = NDArray[np.float64]
Single = NDArray[np.float32]

_SPANS_BARS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # of the means of log variance
# Log variance of the next bar in the first place, as HARs in logs have it on panels of several kinds.
_BASE_SHARES = np.array([0.10, 0.20, 0.25, 0.20, 0.15, 0.10])
_SHOCK_SPANS_BARS = (5.0, 22.0, 66.0)
_ROOT_SHOCK_SPANS = np.array([round(math.sqrt(span), 12) for span in _SHOCK_SPANS_BARS])
_MONTH_GAIN = 1.0 / 22.0
_VOLUME_GAINS = np.array([0.01, 0.2])  # the level, the week
_MAX_SHOCK = 6.0
_MAX_LOG_VOLUME = 3.0
_MAX_AGE_BARS = 2_000
_MAX_PATTERN_NS = 8 * SLOT_NS  # longer bars show no pattern of a day
_SLOT_PRIOR, _SLOT_MEMORY = 3.0, 60.0  # visits of a slot: that its absence counts for, that are kept
_PATTERN_BARS = (1, 5, 22)
_MIN_MARKET_SERIES = 3
_RECENT_NS = 5 * NS_PER_DAY  # a series with a bar within this counts to the market: weekends, holidays
MIN_BARS = 22  # of a series before it is forecast, and before it counts to the market

_OWN = (
    *(f"log variance {span:g}" for span in _SPANS_BARS),
    "shock", *(f"shock {span:g}" for span in _SHOCK_SPANS_BARS),
    "share of falls", "range over squares", "variance of log variance", "volume", "volume 5",
)  # fmt: skip
_SHARED = (
    *(f"log variance {span:g}" for span in _SPANS_BARS[:5]), "shock", "shock 5", "shock 22", "volume",
)  # fmt: skip
_SHARED_PLACES = [_OWN.index(name) for name in _SHARED]
_VARIANCE_PLACE, _VOLUME_PLACE = 0, len(_SHARED) - 1  # of what is above the market's
_RECURRENCE = ("stood out", "stood out 5", "due", "due soon", "stood out lately")
_PLACE_AND_TIME = (
    "log variance a day", "log age", "weekday", "hour", "log bar hours",
    "pattern now", *(f"pattern next {bars}" for bars in _PATTERN_BARS),
)  # fmt: skip
FEATURES = (*_OWN, *(f"market {name}" for name in _SHARED), *_RECURRENCE, *_PLACE_AND_TIME)
assert len(_RECURRENCE) == NUM_RECURRENCE_FEATURES
# What all series have alike at an instant: it varies with time alone, and time is short.
SHARED = tuple(name for name in FEATURES if name.startswith("market "))
CALENDAR = ("log variance a day", "log age", "weekday", "hour", "log bar hours")


class PooledFeatures:
    """State of every series, from which its features for the coming bars follow; nothing later enters them."""

    def __init__(self) -> None:
        self._gains = np.array([round(1.0 - math.exp(-1.0 / span), 12) for span in _SPANS_BARS])
        self._gains[0] = 1.0
        self._shock_gains = np.array([round(1.0 - math.exp(-1.0 / span), 12) for span in _SHOCK_SPANS_BARS])
        self._recurrence = QuarterlyRecurrence()
        self._columns = SeriesColumns()
        self._columns.declare("filters", np.zeros(len(_SPANS_BARS)))
        self._columns.declare("shocks", np.zeros(len(_SHOCK_SPANS_BARS)))
        self._columns.declare("moments", np.zeros(4))  # squares, squares of falls, ranges, |surprise|
        self._columns.declare("volume", np.full(2, np.nan))
        self._columns.declare("pattern", np.zeros(DAY_SLOTS))
        self._columns.declare("visits", np.zeros(DAY_SLOTS))
        self._columns.declare("shared", np.zeros(len(_SHARED)))  # of which the market has the mean
        self._columns.declare("end_ns", -1, np.int64)
        self._columns.declare("group", -1, np.int64)
        self._columns.declare("is_grown", 0, np.int64)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._recurrence.columns.grow(num_series)

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of every series, −1 for none."""
        return self._columns["group"][: self._columns.num_rows]

    def update(self, bars: BarBatch) -> tuple[Single, Array]:
        """Features [n, F] in single precision and the volatility of a bar [n] that they are relative to."""
        columns, rows, age = self._columns, bars.rows, bars.age
        columns["end_ns"][rows], columns["group"][rows] = bars.end_ns, bars.group
        columns["is_grown"][rows] = age >= MIN_BARS - 1
        early = 1.0 / (age.astype(np.float64) + 1.0)
        own, base, level = self._own(bars, early)
        shared = own[:, _SHARED_PLACES]
        columns["shared"][rows] = shared
        market = np.zeros_like(shared)
        for group in distinct(bars.group):
            market[bars.group == group] = self._market(group, bars)
        above = shared - market
        recurrence = self._recurrence.features(bars, above[:, _VARIANCE_PLACE], above[:, _VOLUME_PLACE])
        times = self._place_and_time(bars, base, level)
        found = np.concatenate([own, market, recurrence, times], axis=1).astype(np.float32)
        return found, exact.exp(0.5 * base)

    def _own(self, bars: BarBatch, early: Array) -> tuple[Array, Array, Array]:
        """Features of the series alone, its log variance in the first place and at long last."""
        columns, rows = self._columns, bars.rows
        log_variance = bars.log_variance
        before = columns["filters"][rows]
        filters = before + np.maximum(early[:, None], self._gains) * (log_variance[:, None] - before)
        columns["filters"][rows] = filters
        base = np.zeros(len(early))
        for place, share in enumerate(_BASE_SHARES.tolist()):
            base += share * filters[:, place]
        shock = bars.returns / exact.exp(0.5 * base)
        shock = np.minimum(np.maximum(shock, -_MAX_SHOCK), _MAX_SHOCK)
        shocks = columns["shocks"][rows]
        shocks = shocks + np.maximum(early[:, None], self._shock_gains) * (shock[:, None] - shocks)
        columns["shocks"][rows] = shocks
        squares = bars.returns * bars.returns
        surprise = np.minimum(np.abs(log_variance - before[:, 2]), _MAX_SHOCK)
        newest = np.stack(
            [squares, np.where(bars.returns < 0.0, squares, 0.0), bars.variance, surprise], axis=1
        )
        moments = columns["moments"][rows]
        moments = moments + np.maximum(early, _MONTH_GAIN)[:, None] * (newest - moments)
        columns["moments"][rows] = moments
        least = np.maximum(moments[:, 0], 1e-4 * moments[:, 2])
        least = np.maximum(least, 1e-300)
        ranges = exact.log(np.maximum(moments[:, 2], 1e-300)) - exact.log(least)
        own = np.concatenate(
            [
                clamp_logs(filters - base[:, None]),
                shock[:, None],
                shocks * _ROOT_SHOCK_SPANS,
                np.stack([moments[:, 1] / least, clamp_logs(ranges), moments[:, 3]], axis=1),
                self._volume(bars, early),
            ],
            axis=1,
        )
        return own, base, filters[:, -1]

    def _volume(self, bars: BarBatch, early: Array) -> Array:
        """Log volume now and of the week [n, 2] about its slow level; zero where there is none."""
        known = (bars.volume > 0.0) & np.isfinite(bars.volume)
        newest = exact.log(np.where(known, bars.volume, 1.0))
        before = self._columns["volume"][bars.rows]
        before = np.where(np.isnan(before), newest[:, None], before)
        after = before + np.maximum(early[:, None], _VOLUME_GAINS) * (newest[:, None] - before)
        kept = np.where(known[:, None], after, self._columns["volume"][bars.rows])
        self._columns["volume"][bars.rows] = kept
        away = np.stack([newest, after[:, 1]], axis=1) - before[:, :1]
        away = np.where(known[:, None], away, 0.0)
        return np.minimum(np.maximum(away, -_MAX_LOG_VOLUME), _MAX_LOG_VOLUME)

    def _market(self, group: int, bars: BarBatch) -> Array:
        """The mean shared features of the series of a group; zero where these are too few to be a market."""
        columns = self._columns
        newest = int(bars.end_ns[bars.group == group].max())
        recent = columns["end_ns"] > newest - _RECENT_NS
        among = np.flatnonzero((columns["group"] == group) & (columns["is_grown"] > 0) & recent)
        if len(among) < _MIN_MARKET_SERIES:
            return np.zeros(len(_SHARED))
        return np.cumsum(columns["shared"][among], axis=0)[-1] / len(among)  # in the order of the rows

    def _place_and_time(self, bars: BarBatch, base: Array, level: Array) -> Array:
        columns, index = self._columns, bars.index
        length_ns = np.maximum(bars.end_ns - bars.start_ns, 1)
        is_short = length_ns <= _MAX_PATTERN_NS
        log_days = exact.log(length_ns / float(NS_PER_DAY))
        slot = week_slots(bars.start_ns) % DAY_SLOTS
        visits = columns["visits"][index, slot]
        pattern = columns["pattern"][index, slot]
        surprise = clamp_logs(bars.log_variance - level - pattern)
        step = np.where(is_short, surprise / (np.minimum(visits, _SLOT_MEMORY) + _SLOT_PRIOR + 1.0), 0.0)
        columns["pattern"][index, slot] = pattern + step
        columns["visits"][index, slot] = visits + is_short
        following = week_slots(bars.end_ns)
        since_ns = np.arange(_PATTERN_BARS[-1]) * length_ns[:, None]
        ahead = (following[:, None] + since_ns // SLOT_NS) % DAY_SLOTS
        coming = np.cumsum(columns["pattern"][index[:, None], ahead], axis=1)
        weekday = (following // DAY_SLOTS).astype(np.float64)  # from Thursday on, New York's
        hour = np.where(is_short, 0.5 * (following % DAY_SLOTS), -1.0)
        age = exact.log(np.minimum(bars.age, _MAX_AGE_BARS) + 1.0)
        patterns = [np.where(is_short, coming[:, num - 1] / num, 0.0) for num in _PATTERN_BARS]
        return np.stack(
            [base - log_days, age, weekday, hour, log_days + math.log(24.0),
             np.where(is_short, pattern + step, 0.0), *patterns],
            axis=1,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        return {"bars": self._columns.state(), "recurrence": self._recurrence.columns.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["bars"])
        self._recurrence.columns.restore(state["recurrence"])
