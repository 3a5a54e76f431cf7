"""Quantiles of log returns from drawn paths and the laws at their ends. Pure; trajectory experts call it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.foundation.units import Units

Array = NDArray[np.float64]


def path_quantiles(
    z: Array,
    laws: Array,
    centres: Array,
    components: Array,
    units: Units,
    horizons: Sequence[int],
    levels: Sequence[float],
) -> Array:
    """Quantiles [n, K, Q] of the sum of the next h log returns, for K rising horizons.

    Shapes: z [n, N, ≥ H − 1], drawn returns in units of the volatility before each; laws [n, N, K, C], chances of the
    bins of each path's bar h given the bars before it; centres [C]; components [n, J] of the volatility now.
    Every path ends in the law of its last bar and not in one number (Rao and Blackwell): N paths give N·C atoms, so
    tens of them suffice, and at one bar nothing is drawn at all.
    """
    num, num_paths = laws.shape[:2]
    num_atoms = num_paths * len(centres)
    state = np.broadcast_to(components[:, None], (num, num_paths, components.shape[1]))
    total = np.zeros((num, num_paths))
    found = np.empty((num, len(horizons), len(levels)))
    for step in range(horizons[-1]):
        sigma = units.sigma(state)
        if step + 1 in horizons:
            place = horizons.index(step + 1)
            atoms = total[..., None] + sigma[..., None] * centres  # [n, N, C]
            found[:, place] = weighted_quantiles(
                atoms.reshape(num, num_atoms), laws[:, :, place].reshape(num, num_atoms) / num_paths, levels
            )
        if step + 1 < horizons[-1]:
            returns = z[:, :, step] * sigma
            total = total + returns
            state = units.along(state, returns)
    return found


def weighted_quantiles(values: Array, weights: Array, levels: Sequence[float]) -> Array:
    """Quantiles [n, Q] of atoms [n, M] with weights [n, M] that sum to 1: linear between the middles of their steps."""
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    share = np.take_along_axis(weights, order, axis=1)
    middle = np.cumsum(share, axis=1) - 0.5 * share
    found = np.empty((len(values), len(levels)))
    for row in range(len(values)):
        found[row] = np.interp(levels, middle[row], ranked[row])
    return np.maximum.accumulate(found, axis=1)  # rounding alone could cross them
