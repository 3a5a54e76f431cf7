"""How good a predictive distribution was. Pure: fusion, the forecaster and the apps all read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Mean score of one name ('fused' or an expert) at one horizon, over every matured forecast."""

    name: str
    horizon: int
    num: int
    crps: float
    coverage90: float


def integration_weights(levels: Sequence[float]) -> Array:
    """Weights [Q], summing to 1: each level answers for the levels nearer to it than to any other."""
    inner = [(a + b) / 2 for a, b in pairwise(levels)]
    edges = np.array([0.0, *inner, 1.0])
    return edges[1:] - edges[:-1]


def pinball(quantiles: Array, outcome: Array, levels: Array) -> Array:
    """ρ_τ(y − q) [..., Q] of quantiles [..., Q] and outcomes [...]."""
    error = outcome[..., None] - quantiles
    return np.maximum(levels * error, (levels - 1.0) * error)


def crps(quantiles: Array, outcome: Array, levels: Array) -> Array:
    """CRPS = 2∫ρ_τ dτ [...] by the midpoint cells of `integration_weights`."""
    losses = pinball(quantiles, outcome, levels)
    return 2.0 * (losses * integration_weights(levels.tolist())).sum(axis=-1)
