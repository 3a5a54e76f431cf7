"""Adaptive conformal calibration: a stretch that makes the 90% band hold 90%. Forecaster drives it."""

import numpy as np
from numpy.typing import NDArray

from htfi.domain import exact
from htfi.forecasting.columns import Columns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import Rows

Array = NDArray[np.float64]

_MISS_RATE = 0.1
_WIDEST_LOG = 0.7  # a stretch between one half and two: beyond it the experts, not the width, are at fault


class Calibration:
    """A stretch per series and horizon: log s ← log s + γ_h·(missed − 10%), as forecasts mature.

    Gibbs and Candès (2021), on the log of the width. While the stretch stays inside its bounds the mean
    miss rate tends to 10% whatever the data, as 1/(γ_h·num). γ_h = γ/h, because h overlapping outcomes
    tell little more than one.
    """

    def __init__(self, config: ForecastConfig) -> None:
        self._low, self._high = config.levels.index(0.05), config.levels.index(0.95)
        self._gains = config.calibration_gain / np.array(config.horizons, np.float64)
        self.columns = Columns()
        self.columns.declare("log_stretch", np.zeros(len(config.horizons)))

    def learn(self, rows: Rows, fused: Array, outcome: Array, matured: NDArray[np.bool_]) -> None:
        """Take in outcomes [n, H] of the stretched forecasts [n, H, Q], those that `matured` [n, H]."""
        missed = (outcome < fused[..., self._low]) | (outcome > fused[..., self._high])
        step = np.where(matured, self._gains * (missed - _MISS_RATE), 0.0)
        moved = self.columns["log_stretch"][rows] + step
        self.columns["log_stretch"][rows] = np.minimum(np.maximum(moved, -_WIDEST_LOG), _WIDEST_LOG)

    def stretch(self, rows: Rows) -> Array:
        """The factors [n, H] by which distances from the median are multiplied."""
        return exact.exp(self.columns["log_stretch"][rows])
