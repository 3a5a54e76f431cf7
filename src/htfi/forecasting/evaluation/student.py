"""Student's t and the incomplete beta function for arrays, to about 12 digits."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_TINY = 1e-300
_TERMS = 400
_EXACT = 1e-14
_HALVINGS = 60


def incomplete_beta(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised I_x(a, b) of a, b > 0 and x in [0, 1]; NaN where one of them is not so.

    By Lentz's continued fraction, on the side of the mean where it converges.
    """
    each = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (a, b, x)))
    first, second, at = (part.ravel().copy() for part in each)
    good = (first > 0.0) & (second > 0.0) & (at >= 0.0) & (at <= 1.0)
    first, second = np.where(good, first, 1.0), np.where(good, second, 1.0)
    at = np.where(good, at, 0.5)
    swapped = at > (first + 1.0) / (first + second + 2.0)
    p, q = np.where(swapped, second, first), np.where(swapped, first, second)
    z = np.where(swapped, 1.0 - at, at)
    inside = (z > 0.0) & (z < 1.0)
    safe = np.where(inside, z, 0.5)
    log_front = _log_gamma(p + q) - _log_gamma(p) - _log_gamma(q) + p * np.log(safe) + q * np.log1p(-safe)
    value = np.where(inside, np.exp(log_front) * _fraction(p, q, safe) / p, np.where(z >= 1.0, 1.0, 0.0))
    value = np.where(swapped, 1.0 - value, value)
    return np.where(good, value, np.nan).reshape(each[0].shape)


def student_quantile(level: float, freedom: ArrayLike) -> Array:
    """The quantile at a level above one half of Student's t, for arrays of degrees of freedom > 0."""
    of = np.asarray(freedom, np.float64)
    low, high = np.zeros(of.shape), np.ones(of.shape)
    for _ in range(_HALVINGS):  # of x = ν/(ν + t²), which falls as t rises
        middle = 0.5 * (low + high)
        above = 0.5 * incomplete_beta(0.5 * of, 0.5, middle) > 1.0 - level
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    x = 0.5 * (low + high)
    return np.sqrt(of * (1.0 - x) / x)


def _fraction(a: Array, b: Array, x: Array) -> Array:
    c, d = np.ones(len(x)), 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d.copy()
    for m in range(1, _TERMS):
        change = np.ones(len(x))
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            change = c * d
            value *= change
        if bool((np.abs(change - 1.0) < _EXACT).all()):
            break
    return value


def _away_from_zero(values: Array) -> Array:
    return np.where(np.abs(values) > _TINY, values, _TINY)


def _log_gamma(values: Array) -> Array:
    return np.array([math.lgamma(value) for value in values.tolist()])
