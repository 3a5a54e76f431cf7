"""The loss that the pooled learner is fitted by: CRPS of one shape at two scales, and its slope."""

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import LEVELS
from htfi.forecasting.scores import integration_weights

Array = NDArray[np.float64]

_MIN_CURVATURE = 1e-3
_MIN_STEP = 1e-9  # between neighbouring quantiles


class TwoSidedCrps:
    """CRPS by the default quantile levels, of a shape z [H, Q] at log scales f [n, 2H]: below and above the median,
    for each horizon."""

    def __init__(self, shape: Array) -> None:
        self._levels = np.array(LEVELS)
        self._weights = 2.0 * integration_weights(LEVELS)
        self._shape = shape
        self._upper = self._levels > 0.5

    def mean(self, y: Array, f: Array) -> Array:
        """Mean loss [H] of outcomes [n, H]."""
        away = y[:, :, None] - self._quantiles(f)
        return (np.maximum(self._levels * away, (self._levels - 1.0) * away) @ self._weights).mean(axis=0)

    def gradient(self, y: Array, f: Array) -> Array:
        """Slope of the loss by f [n, 2H], over its mean curvature: less the mean of it is a Newton step."""
        q = self._quantiles(f)
        by_level = self._weights * ((y[:, :, None] < q) - self._levels) * q
        sides = [by_level[:, :, ~self._upper].sum(axis=2), by_level[:, :, self._upper].sum(axis=2)]
        slope = np.stack(sides, axis=2)
        return (slope / (np.exp(f).reshape(slope.shape) * self._curvature())).reshape(f.shape)

    def _quantiles(self, f: Array) -> Array:
        scales = np.exp(f).reshape(len(f), -1, 2)
        return self._shape * np.where(self._upper, scales[:, :, 1:], scales[:, :, :1])  # [n, H, Q]

    def _curvature(self) -> Array:
        """[H, 2]: E[ρ_τ(y − s·z)] has the second derivative z²·density(z) by s at 1, and the density is dτ/dz."""
        density = np.gradient(self._levels) / np.maximum(np.gradient(self._shape, axis=1), _MIN_STEP)
        each = self._weights * self._shape**2 * density
        sides = [each[:, ~self._upper].sum(axis=1), each[:, self._upper].sum(axis=1)]
        return np.maximum(np.stack(sides, axis=1), _MIN_CURVATURE)


def shape_of(y: Array, f: Array) -> Array:
    """Quantiles z [H, Q] of outcomes [n, H] in units of the scale of their side."""
    found: Array = np.quantile(_by_side(y, f), LEVELS, axis=0)
    return np.ascontiguousarray(found.T)


def size_of(y: Array, f: Array) -> Array:
    """Mean |outcome| [H] in units of the scale of its side."""
    return np.maximum(np.abs(_by_side(y, f)).mean(axis=0), 1e-12)


def _by_side(y: Array, f: Array) -> Array:
    scales = np.exp(f).reshape(len(f), -1, 2)
    return y / np.where(y > 0.0, scales[:, :, 1], scales[:, :, 0])
