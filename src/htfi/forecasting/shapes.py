"""Shapes of predictive distributions: quantiles at unit scale, from theory or from past residuals."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import OWN_HALF_TRUST, ForecastConfig
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.pooled_shapes import PooledShape

Array = NDArray[np.float64]

_RESIDUAL_LIMIT = 10.0  # scales; one bad print may be a tail, not the whole distribution


def gaussian_quantiles(levels: Sequence[float]) -> Array:
    """Standard normal quantiles [Q], to 12 digits so that every machine's libm gives the same."""
    return np.array([round(NormalDist().inv_cdf(level), 12) for level in levels])


def student_quantiles(levels: Sequence[float], freedom: float) -> Array:
    """Quantiles [Q] of a Student-t scaled to unit variance, to 9 digits. `freedom` > 2.

    With x = √ν·tan θ the density is proportional to cos^(ν−1) θ on (−π/2, π/2), which Simpson's rule sums.
    """
    grid = np.linspace(0.0, math.pi / 2, 40_001)
    density = np.cos(grid) ** (freedom - 1.0)
    cumulative = np.cumsum((density[:-2:2] + 4.0 * density[1::2] + density[2::2]) / 3.0)
    cumulative = np.concatenate([[0.0], cumulative]) * (0.5 / cumulative[-1])
    away = np.array(levels) - 0.5
    angles = np.interp(np.abs(away), cumulative, grid[::2])
    quantiles = np.sign(away) * math.sqrt(freedom - 2.0) * np.tan(angles)
    return np.array([round(float(quantile), 9) for quantile in quantiles])


def scale_shape(scale: Array, shape: Array) -> Array:
    """Quantiles [n, H, Q] of a shape [..., Q] at scale [n, H]; monotone because no scale is negative."""
    return scale[:, :, None] * shape


class ResidualShapes:
    """The last W returns of every series and horizon in units of the scale forecast for them.

    Drawn to the shape that all series of the interval have had at that horizon (`PooledShape`).
    """

    def __init__(self, config: ForecastConfig, skew_samples: float) -> None:
        """`skew_samples`: independent residuals at which skew is trusted by half; inf mirrors the shape."""
        self._horizons = np.array(config.horizons)
        self._levels = np.array(config.levels)
        self._mirrored = np.concatenate([self._levels, 1.0 - self._levels])
        self._median = config.levels.index(0.5)
        self._half_trust = OWN_HALF_TRUST * self._horizons
        self._skew_samples = skew_samples * self._horizons
        self._width = config.residual_window_bars
        longest, num_horizons = config.horizons[-1], len(config.horizons)
        self._columns = SeriesColumns()
        self._pooled = PooledShape(config)
        self._columns.declare("halves", np.full((num_horizons, longest, 2), np.nan))
        self._columns.declare("window", np.full((num_horizons, self._width), np.nan), np.float32)
        self._columns.declare("num", np.zeros(num_horizons), np.int64)
        gaussian = gaussian_quantiles(config.levels)
        self._columns.declare("shape", np.broadcast_to(gaussian, (num_horizons, len(self._levels))))

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)
        self._pooled.grow(num_series)

    def learn(self, bars: BarBatch, halves: Array) -> None:
        """Keep the residuals that matured with these bars, then the scales of falls and rises [n, H, 2] forecast."""
        if compiled.core is not None:
            columns = self._columns
            compiled.core.learn_residuals(
                bars.index, bars.age, bars.outcomes, halves, self._horizons, columns["halves"], columns["window"],
                columns["num"], _RESIDUAL_LIMIT,
            )  # fmt: skip
        else:
            self._learn_residuals(bars, halves)
        self._pooled.learn(bars, halves)
        due = bars.index[bars.due]
        if len(due):
            self._columns["shape"][due] = self._fit(due, bars.group[bars.due])

    def _learn_residuals(self, bars: BarBatch, halves: Array) -> None:
        columns, at, across = self._columns, bars.index[:, None], np.arange(len(self._horizons))
        kept, num = columns["halves"], columns["num"][bars.rows]
        longest = kept.shape[2]
        slot = (bars.age[:, None] - self._horizons) % longest
        is_rise = (bars.outcomes > 0.0).astype(np.int64)
        residual = bars.outcomes / kept[at, across, slot, is_rise]  # [n, H]
        known = np.isfinite(residual)
        residual = np.minimum(np.maximum(residual, -_RESIDUAL_LIMIT), _RESIDUAL_LIMIT)
        window, place = columns["window"], num % self._width
        window[at, across, place] = np.where(known, residual, window[at, across, place])
        kept[bars.index, :, bars.age % longest] = halves
        columns["num"][bars.rows] = num + known

    def shape(self, rows: Rows) -> Array:
        """Quantiles [n, H, Q] at unit scale, as last fitted."""
        return self._columns["shape"][rows]

    def _fit(self, rows: NDArray[np.intp], groups: NDArray[np.int64]) -> Array:
        """Empirical quantiles [n, H, Q], drawn to those of all series while residuals are few.

        Overlapping residuals of horizon h count as one in h: a window of 500 holds 23 of 22 bars, and no 1% quantile.
        A drift read off one window would cost more CRPS than it brings, so its median is taken out; that of all series
        is kept as far as it is trusted.
        """
        ranked = np.sort(self._columns["window"][rows], axis=2)  # unknown ones are NaN and come last
        size, pooled = self._pooled.of(rows, groups)
        if compiled.core is not None:
            shape = np.empty(pooled.shape)
            compiled.core.fit_residuals(
                ranked, self._columns["num"][rows], self._mirrored, self._half_trust, self._skew_samples, size, pooled,
                self._median, np.empty(len(self._mirrored)), shape,
            )  # fmt: skip
            return shape
        num = np.minimum(self._columns["num"][rows], self._width)[:, :, None]
        both = _empirical_quantiles(ranked, num, self._mirrored)
        upper, lower = both[:, :, : len(self._levels)], both[:, :, len(self._levels) :]
        even = 0.5 * (upper + lower)
        skew_trust = num / (num + self._skew_samples[:, None])
        empirical = 0.5 * (upper - lower) + skew_trust * (even - even[:, :, self._median, None])
        trust = num / (num + self._half_trust[:, None])
        shape = trust * empirical + (1.0 - trust) * (size[:, :, None] * pooled)
        return np.maximum.accumulate(shape, axis=2)  # rounding alone could cross them

    def state(self) -> dict[str, Any]:
        return {"own": self._columns.state(), "pooled": self._pooled.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state["own"])
        self._pooled.restore(state["pooled"])


def _empirical_quantiles(ranked: NDArray[np.float32], num: NDArray[np.int64], levels: Array) -> Array:
    """Empirical quantiles [n, H, Q] of `num` ranked values, level (i+½)/num on value i; 0 for none."""
    last = np.maximum(num - 1, 0)
    place = np.minimum(np.maximum(num * levels - 0.5, 0.0), last)
    low = place.astype(np.int64)
    starts = (np.arange(num.size) * ranked.shape[2]).reshape(num.shape)
    values = ranked.reshape(-1)
    below = values[starts + low].astype(np.float64)
    above = values[starts + np.minimum(low + 1, last)]
    return np.where(num > 0, below + (place - low) * (above - below), 0.0)
