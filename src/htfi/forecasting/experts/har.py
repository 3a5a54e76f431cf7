"""HAR (Corsi 2009): the coming variance, or its logarithm, from its daily, weekly and monthly means."""

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import push_window, row_means
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch
from htfi.forecasting.regression import MAX_LOG_DEVIATION, RegressionExpert, clamp_logs, collect_targets

Array = NDArray[np.float64]

_WEEK, _MONTH = 5, 22
_LEVEL_BARS = 500
_PRIOR = np.array([0.1, 0.25, 0.35, 0.30])  # level, day, week, month
_PRIOR_BARS = 100.0
_FIT_HALF_LIFE_BARS = 350.0
_MIN_VARIANCE_SHARE = 0.1  # of the lower of level and month: a negative weight may not make a variance vanish
_MAX_OUTCOME_RATIO = 10.0  # an outcome counts for no more than this many times what was expected


class HarExpert(RegressionExpert):
    """For each horizon h: mean variance over h bars on (level, day, week, month), refitted at every tenth bar.

    Least squares weighted by 1/fitted², since a variance errs in proportion to itself; a slow mean of about two years
    stands where the textbook has a constant. Variance is Parkinson's of the true range; the residuals' shape makes
    good for the difference to that of returns.
    """

    name = "har"
    version = "2"

    def __init__(self, config: ForecastConfig) -> None:
        super().__init__(config, _PRIOR, _PRIOR_BARS, _FIT_HALF_LIFE_BARS)
        self._columns.declare("month", np.zeros(_MONTH))
        self._columns.declare("var", np.zeros(self._longest))
        self._columns.declare("level", 0.0)
        self._columns.declare("regressors", np.zeros((self._longest, len(_PRIOR))))
        self._columns.declare("expected", np.ones((self._longest, len(self._horizons))))
        self._columns.declare("newest", np.zeros(len(_PRIOR)))
        self._columns.declare("coming", np.ones(len(self._horizons)))

    def update(self, bars: BarBatch) -> None:
        columns, rows = self._columns, bars.rows
        level = columns["level"][rows]
        level = level + (bars.variance - level) / np.minimum(bars.age + 1.0, _LEVEL_BARS)
        month = push_window(columns["month"], rows, bars.variance)
        means = [level, bars.variance, row_means(month[:, -_WEEK:]), row_means(month)]
        regressors = np.stack(means, axis=1)  # [n, 4]
        columns["level"][rows], columns["newest"][rows] = level, regressors
        fitted = (regressors[:, None] * self._fit.columns["beta"][rows]).sum(axis=2)  # [n, H]
        coming = np.maximum(fitted, _MIN_VARIANCE_SHARE * np.minimum(level, means[3])[:, None])
        scale = np.maximum(np.sqrt(coming * self._horizons), SIGMA_FLOOR)
        columns["coming"][rows] = coming
        columns["above"][rows] = 0.5 * exact.log(coming / level[:, None])
        columns["scale"][rows] = np.where(bars.age[:, None] >= _MONTH - 1, scale, np.nan)

    def learn(self, bars: BarBatch) -> None:
        columns, rows, age = self._columns, bars.rows, bars.age
        past = push_window(columns["var"], rows, bars.variance)
        means = np.stack([row_means(past[:, -h:]) for h in self._horizons], axis=1)  # [n, H]
        at, across = bars.index[:, None], np.arange(len(self._horizons))
        slots = (age[:, None] - self._horizons) % self._longest
        matured = age[:, None] - self._horizons >= _MONTH - 1
        expected = columns["expected"][at, slots, across]
        regressors = columns["regressors"][at, slots] / expected[:, :, None]
        self._fit.learn(bars.index, regressors, np.minimum(means / expected, _MAX_OUTCOME_RATIO), matured)
        due = bars.index[bars.due]
        if len(due):
            self._fit.fit(due)
        columns["regressors"][bars.index, age % self._longest] = columns["newest"][rows]
        columns["expected"][bars.index, age % self._longest] = columns["coming"][rows]
        self._residuals.learn(bars, self._halves(rows))


_LEVEL_GAIN = 0.005
# Typical of equities, indices and currencies; the data outweigh it within a year of daily bars.
_LOG_PRIOR = np.array([0.0, 0.30, 0.35, 0.30, -0.1, -0.1])


class LogRangeHarExpert(RegressionExpert):
    """For each horizon h: mean variance over h bars, in logs, on (1, day, week, month, week's and month's
    mean standardised return), all about the series' slow level; refitted at every tenth bar by discounted
    least squares. The last two are the leverage effect (Corsi and Renò 2012).

    Variance is Parkinson's of the true range. exp(· + s²/2) corrects for the log, residuals for the rest.
    """

    name = "log_range_har"
    version = "2"

    def __init__(self, config: ForecastConfig) -> None:
        super().__init__(config, _LOG_PRIOR, _PRIOR_BARS, _FIT_HALF_LIFE_BARS)
        self._columns.declare("log_var", np.zeros(_MONTH))
        self._columns.declare("shock", np.zeros(_MONTH))
        self._columns.declare("var", np.zeros(self._longest))
        self._columns.declare("level", 0.0)
        self._columns.declare("levels", np.zeros(self._longest))
        self._columns.declare("regressors", np.zeros((self._longest, len(_LOG_PRIOR))))
        self._columns.declare("newest", np.zeros(len(_LOG_PRIOR)))

    def update(self, bars: BarBatch) -> None:
        columns, rows, age = self._columns, bars.rows, bars.age
        if compiled.core is not None:
            compiled.core.read_har(
                bars.index, age, bars.log_variance, bars.returns, bars.usual, columns["level"], columns["log_var"],
                columns["shock"], columns["newest"], self._fit.columns["beta"], self._fit.columns["noise"],
                self._root_h, columns["scale"], columns["above"], np.empty(len(_LOG_PRIOR)), _WEEK,
                _LEVEL_GAIN, MAX_LOG_DEVIATION,
            )  # fmt: skip
            return
        level = columns["level"][rows]
        level = level + np.maximum(1.0 / (age + 1.0), _LEVEL_GAIN) * (bars.log_variance - level)
        regressors = self._regressors(bars, bars.log_variance, level)
        columns["level"][rows], columns["newest"][rows] = level, regressors
        coming = clamp_logs(self._fit.predict(rows, regressors))
        columns["above"][rows] = 0.5 * coming
        scale = exact.exp(0.5 * (level[:, None] + coming)) * self._root_h
        columns["scale"][rows] = np.where(age[:, None] >= _MONTH - 1, scale, np.nan)

    def learn(self, bars: BarBatch) -> None:
        columns = self._columns
        x, y, known = collect_targets(bars, bars.variance, columns["var"], columns, self._horizons, _MONTH)
        self._fit.learn(bars.index, x, y, known)
        due = bars.index[bars.due]
        if len(due):
            self._fit.fit(due)
        self._residuals.learn(bars, self._halves(bars.rows))

    def _regressors(self, bars: BarBatch, log_var: Array, level: Array) -> Array:
        """Regressors [n, 6] of the bar just closed."""
        logs = push_window(self._columns["log_var"], bars.rows, log_var)
        shocks = push_window(self._columns["shock"], bars.rows, bars.returns / bars.usual)
        features = np.ones((len(level), len(_LOG_PRIOR)))
        features[:, 1] = log_var - level
        features[:, 2] = row_means(logs[:, -_WEEK:]) - level
        features[:, 3] = row_means(logs) - level
        features[:, 4] = row_means(shocks[:, -_WEEK:])
        features[:, 5] = row_means(shocks)
        return clamp_logs(features)
