"""Student's t and the incomplete beta function for arrays, to about 12 digits."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_TINY = 1e-300
_TERMS = 400
_EXACT = 1e-14


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
    """The quantile at a level above one half of Student's t, for arrays of degrees of freedom of 1 or more.

    Within .1% of itself at 95 and 97.5%. Source: Hill (1970), Algorithm 396; exact for 1 and 2.
    """
    of = np.asarray(freedom, np.float64)
    tails = 2.0 * (1.0 - level)
    n = np.maximum(of, 2.5)
    a = 1.0 / (n - 0.5)
    b = 48.0 / (a * a)
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * np.sqrt(a * math.pi / 2.0) * n
    y = (d * tails) ** (2.0 / n)
    near = -NormalDist().inv_cdf(0.5 * tails)
    square = near * near
    c = np.where(n < 5.0, c + 0.3 * (n - 4.5) * (near + 0.6), c)
    c = (((0.05 * d * near - 5.0) * near - 7.0) * near - 2.0) * near + b + c
    wide = near * (((((0.4 * square + 6.3) * square + 36.0) * square + 94.5) / c - square - 3.0) / b + 1.0)
    wide = np.expm1(a * wide * wide)
    far = (
        (1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0
    ) * (n + 1.0) / (n + 2.0) + 1.0 / y
    hill = np.sqrt(n * np.where(y > 0.05 + a, wide, far))
    one = 1.0 / math.tan(0.5 * math.pi * tails)
    two = math.sqrt(2.0 / (tails * (2.0 - tails)) - 2.0)
    return np.where(of <= 1.0, one, np.where(of <= 2.0, one + (of - 1.0) * (two - one), hill))


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
