"""Whole series of returns scaled by their EWMA volatility, binned, and back; `ScaledReturns` takes them one by one."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htfi.decoding.prices import DECAY, MIN_SIGMA, Doubles, PriceBins, _finite
from htfi.domain.errors import InvalidInput, ShapeMismatch


def from_bins(bins: PriceBins, places: ArrayLike) -> Doubles:
    """The value that represents each bin, in the shape given."""
    return bins.centres[np.asarray(places)]


def bin_widths(bins: PriceBins, places: ArrayLike) -> Doubles:
    """Width of each bin in sigmas; infinite for the outermost two."""
    reach = np.concatenate([[-math.inf], bins.edges, [math.inf]])
    return np.diff(reach)[np.asarray(places)]


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


def to_path_bins(returns: ArrayLike, sigma: ArrayLike, bins: PriceBins) -> NDArray[np.int64]:
    """Bins [..., T] of a path, each scaled by the volatility that a reader of the bins before it has."""
    values, before = _series(returns, sigma)
    path = np.empty(values.shape, np.int64)
    for t in range(values.shape[-1]):
        path[..., t] = bins.to_bins(values[..., t] / before)
        before = _next_sigma(before, from_bins(bins, path[..., t]) * before, DECAY)
    return path


def _next_sigma(sigma: Doubles, returns: Doubles, decay: float) -> Doubles:
    return np.maximum(np.sqrt(decay * sigma * sigma + (1.0 - decay) * returns * returns), MIN_SIGMA)


def _series(values: ArrayLike, sigma: ArrayLike) -> tuple[Doubles, Doubles]:
    checked, before = _finite(values, "returns"), _finite(sigma, "volatility")
    if not checked.ndim or checked.shape[:-1] != before.shape:
        raise ShapeMismatch(f"returns {checked.shape} need one volatility each series, got {before.shape}")
    if np.any(before < 0.0):
        raise InvalidInput("volatility: a negative number")
    return checked, np.maximum(before, MIN_SIGMA)
