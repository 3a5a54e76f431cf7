"""One distribution from several, by weighted sums of quantiles; Forecaster and auditors call it."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def mix(quantiles: Array, weights: Array, calibration: Array, median: int) -> Array:
    """Σ w·q over experts, stretched about the median.

    Shapes: quantiles [..., K, H, Q], weights [..., K, H], calibration [..., H] → [..., H, Q].

    Experts must stand in the order of their names: a sum of floats has bits that depend on its order.
    Monotone to the last bit: each step is rounded but never decreasing in the quantile it is given.
    """
    total = np.zeros_like(quantiles[..., 0, :, :])
    for k in range(quantiles.shape[-3]):
        total += weights[..., k, :, None] * quantiles[..., k, :, :]
    middle = total[..., median : median + 1]
    return middle + calibration[..., None] * (total - middle)


def combine(
    experts: Mapping[str, Sequence[Sequence[float]]],
    weights: Mapping[str, Sequence[float]],
    calibration: Sequence[float],
    levels: Sequence[float],
) -> list[list[float]]:
    """Recompute recorded quantiles [H, Q] from a record's experts, weights and calibration, bit for bit."""
    names = sorted(experts)
    quantiles = np.array([experts[name] for name in names], np.float64)
    shares = np.array([weights[name] for name in names], np.float64)
    return mix(quantiles, shares, np.array(calibration, np.float64), list(levels).index(0.5)).tolist()
