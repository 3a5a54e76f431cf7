"""Peers that need no library: EWMA with Gaussian or Student tails, and a random walk. `returns` walks them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import EXPERTS
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch
from htfi.forecasting.ports import Expert
from htfi.forecasting.shapes import gaussian_quantiles, scale_shape, student_quantiles
from htfi_eval.eval.walk import PeerForecaster, Places

Array = NDArray[np.float64]

RISKMETRICS_DECAY = 0.94
HISTVOL, EWMA, HAR_FHS, CONSTANT = "random_walk", "ewma_gaussian", "log_range_har", "constant_walk"
_MIN_BARS = 20


class EwmaPeer:
    """var ← 0.94·var + 0.06·r², σ√h, Gaussian (RiskMetrics 1996), or Student's t with `freedom` at every horizon."""

    def __init__(
        self, name: str, num_series: int, config: ForecastConfig, freedom: float | None = None
    ) -> None:
        self.name = name
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = (
            gaussian_quantiles(config.levels)
            if freedom is None
            else student_quantiles(config.levels, freedom)
        )
        self._var, self._num = np.zeros(num_series), np.zeros(num_series)

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:  # noqa: ARG002 (the port's)
        squares = batch.returns * batch.returns
        gain = np.maximum(1.0 / (self._num[places] + 1.0), 1.0 - RISKMETRICS_DECAY)
        self._var[places] += gain * (squares - self._var[places])
        self._num[places] += 1
        sigma = np.maximum(np.sqrt(self._var[places]), SIGMA_FLOOR)
        sigma = np.where(self._num[places] >= _MIN_BARS, sigma, np.nan)
        return scale_shape(sigma[:, None] * self._root_h, self._shape)


class ConstantWalk:
    """A random walk whose Gaussian steps have the volatility of all bars before `until`, and none after."""

    def __init__(self, name: str, num_series: int, config: ForecastConfig, until: int) -> None:
        self.name = name
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = gaussian_quantiles(config.levels)
        self._sum, self._num = np.zeros(num_series), np.zeros(num_series)
        self._until = until

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:
        if t < self._until:
            self._sum[places] += batch.returns * batch.returns
            self._num[places] += 1
        known = self._num[places] >= _MIN_BARS
        sigma = np.where(known, np.sqrt(self._sum[places] / np.maximum(self._num[places], 1.0)), np.nan)
        return scale_shape(np.maximum(sigma, SIGMA_FLOOR)[:, None] * self._root_h, self._shape)


class ExpertPeer:
    """One of our experts that takes no part in the mix, walked beside it."""

    def __init__(self, expert: Expert) -> None:
        self.name = expert.name
        self._expert = expert
        self._num = 0

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:  # noqa: ARG002 (the port's)
        last = int(batch.index.max()) + 1
        if last > self._num:
            self._num = last
            self._expert.grow(last)
        self._expert.update(batch)
        said = self._expert.quantiles(batch.rows).copy()
        self._expert.learn(batch)
        return said


def classical(num_series: int, config: ForecastConfig, first: int) -> Sequence[PeerForecaster]:
    """The peers of every run, with the experts that figures need and the mix lacks; scoring begins at `first`."""
    needed = [name for name in (HISTVOL, HAR_FHS) if name not in config.experts]
    return (
        *(ExpertPeer(EXPERTS[name](config)) for name in needed),
        EwmaPeer(EWMA, num_series, config),
        EwmaPeer("ewma_student5", num_series, config, 5.0),
        ConstantWalk(CONSTANT, num_series, config, first),
    )
