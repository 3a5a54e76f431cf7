"""Market HAR: one regression for all series of an interval, on each series' own volatility and on the market's.

`QuarterlyRecurrence` adds features of bars that stood out a quarter ago: companies report once a quarter.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns, distinct, push_window, row_means
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.pooled_shapes import PooledShape, half_quantiles, half_scales, half_slopes
from htfi.forecasting.regression import (
    MAX_LOG_DEVIATION,
    PooledRegression,
    clamp_logs,
    collect_targets,
)

Array = NDArray[np.float64]

NUM_RECURRENCE_FEATURES = 5
_QUARTERS = (63, 126, 189, 252)  # daily bars
_QUARTER_BARS = np.array(_QUARTERS, np.int64)
_NEAR_BARS, _WIDE_BARS = 1, 3  # bars by which a quarter's report may come early or late
_RECENT_BARS = 40  # after a report the next is more than so far away
_EVENT_SIZE = 1.5
_WEEK_BARS = 5
_MAX_VOLUME_FACTOR = 2.0
_MEMORY_BARS = _QUARTERS[-1] + _WIDE_BARS


class QuarterlyRecurrence:
    """How much each series' bars stood out in the last year.

    A bar stands out by how far its log variance lies above the market's, times its log volume above the
    market's: a report moves both. Where there is no volume nothing stands out, and every feature is zero.
    """

    def __init__(self) -> None:
        self.columns = SeriesColumns()
        self.columns.declare("stood_out", np.zeros(_MEMORY_BARS), np.float32)
        self.columns.declare("since_bars", 10_000, np.int64)

    def features(self, bars: BarBatch, variance_above: Array, volume_above: Array) -> Array:
        """Features [n, 5] for the next bar, these bars taken in.

        `variance_above` [n] is each log variance above the market's, `volume_above` [n] each log volume above it.
        Features: this bar, the week's mean, the same days in the last four quarters (near, wide; zero after a recent
        event), and whether there was one lately.
        """
        now = np.maximum(variance_above, 0.0) * np.minimum(np.maximum(volume_above, 0.0), _MAX_VOLUME_FACTOR)
        kept = self.columns["stood_out"][bars.rows]
        kept = np.concatenate([kept[:, 1:], now[:, None].astype(np.float32)], axis=1)
        self.columns["stood_out"][bars.rows] = kept
        since = np.where(now > _EVENT_SIZE, 0, self.columns["since_bars"][bars.rows] + 1)
        self.columns["since_bars"][bars.rows] = since
        lately = since < _RECENT_BARS
        due = np.where(
            lately[:, None],
            0.0,
            np.stack([_near_quarters(kept, _NEAR_BARS), _near_quarters(kept, _WIDE_BARS)], axis=1),
        )
        week = kept[:, -_WEEK_BARS:].astype(np.float64).mean(axis=1)
        return np.concatenate([now[:, None], week[:, None], due, lately[:, None].astype(np.float64)], axis=1)


def _near_quarters(kept: NDArray[np.float32], reach: int) -> Array:
    """The sum [n] over quarters of the largest value near the day: the next bar is `quarter` bars later."""
    total = np.zeros(len(kept))
    for quarter in _QUARTERS:
        last = kept.shape[1] - quarter  # the newest bar, kept last, is one before the next
        total += kept[:, max(last - reach, 0) : last + reach + 1].max(axis=1)
    return total


_WEEK, _MONTH = 5, 22
_LEVEL_GAIN = 0.005
_VOLUME_GAIN = 0.01
_MAX_LOG_VOLUME = 3.0  # log volume about its level
_MIN_MARKET_SERIES = 3  # series that make a market
_RECENT_NS = (
    5 * 86_400_000_000_000
)  # a series with a bar within this counts to the market: weekends, holidays
# Typical of daily equities: level; own day, week, month of log variance, week and month of returns, volume today and
# of the week; the market's day, week, month of log variance, day, week and month of returns; recurrence.
_OWN_PRIOR = [0.0, 0.2, 0.25, 0.4, -0.05, -0.1, 0.1, -0.1]
_MARKET_PRIOR = [0.1, 0.15, -0.15, -0.1, -0.1, -0.05]
_PRIOR = np.array([*_OWN_PRIOR, *_MARKET_PRIOR, *[0.0] * NUM_RECURRENCE_FEATURES])
_MARKET = slice(len(_OWN_PRIOR), len(_OWN_PRIOR) + len(_MARKET_PRIOR))
_NUM_MARKET_FEATURES = len(_MARKET_PRIOR) + 1  # and its volume
_RECURRING = slice(_MARKET.stop, _MARKET.stop + NUM_RECURRENCE_FEATURES)


class MarketHarExpert:
    """For each horizon h: mean variance over h bars, in logs, about the series' slow level, on its own log variance,
    standardised returns and volume, and on the mean of all series' of its interval. One fit for them all: what one
    history is too short, many together are long enough (Bollerslev, Hood, Huss and Pedersen 2018, "Risk Everywhere").

    Distributions have the shape that standardised returns of all of them had, skew and median included, at each one's
    size. A forecast so depends on which other series run: they are recorded inputs like any other.
    """

    name = "market_har"
    version = "2"

    def __init__(self, config: ForecastConfig) -> None:
        self._horizons, self._longest = np.array(config.horizons), config.horizons[-1]
        self._root_h = np.sqrt(self._horizons)
        self._fit = PooledRegression(config.horizons, _PRIOR)
        self._shape = PooledShape(config)
        self._half_slopes = half_slopes(config.horizons)
        self._recurrence = QuarterlyRecurrence()
        num = len(_PRIOR)
        self._columns = SeriesColumns()
        self._columns.declare("log_var", np.zeros(_MONTH))
        self._columns.declare("shock", np.zeros(_MONTH))
        self._columns.declare("loud", np.zeros(_WEEK))
        self._columns.declare("var", np.zeros(self._longest))
        self._columns.declare("level", 0.0)
        self._columns.declare("volume", np.nan)
        self._columns.declare("levels", np.zeros(self._longest))
        self._columns.declare("regressors", np.zeros((self._longest, num)))
        self._columns.declare("newest", np.zeros(num))
        self._columns.declare("told", np.zeros(_NUM_MARKET_FEATURES))  # this series' features of the market
        self._columns.declare("end_ns", -1, np.int64)
        self._columns.declare("group", -1, np.int64)
        self._columns.declare("is_grown", 0, np.int64)
        self._columns.declare("scale", np.full(len(self._horizons), np.nan))
        self._columns.declare(
            "above", np.zeros(len(self._horizons))
        )  # log volatility to come above its level

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._shape.grow(num_series)
        self._recurrence.columns.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        columns, rows, age = self._columns, bars.rows, bars.age
        if compiled.core is not None:
            self._update_compiled(compiled.core, bars)
            return
        level = columns["level"][rows]
        level = level + np.maximum(1.0 / (age + 1.0), _LEVEL_GAIN) * (bars.log_variance - level)
        columns["level"][rows] = level
        columns["end_ns"][rows] = bars.end_ns
        columns["group"][rows] = bars.group
        columns["is_grown"][rows] = age >= _MONTH - 1  # short histories do not count to the market
        regressors = self._own_features(bars, level)
        market = np.zeros((len(age), _NUM_MARKET_FEATURES))
        for group in distinct(bars.group):
            market[bars.group == group] = self._market_features(group, bars)
        regressors[:, _MARKET] = market[:, :-1]
        above = columns["told"][rows] - market
        regressors[:, _RECURRING] = self._recurrence.features(bars, above[:, 0], above[:, -1])
        columns["newest"][rows] = regressors
        coming = clamp_logs(self._fit.predict(bars.group, regressors))
        columns["above"][rows] = 0.5 * coming
        scale = exact.exp(0.5 * (level[:, None] + coming)) * self._root_h
        columns["scale"][rows] = np.where(age[:, None] >= _MONTH - 1, scale, np.nan)

    def _update_compiled(self, core: Any, bars: BarBatch) -> None:
        columns, index, age, n = self._columns, bars.index, bars.age, len(bars.index)
        columns["end_ns"][index] = bars.end_ns
        columns["group"][index] = bars.group
        columns["is_grown"][index] = age >= _MONTH - 1
        x, market = np.zeros((n, len(_PRIOR))), np.zeros((n, _NUM_MARKET_FEATURES))
        core.read_own(
            index, age, bars.log_variance, bars.returns, bars.usual, bars.volume, columns["level"], columns["log_var"],
            columns["shock"], columns["loud"], columns["volume"], columns["told"], x, _WEEK, _LEVEL_GAIN, _VOLUME_GAIN,
            _MAX_LOG_VOLUME, MAX_LOG_DEVIATION,
        )  # fmt: skip
        for group in distinct(bars.group):
            market[bars.group == group] = self._market_features(group, bars)
        x[:, _MARKET] = market[:, :-1]
        recurrence = self._recurrence.columns
        core.read_recurrence(
            index, columns["told"][index] - market, recurrence["stood_out"], recurrence["since_bars"], _QUARTER_BARS, x,
            _RECURRING.start, _NEAR_BARS, _WIDE_BARS, _WEEK_BARS, _RECENT_BARS, _EVENT_SIZE, _MAX_VOLUME_FACTOR,
        )  # fmt: skip
        columns["newest"][index] = x
        self._fit.columns.grow(int(bars.group.max()) + 1)
        fit = [self._fit.columns[name] for name in ("beta", "squares", "num")]
        core.scale_market(
            index, age, bars.group, x, *fit, columns["level"], self._root_h, columns["scale"], columns["above"],
            np.empty(len(_PRIOR)),
            _MONTH, MAX_LOG_DEVIATION,
        )  # fmt: skip

    def learn(self, bars: BarBatch) -> None:
        columns = self._columns
        x, y, known = collect_targets(bars, bars.variance, columns["var"], columns, self._horizons, _MONTH)
        groups = columns["group"][: columns.num_rows]
        for group in distinct(bars.group):
            num_series = max(int((groups == group).sum()), 1)
            self._fit.learn(group, bars.group, x, y, known, num_series)
        self._shape.learn(bars, self._halves(bars.rows))

    def _own_features(self, bars: BarBatch, level: Array) -> Array:
        """Regressors [n, K] of the bars just closed, the market's still zero."""
        columns, rows = self._columns, bars.rows
        logs = push_window(columns["log_var"], rows, bars.log_variance)
        shocks = push_window(columns["shock"], rows, bars.returns / bars.usual)
        louds = push_window(columns["loud"], rows, self._volume_deviation(bars))
        x = np.zeros((len(level), len(_PRIOR)))
        x[:, 0] = 1.0
        x[:, 1] = bars.log_variance - level
        x[:, 2] = row_means(logs[:, -_WEEK:]) - level
        x[:, 3] = row_means(logs) - level
        x[:, 4] = row_means(shocks[:, -_WEEK:])
        x[:, 5] = row_means(shocks)
        x[:, 6] = louds[:, -1]
        x[:, 7] = row_means(louds)
        x = clamp_logs(x)
        inputs = [x[:, 1], x[:, 2], x[:, 3], shocks[:, -1], x[:, 4], x[:, 5], x[:, 6]]
        columns["told"][rows] = clamp_logs(np.stack(inputs, axis=1))
        return x

    def _volume_deviation(self, bars: BarBatch) -> Array:
        """Log volume [n] about its slow level; zero where there is none."""
        known = (bars.volume > 0.0) & np.isfinite(bars.volume)
        log_volume = exact.log(np.where(known, bars.volume, 1.0))
        usual = self._columns["volume"][bars.rows]
        usual = np.where(np.isnan(usual), log_volume, usual)
        away = np.where(known, log_volume - usual, 0.0)
        gain = np.maximum(1.0 / (bars.age + 1.0), _VOLUME_GAIN)
        self._columns["volume"][bars.rows] = np.where(
            known, usual + gain * away, self._columns["volume"][bars.rows]
        )
        return np.minimum(np.maximum(away, -_MAX_LOG_VOLUME), _MAX_LOG_VOLUME)

    def _market_features(self, group: int, bars: BarBatch) -> Array:
        """The mean features of the group's series; zero where these are too few to be a market."""
        columns = self._columns
        newest = int(bars.end_ns[bars.group == group].max())
        if compiled.core is not None:
            means = np.empty(_NUM_MARKET_FEATURES)
            names = ("group", "is_grown", "end_ns", "told")
            num = compiled.core.mean_told(
                group, newest - _RECENT_NS, *(columns[name] for name in names), means
            )
            return means if num >= _MIN_MARKET_SERIES else np.zeros(_NUM_MARKET_FEATURES)
        recent = columns["end_ns"] > newest - _RECENT_NS
        among = (columns["group"] == group) & (columns["is_grown"] > 0) & recent
        if int(among.sum()) < _MIN_MARKET_SERIES:
            return np.zeros(_NUM_MARKET_FEATURES)
        return columns["told"][among].mean(axis=0)

    def quantiles(self, rows: Rows) -> Array:
        size, shape = self._shape.of(rows, self._columns["group"][rows])
        scale, above = self._columns["scale"][rows] * size, self._columns["above"][rows]
        return half_quantiles(scale, above, self._half_slopes, shape)

    def _halves(self, rows: Rows) -> Array:
        """Scales of falls and rises [n, H, 2]."""
        return half_scales(self._columns["scale"][rows], self._columns["above"][rows], self._half_slopes)

    def state(self) -> dict[str, Any]:
        return {
            "bars": self._columns.state(),
            "fit": self._fit.columns.state(),
            "shape": self._shape.state(),
            "recurrence": self._recurrence.columns.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["bars"])
        self._fit.columns.restore(state["fit"])
        self._shape.restore(state["shape"])
        self._recurrence.columns.restore(state["recurrence"])
