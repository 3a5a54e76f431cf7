"""Bars in, fused predictive distributions out, for every series at once; pipeline drives it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Forecast
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.fusion import mix
from htfi.forecasting.panel import Panel, as_rows, grown
from htfi.forecasting.ports import Expert
from htfi.forecasting.scores import ScoreRow, crps

Array = NDArray[np.float64]


@dataclass(slots=True)
class ForecastBatch:
    """The newest forecast of n series. `item(i)` gives the record's form; rows not ready hold NaN.

    Shapes: ready [n]; quantiles [n, H, Q]; experts [n, K, H, Q]; weights [n, K, H]; calibration [n, H];
    sigma [n, K] (next bar, per expert); usual_sigma [n] (root mean square of the last usual_window_bars).
    """

    names: tuple[str, ...]  # the experts, sorted
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    ready: NDArray[np.bool_]
    quantiles: Array
    experts: Array
    weights: Array
    calibration: Array
    sigma: Array
    usual_sigma: Array
    _lists: tuple[list[Any], ...] | None = field(default=None, repr=False)

    def item(self, i: int) -> Forecast:
        """The forecast of series i as recorded. Raises: InvalidInput where it is not ready."""
        if not self.ready[i]:
            raise InvalidInput("this series has too short a history for a forecast: ask `ready` first")
        if self._lists is None:
            self._lists = (
                self.quantiles.tolist(),
                self.experts.tolist(),
                self.weights.tolist(),
                self.calibration.tolist(),
            )
        quantiles, experts, weights, calibration = self._lists
        return Forecast(
            horizons=self.horizons,
            levels=self.levels,
            quantiles=quantiles[i],
            experts=dict(zip(self.names, experts[i], strict=True)),
            weights=dict(zip(self.names, weights[i], strict=True)),
            calibration=calibration[i],
        )


class Forecaster:
    """Experts, their weights and the forecasts that wait for their outcome."""

    def __init__(self, config: ForecastConfig, experts: Sequence[Expert]) -> None:
        self._config = config
        self._experts = sorted(experts, key=lambda expert: expert.name)
        self._names = tuple(expert.name for expert in self._experts)
        self._panel = Panel(config.session_gap_bars)
        self._levels = np.array(config.levels)
        self._median = config.levels.index(0.5)
        k, q = len(self._names), len(config.levels)
        self._pending = [np.full((0, h, k + 1, q), np.nan, np.float32) for h in config.horizons]
        self._origin = [np.zeros((0, h)) for h in config.horizons]
        self._usual_var = np.zeros(0)
        self._crps = np.zeros((k + 1, len(config.horizons)))
        self._covered = np.zeros((k + 1, len(config.horizons)))
        self._num = np.zeros(len(config.horizons), np.int64)

    @property
    def models(self) -> dict[str, str]:
        """Name and version of every part that shapes a forecast, for the record."""
        return {expert.name: expert.version for expert in self._experts} | {"fusion": "1"}

    def observe(self, bars: Sequence[Bar]) -> None:
        """Take in bars closing at one instant, each series at most once, and forecast anew for each."""
        if not bars:
            return
        batch = self._panel.enter(bars)
        n = len(self._panel)
        for expert in self._experts:
            expert.grow(n)
        self._pending = [grown(p, n, np.nan) for p in self._pending]
        self._origin = [grown(o, n) for o in self._origin]
        self._usual_var = grown(self._usual_var, n)
        rows = batch.rows
        count = self._panel.num_bars[rows]
        index = np.arange(n)[rows]
        path = self._panel.path[rows]
        for expert in self._experts:
            expert.update(batch)
        gain = np.maximum(1.0 / count, 1.0 / self._config.usual_window_bars)
        var = self._usual_var[rows]
        self._usual_var[rows] = var + gain * (batch.returns * batch.returns - var)
        quantiles, weights, calibration = self._forecast(rows)
        fused = mix(quantiles, weights, calibration, self._median)
        for j, h in enumerate(self._config.horizons):
            slot = count % h
            self._score(j, self._pending[j][index, slot], path - self._origin[j][index, slot])
            self._pending[j][index, slot, :-1] = quantiles[:, :, j]
            self._pending[j][index, slot, -1] = fused[:, j]
            self._origin[j][index, slot] = path

    def _forecast(self, rows: Any) -> tuple[Array, Array, Array]:
        quantiles = np.stack([expert.quantiles(rows) for expert in self._experts], axis=1)
        k, h = quantiles.shape[1:3]
        weights = np.full((len(quantiles), k, h), 1.0 / k)
        return quantiles, weights, np.ones((len(quantiles), h))

    def _score(self, j: int, quantiles: NDArray[np.float32], outcome: Array) -> None:
        use = np.isfinite(quantiles[:, -1, 0])
        if not use.any():
            return
        q, y = quantiles[use].astype(np.float64), outcome[use, None]
        self._crps[:, j] += crps(q, np.broadcast_to(y, q.shape[:2]), self._levels).sum(axis=0)
        self._covered[:, j] += ((q[..., 1] <= y) & (y <= q[..., -2])).sum(axis=0)
        self._num[j] += len(q)

    def forecast(self, series: Sequence[str]) -> ForecastBatch:
        """The newest forecast of each series ('SYMBOL/interval'); reading changes nothing."""
        found = self._panel.rows_of(series)
        if (found < 0).any():
            raise InvalidInput(f"series '{series[int(np.argmin(found))]}' has no bar yet: observe one first")
        rows = as_rows(found)
        quantiles, weights, calibration = self._forecast(rows)
        fused = mix(quantiles, weights, calibration, self._median)
        return ForecastBatch(
            names=self._names,
            horizons=self._config.horizons,
            levels=self._config.levels,
            ready=np.isfinite(fused[:, 0, 0]),
            quantiles=fused,
            experts=quantiles,
            weights=weights,
            calibration=calibration,
            sigma=np.stack([expert.sigma(rows) for expert in self._experts], axis=1),
            usual_sigma=np.sqrt(self._usual_var[rows]),
        )

    def scores(self) -> list[ScoreRow]:
        """Mean scores so far, the fused forecast first."""
        order = [len(self._names), *range(len(self._names))]
        names = (*self._names, "fused")
        return [
            ScoreRow(
                names[k],
                h,
                int(self._num[j]),
                float(self._crps[k, j] / self._num[j]),
                float(self._covered[k, j] / self._num[j]),
            )
            for k in order
            for j, h in enumerate(self._config.horizons)
            if self._num[j]
        ]

    def state(self) -> dict[str, Any]:
        return {
            "panel": self._panel.state(),
            "experts": {expert.name: expert.state() for expert in self._experts},
            "pending": [p.copy() for p in self._pending],
            "origin": [o.copy() for o in self._origin],
            "usual_var": self._usual_var.copy(),
            "crps": self._crps.copy(),
            "covered": self._covered.copy(),
            "num": self._num.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._panel.restore(state["panel"])
        for expert in self._experts:
            expert.restore(state["experts"][expert.name])
        self._pending = [np.array(p, np.float32) for p in state["pending"]]
        self._origin = [np.array(o, np.float64) for o in state["origin"]]
        self._usual_var = np.array(state["usual_var"], np.float64)
        self._crps = np.array(state["crps"], np.float64)
        self._covered = np.array(state["covered"], np.float64)
        self._num = np.array(state["num"], np.int64)
