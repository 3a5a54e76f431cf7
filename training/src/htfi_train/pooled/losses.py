"""The loss that the pooled learner is fitted by: CRPS of one shape at a scale, and its slope."""

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import LEVELS
from htfi.forecasting.scores import integration_weights

Array = NDArray[np.float64]

_MIN_CURVATURE = 1e-3
_MIN_STEP = 1e-9  # between neighbouring quantiles


class ScaleCrps:
    """CRPS by the default quantile levels, of a shape z [H, Q] at log scales f [n, H]."""

    def __init__(self, shape: Array) -> None:
        self._levels = np.array(LEVELS)
        self._weights = 2.0 * integration_weights(LEVELS)
        self._shape = shape
        # E[ρ_τ(y − s·z)] has the second derivative z²·density(z) by s at 1, and the density is dτ/dz.
        density = np.gradient(self._levels) / np.maximum(np.gradient(shape, axis=1), _MIN_STEP)
        self._curvature = np.maximum((shape**2 * density) @ self._weights, _MIN_CURVATURE)  # [H]

    def mean(self, y: Array, f: Array) -> Array:
        """Mean loss [H] of outcomes [n, H]."""
        away = y[:, :, None] - np.exp(f)[:, :, None] * self._shape
        return (np.maximum(self._levels * away, (self._levels - 1.0) * away) @ self._weights).mean(axis=0)

    def gradient(self, y: Array, f: Array) -> Array:
        """Slope of the loss by f [n, H], over its mean curvature: less the mean of it is a Newton step."""
        below = y[:, :, None] < np.exp(f)[:, :, None] * self._shape
        # The scale that the slope has is left out with that of the curvature: loud series weigh as much as quiet ones.
        return ((below - self._levels) * self._shape) @ self._weights / self._curvature


def shape_of(y: Array, f: Array) -> Array:
    """Quantiles z [H, Q] of outcomes [n, H] in units of their scale."""
    found: Array = np.quantile(y / np.exp(f), LEVELS, axis=0)
    return np.ascontiguousarray(found.T)


def size_of(y: Array, f: Array) -> Array:
    """Mean |outcome| [H] in units of its scale."""
    return np.maximum(np.abs(y / np.exp(f)).mean(axis=0), 1e-12)
