"""Shapes of predictive distributions: quantiles at unit deviation, and their spreading by a scale."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def gaussian_quantiles(levels: Sequence[float]) -> Array:
    """Standard normal quantiles [Q]."""
    return np.array([NormalDist().inv_cdf(level) for level in levels])


def spread(scale: Array, shape: Array) -> Array:
    """Quantiles [n, H, Q] of a shape [Q] or [n, H, Q] at scale [n, H]; monotone because the scale is ≥ 0."""
    return scale[:, :, None] * shape
