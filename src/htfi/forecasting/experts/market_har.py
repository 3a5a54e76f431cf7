"""Market HAR: one regression for all series of an interval, on each series' own volatility and on the market's."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns, distinct, push_window, row_means
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.quarterly_recurrence import (
    EVENT_SIZE,
    MAX_VOLUME_FACTOR,
    NEAR_BARS,
    NUM_RECURRENCE_FEATURES,
    QUARTER_BARS,
    RECENT_BARS,
    WEEK_BARS,
    WIDE_BARS,
    QuarterlyRecurrence,
)
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.pooled_shapes import PooledShape, half_quantiles, half_scales, half_slopes
from htfi.forecasting.regression import (
    MAX_LOG_DEVIATION,
    PooledRegression,
    clamp_logs,
    collect_targets,
)

Array = NDArray[np.float64]

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
# Within the bar, today and of the week; the common move; then 0.1 for each covariate.
_PRIOR = np.array([*_OWN_PRIOR, *_MARKET_PRIOR, *[0.0] * NUM_RECURRENCE_FEATURES, 0.0, 0.0, 0.0])
_COVARIATE_PRIOR = 0.1
_MARKET = slice(len(_OWN_PRIOR), len(_OWN_PRIOR) + len(_MARKET_PRIOR))
_NUM_MARKET_FEATURES = len(_MARKET_PRIOR) + 1  # and its volume
_RECURRING = slice(_MARKET.stop, _MARKET.stop + NUM_RECURRENCE_FEATURES)
_WITHIN = slice(_RECURRING.stop, _RECURRING.stop + 2)
COMMON = _WITHIN.stop
_COVARIATES = slice(COMMON + 1, None)
_SHOCK = 3  # its place in what a series tells
_LOADING_GAIN = 0.01
_COMMON_VARIANCE = 0.3  # of the common move in usual deviations, until it is known
_MIN_COMMON_VARIANCE = 1e-12


class MarketHarExpert:
    """For each horizon h: mean variance over h bars, in logs, about the series' slow level, on its own log variance,
    standardised returns and volume, on the mean of all series' of its interval, on the size of their common move and
    on the run's covariates. One fit for them all: what one history is too short, many together are long enough
    (Bollerslev, Hood, Huss and Pedersen 2018, "Risk Everywhere").

    The range within the bar enters beside that which spans the close before: they differ by what moved overnight.
    The common move is the first principal component of standardised returns, its loadings learnt bar by bar (Oja
    1982): all series' ranges may be wide while their returns cancel, and then the next day is calmer.

    Distributions have the shape that standardised returns of all of them had, skew and median included, at each one's
    size. A forecast so depends on which other series run: they are recorded inputs like any other.
    """

    name = "market_har"
    version = "3"

    def __init__(self, config: ForecastConfig) -> None:
        self._horizons, self._longest = np.array(config.horizons), config.horizons[-1]
        self._root_h = np.sqrt(self._horizons)
        self._prior = np.concatenate([_PRIOR, np.full(len(config.covariates), _COVARIATE_PRIOR)])
        self._fit = PooledRegression(config.horizons, self._prior)
        self._shape = PooledShape(config)
        self._half_slopes = half_slopes(config.horizons)
        self._recurrence = QuarterlyRecurrence()
        num = len(self._prior)
        self._columns = SeriesColumns()
        self._columns.declare("log_var", np.zeros(_MONTH))
        self._columns.declare("shock", np.zeros(_MONTH))
        self._columns.declare("loud", np.zeros(_WEEK))
        self._columns.declare("var", np.zeros(self._longest))
        self._columns.declare("level", 0.0)
        self._columns.declare("within", np.zeros(_WEEK))
        self._columns.declare("within_level", 0.0)
        self._columns.declare("loading", 1.0)  # on the common move
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
        )  # log volatility to come, about its level
        self._common = SeriesColumns()  # a row for each group
        self._common.declare("variance", _COMMON_VARIANCE)

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
        market = self._read_market(bars, regressors)
        above = columns["told"][rows] - market
        regressors[:, _RECURRING] = self._recurrence.features(bars, above[:, 0], above[:, -1])
        columns["newest"][rows] = regressors
        coming = clamp_logs(self._fit.predict(bars.group, regressors))
        columns["above"][rows] = 0.5 * coming
        scale = exact.exp(0.5 * (level[:, None] + coming)) * self._root_h
        columns["scale"][rows] = np.where(age[:, None] >= _MONTH - 1, scale, np.nan)

    def _update_compiled(self, core: Any, bars: BarBatch) -> None:
        columns, index, age, n = self._columns, bars.index, bars.age, len(bars.index)
        x = np.zeros((n, len(self._prior)))
        core.read_own(
            index, age, bars.log_variance, bars.within_log_variance, bars.returns, bars.usual, bars.volume,
            columns["level"], columns["log_var"], columns["shock"], columns["loud"], columns["volume"],
            columns["within_level"], columns["within"], columns["told"], x, _WITHIN.start, _WEEK, _LEVEL_GAIN,
            _VOLUME_GAIN, _MAX_LOG_VOLUME, MAX_LOG_DEVIATION,
        )  # fmt: skip
        above = np.empty((n, _NUM_MARKET_FEATURES))
        num_groups = int(bars.group.max()) + 1
        self._common.grow(num_groups)
        names = ("group", "is_grown", "end_ns", "told", "loading")
        core.read_market(
            index, age, bars.group, bars.end_ns, bars.covariates, *(columns[name] for name in names),
            self._common["variance"], x, above, np.empty(_NUM_MARKET_FEATURES), _MARKET.start, COMMON, _SHOCK,
            _MIN_MARKET_SERIES, _MONTH, _RECENT_NS, _LOADING_GAIN, _MIN_COMMON_VARIANCE, MAX_LOG_DEVIATION,
        )  # fmt: skip
        recurrence = self._recurrence.columns
        core.read_recurrence(
            index, above, recurrence["stood_out"], recurrence["since_bars"], QUARTER_BARS, x,
            _RECURRING.start, NEAR_BARS, WIDE_BARS, WEEK_BARS, RECENT_BARS, EVENT_SIZE, MAX_VOLUME_FACTOR,
        )  # fmt: skip
        columns["newest"][index] = x
        self._fit.columns.grow(num_groups)
        fit = [self._fit.columns[name] for name in ("beta", "squares", "num")]
        core.scale_market(
            index, age, bars.group, x, *fit, columns["level"], self._root_h, columns["scale"], columns["above"],
            np.empty(x.shape[1]),
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
        x = np.zeros((len(level), len(self._prior)))
        x[:, 0] = 1.0
        x[:, 1] = bars.log_variance - level
        x[:, 2] = row_means(logs[:, -_WEEK:]) - level
        x[:, 3] = row_means(logs) - level
        x[:, 4] = row_means(shocks[:, -_WEEK:])
        x[:, 5] = row_means(shocks)
        x[:, 6] = louds[:, -1]
        x[:, 7] = row_means(louds)
        within, inner = columns["within_level"][rows], bars.within_log_variance
        within = within + np.maximum(1.0 / (bars.age + 1.0), _LEVEL_GAIN) * (inner - within)
        columns["within_level"][rows] = within
        week = row_means(push_window(columns["within"], rows, inner))
        x[:, _WITHIN] = np.stack([inner - within, week - within], axis=1)
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

    def _read_market(self, bars: BarBatch, x: Array) -> Array:
        """The mean features [n, F] of the series of each bar's group, which go into x [n, K] with their common move and
        the covariates."""
        market = np.zeros((len(x), _NUM_MARKET_FEATURES))
        self._common.grow(int(bars.group.max()) + 1)
        for group in distinct(bars.group):
            of_group = bars.group == group
            after_ns = int(bars.end_ns[of_group].max()) - _RECENT_NS
            market[of_group] = self._market_features(group, after_ns)
            self._read_common_move(group, after_ns, bars, x)
        x[:, _MARKET] = market[:, :-1]
        x[:, _COVARIATES] = clamp_logs(bars.covariates)
        return market

    def _read_common_move(self, group: int, after_ns: int, bars: BarBatch, x: Array) -> None:
        """The size of the group's common move, in usual deviations, into x [n, K]; then its loadings learn."""
        columns, variances = self._columns, self._common["variance"]
        among = (columns["group"] == group) & (columns["is_grown"] > 0) & (columns["end_ns"] > after_ns)
        if int(among.sum()) < _MIN_MARKET_SERIES:
            return
        loadings = columns["loading"][among]
        parts = np.stack([loadings * columns["told"][among, _SHOCK], np.abs(loadings)], axis=1)
        moved, total = parts.sum(axis=0).tolist()
        move = moved / max(total, _MIN_COMMON_VARIANCE)
        variances[group] += _LOADING_GAIN * (move * move - variances[group])
        of_group = bars.group == group
        x[of_group, COMMON] = abs(move)
        grown = bars.index[of_group & (columns["is_grown"][bars.index] > 0)]
        loading = columns["loading"][grown]
        target = columns["told"][grown, _SHOCK] * move / max(float(variances[group]), _MIN_COMMON_VARIANCE)
        columns["loading"][grown] = loading + _LOADING_GAIN * (target - loading)

    def _market_features(self, group: int, after_ns: int) -> Array:
        """The mean features of the group's series; zero where these are too few to be a market."""
        columns = self._columns
        among = (columns["group"] == group) & (columns["is_grown"] > 0) & (columns["end_ns"] > after_ns)
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
            "common": self._common.state(),
            "fit": self._fit.columns.state(),
            "shape": self._shape.state(),
            "recurrence": self._recurrence.columns.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["bars"])
        self._common.restore(state["common"])
        self._fit.columns.restore(state["fit"])
        self._shape.restore(state["shape"])
        self._recurrence.columns.restore(state["recurrence"])
