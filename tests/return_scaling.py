"""Whole series of returns scaled by their EWMA volatility, and back: what `ScaledReturns` does return by return."""

import numpy as np
from numpy.typing import ArrayLike

from htfi.decoding.prices import DECAY, MIN_SIGMA, Doubles, _finite, _next_sigma, _series
from htfi.domain.errors import ShapeMismatch


def initial_sigma(returns: ArrayLike) -> Doubles:
    """Volatility to begin with: the root mean square of the first few returns [..., T], not less than MIN_SIGMA."""
    values = _finite(returns, "returns")
    if not values.ndim or not values.shape[-1]:
        raise ShapeMismatch("returns: a first volatility needs at least one return")
    return np.maximum(np.sqrt(np.mean(values * values, axis=-1)), MIN_SIGMA)


def scale_returns(returns: ArrayLike, sigma: ArrayLike, decay: float = DECAY) -> tuple[Doubles, Doubles]:
    """Log returns [..., T] in units of the volatility before each, and the volatility after the last [...].

    `sigma` [...] is the volatility before the first return; a series that does not move gives zeros.
    """
    values, before = _series(returns, sigma)
    z = np.empty_like(values)
    for t in range(values.shape[-1]):
        z[..., t] = values[..., t] / before
        before = _next_sigma(before, values[..., t], decay)
    return z, before


def unscale_returns(z: ArrayLike, sigma: ArrayLike, decay: float = DECAY) -> Doubles:
    """Log returns [..., T] from scaled ones: the inverse of `scale` from the same `sigma` [...].

    Binned values are unscaled by the recursion on its own output, as `to_path_bins` assumed.
    """
    values, before = _series(z, sigma)
    returns = np.empty_like(values)
    for t in range(values.shape[-1]):
        returns[..., t] = values[..., t] * before
        before = _next_sigma(before, returns[..., t], decay)
    return returns
