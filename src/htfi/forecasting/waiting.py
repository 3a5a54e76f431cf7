"""Forecasts that wait for their outcomes, and the usual width of the bands among them."""

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting import compiled
from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import USUAL_WINDOW_BARS, ForecastConfig
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]


class WaitingForecasts:
    """Rings of what was forecast over each horizon [N, h, 1 + K, Q], fused first, and of regimes; single precision
    suffices to score it."""

    def __init__(self, config: ForecastConfig, num_experts: int) -> None:
        self._horizons, self._num_levels = np.array(config.horizons), len(config.levels)
        self._num_forecasts = 1 + num_experts
        self._low, self._high = config.levels.index(0.05), config.levels.index(0.95)
        self._names = [str(horizon) for horizon in config.horizons]
        self.columns = SeriesColumns()
        self.columns.declare("regime", np.zeros(config.horizons[-1]), np.int64)
        for horizon, name in zip(config.horizons, self._names, strict=True):
            empty = np.full((horizon, self._num_forecasts, self._num_levels), np.nan)
            self.columns.declare(name, empty, np.float32)

    def _rings(self) -> list[NDArray[np.float32]]:
        return [self.columns[name] for name in self._names]

    def matured(self, batch: BarBatch) -> tuple[Array, NDArray[np.bool_], Array, NDArray[np.int64]]:
        """What was forecast for these bars [n, 1 + K, H, Q], fused first; where it has an outcome [n, 1 + K, H]; the
        outcome, zero where there is none, and the regime when it was forecast [n, H]."""
        shape = (len(batch.index), self._num_forecasts, len(self._horizons))
        waited = np.empty((*shape, self._num_levels))
        if compiled.core is not None:
            known, outcome = np.empty(shape, np.bool_), np.empty(batch.outcomes.shape)
            regimes = np.empty(batch.outcomes.shape, np.int64)
            compiled.core.collect_matured(
                self._rings(), self.columns["regime"], batch.index, batch.age, self._horizons, batch.outcomes, waited,
                known.view(np.uint8), outcome, regimes,
            )  # fmt: skip
            return waited, known, outcome, regimes
        for j, (horizon, ring) in enumerate(zip(self._horizons.tolist(), self._rings(), strict=True)):
            waited[:, :, j] = ring[batch.index, batch.age % horizon]
        known = np.isfinite(waited[..., 0]) & np.isfinite(batch.outcomes)[:, None]
        outcome = np.where(np.isfinite(batch.outcomes), batch.outcomes, 0.0)
        slots = (batch.age[:, None] - self._horizons) % self._horizons[-1]
        return waited, known, outcome, self.columns["regime"][batch.index[:, None], slots]

    def queue(self, batch: BarBatch, newest: SeriesColumns) -> None:
        """Let the newest forecasts of these bars' series wait for their outcomes: columns "fused", "experts" and
        "regime". "usual_sigma", of one bar, and "num" take in the width of the band."""
        if compiled.core is not None:
            names = ("fused", "experts", "regime", "usual_sigma", "num")
            compiled.core.queue_newest(
                self._rings(), self.columns["regime"], batch.index, batch.age, self._horizons,
                *(newest[name] for name in names), self._low, self._high, BAND_SIGMAS, float(USUAL_WINDOW_BARS),
            )  # fmt: skip
            return
        fused = newest["fused"][batch.rows]
        stored = np.concatenate([fused[:, None], newest["experts"][batch.rows]], axis=1)
        for j, (horizon, ring) in enumerate(zip(self._horizons.tolist(), self._rings(), strict=True)):
            ring[batch.index, batch.age % horizon] = stored[:, :, j]
        slots = batch.age % self._horizons[-1]
        self.columns["regime"][batch.index, slots] = newest["regime"][batch.index]
        self._follow_width(batch, fused, newest)

    def _follow_width(self, batch: BarBatch, fused: Array, newest: SeriesColumns) -> None:
        width = fused[:, 0, self._high] - fused[:, 0, self._low]
        num = newest["num"][batch.rows] + np.isfinite(width)
        usual = newest["usual_sigma"][batch.rows]
        gain = np.maximum(1.0 / np.maximum(num, 1), 1.0 / USUAL_WINDOW_BARS)
        away = np.where(np.isfinite(width), width / BAND_SIGMAS - usual, 0.0)
        newest["usual_sigma"][batch.rows] = usual + gain * away
        newest["num"][batch.rows] = num
