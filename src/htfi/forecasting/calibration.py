"""Adaptive conformal calibration: a stretch that makes the 90% band hold 90%, in each regime."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns, distinct
from htfi.forecasting.config import CALIBRATION_GAIN, SHARED_CALIBRATION_GAIN, ForecastConfig
from htfi.forecasting.fusion import MaturedForecasts

Array = NDArray[np.float64]

_MISS_RATE = 0.1
_INITIAL_STEP = 3.0  # a Gaussian's log width at 90% by its share of misses
_INITIAL_SPANS = 20.0
_HALF_TRUST_SERIES = (
    8.0  # series at which what an instant's outcomes miss together moves the shared part by half
)
_HALF_TRUST_LOG = 0.05  # a log stretch that counts by half: smaller ones are luck, larger ones are not
_MAX_LOG_STRETCH = (
    0.7  # a stretch between one half and two: beyond it the experts, not the width, are at fault
)


class Calibration:
    """A stretch per series, horizon and regime: log s ← log s + γ_h·(missed − 10%), as forecasts mature.

    Gibbs and Candès (2021), on the log of the width, in two parts: one of each series and horizon, and one of each
    regime and horizon that all series of an interval share, for what they miss together is soon set apart from luck.
    While the stretch stays inside its bounds the mean miss rate of a series tends to 10% whatever the data, as
    1/(γ_h·num). γ_h = γ/h, because h overlapping outcomes show little more than one. In a regime that was hardly seen
    the shared part moves as fast as a mean (Robbins and Monro 1951). It moves less while series are few: one series'
    misses are luck for the most part, and following them costs more than it mends. For the same reason a sum s of both
    parts is used as s·s²/(s² + .05²): little of it while it is small, nearly all once misses that go on made it large.
    """

    def __init__(self, config: ForecastConfig, num_regimes: int) -> None:
        self._low, self._high = config.levels.index(0.05), config.levels.index(0.95)
        horizons = np.array(config.horizons, np.float64)
        self._own_gains = CALIBRATION_GAIN / horizons
        self._horizons, self._shared_gain = horizons, SHARED_CALIBRATION_GAIN
        self._num_regimes = num_regimes
        self.columns, self.shared = SeriesColumns(), SeriesColumns()
        self.columns.declare("log_stretch", np.zeros(len(horizons)))
        self.shared.declare("log_stretch", np.zeros((num_regimes, len(horizons))))
        self.shared.declare("bars", np.zeros((num_regimes, len(horizons))))

    def learn(self, batch: MaturedForecasts, waited: Array) -> None:
        """Take in the outcomes of forecasts [n, 1 + K, H, Q], of which the first are stretched."""
        self.shared.grow(int(batch.groups.max()) + 1)
        if compiled.core is not None:
            sizes = np.zeros(len(batch.num_series))
            for group in distinct(batch.groups):
                sizes[group] = batch.num_series[group]
            compiled.core.learn_calibration(
                batch.index, batch.groups, batch.regimes, batch.known.view(np.uint8), batch.outcome, waited,
                self._horizons, self.columns["log_stretch"], self.shared["log_stretch"], self.shared["bars"],
                self._own_gains, sizes, np.empty(batch.outcome.shape), self._low, self._high, _MISS_RATE,
                self._shared_gain, _INITIAL_STEP, _INITIAL_SPANS, _HALF_TRUST_SERIES, _MAX_LOG_STRETCH,
            )  # fmt: skip
            return
        outcome, fused = batch.outcome, waited[:, 0]
        missed = (outcome < fused[..., self._low]) | (outcome > fused[..., self._high])
        surprise = np.where(batch.known, missed - _MISS_RATE, 0.0)  # [n, H]
        own = self.columns["log_stretch"]
        own[batch.index] = _clamp_stretch(own[batch.index] + self._own_gains * surprise)
        shared = self.shared
        of_regime = batch.regimes == np.arange(self._num_regimes)[:, None, None]  # [R, n, H]
        for group in distinct(batch.groups):
            applies = of_regime & (batch.groups == group)[:, None]
            mean_surprise = np.where(applies, surprise, 0.0).sum(axis=1) / batch.num_series[group]  # [R, H]
            spans = shared["bars"][group] / self._horizons
            gain = np.maximum(self._shared_gain, _INITIAL_STEP / (spans + _INITIAL_SPANS)) / self._horizons
            gain = gain * (batch.num_series[group] / (batch.num_series[group] + _HALF_TRUST_SERIES))
            moved = shared["log_stretch"][group] + gain * mean_surprise
            shared["log_stretch"][group] = _clamp_stretch(moved)
            shared["bars"][group] += (applies & batch.known).sum(axis=1) / batch.num_series[group]

    def stretch(
        self, index: NDArray[np.intp], groups: NDArray[np.int64], regimes: NDArray[np.int64]
    ) -> Array:
        """The factors [n, H] by which distances from the median are multiplied, in `regimes` [n]."""
        self.shared.grow(int(groups.max(initial=0)) + 1)
        if compiled.core is not None:
            stretch = np.empty((len(index), len(self._horizons)))
            own, shared = self.columns["log_stretch"], self.shared["log_stretch"]
            compiled.core.fill_stretch(
                index, groups, regimes, own, shared, stretch, _HALF_TRUST_LOG, _MAX_LOG_STRETCH
            )
            return stretch
        both = self.columns["log_stretch"][index] + self.shared["log_stretch"][groups, regimes]
        square = both * both
        return exact.exp(_clamp_stretch(both * (square / (square + _HALF_TRUST_LOG * _HALF_TRUST_LOG))))

    def state(self) -> dict[str, Any]:
        return {"own": self.columns.state(), "shared": self.shared.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.columns.restore(state["own"])
        self.shared.restore(state["shared"])


def _clamp_stretch(log_stretch: Array) -> Array:
    return np.minimum(np.maximum(log_stretch, -_MAX_LOG_STRETCH), _MAX_LOG_STRETCH)
