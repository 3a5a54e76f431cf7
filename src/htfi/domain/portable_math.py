"""log and exp with the same bits on every machine; forecasts and the shared noise go through here.

numpy's own choose an algorithm by the processor (AVX-512, AVX2, libm) and differ in the last bit, and a
decision must not depend on the machine. These use only operations that IEEE 754 rounds exactly. Where a compiler was
at hand the same operations run in C (`portable_core.c`), thirty times as fast for the short arrays of a forecast.
"""

import math

import numpy as np
from numpy.typing import NDArray

try:
    from htfi.domain import portable_core as core
except ImportError:  # the package was built without a C compiler
    core = None

Array = NDArray[np.float64]

_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts: the first has 32 trailing zero bits
_LN2_LOW = 1.90821492927058770002e-10
_SQRT_HALF = 0.7071067811865476
_ATANH_COEFFICIENTS = [
    1.0 / k for k in range(21, 0, -2)
]  # atanh(f)/f = Σ f^2i/(2i+1), enough for |f| ≤ 0.172
_EXP_COEFFICIENTS = [1.0]
for _k in range(1, 15):
    _EXP_COEFFICIENTS.append(_EXP_COEFFICIENTS[-1] / _k)
_EXP_COEFFICIENTS.reverse()


def log(x: Array) -> Array:
    """Natural logarithm of positive numbers, within 2 units in the last place, or 2e-16 near 1."""
    if core is not None:
        x = np.asarray(x, np.float64, order="C")
        found = np.empty(x.shape)
        core.fill_log(x, found)
        return found
    mantissa, exponent = np.frexp(x)
    small = mantissa < _SQRT_HALF
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    power = np.where(small, exponent - 1, exponent).astype(np.float64)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    series = np.full_like(square, _ATANH_COEFFICIENTS[0])
    for term in _ATANH_COEFFICIENTS[1:]:
        series *= square
        series += term
    return power * _LN2_HIGH + (2.0 * f * series + power * _LN2_LOW)


def exp(x: Array) -> Array:
    """Exponential, x held within ±700, within 2 units in the last place."""
    if core is not None:
        x = np.asarray(x, np.float64, order="C")
        found = np.empty(x.shape)
        core.fill_exp(x, found)
        return found
    x = np.minimum(np.maximum(x, -700.0), 700.0)
    power = np.rint(x * 1.4426950408889634)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.full_like(rest, _EXP_COEFFICIENTS[0])
    for term in _EXP_COEFFICIENTS[1:]:
        series *= rest
        series += term
    return np.ldexp(series, power.astype(np.int32))


def scalar_exp(x: float) -> float:
    """`exp` of one number, with the same bits and a tenth of the time of an array."""
    x = min(max(x, -700.0), 700.0)
    power = round(x * 1.4426950408889634)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = _EXP_COEFFICIENTS[0]
    for term in _EXP_COEFFICIENTS[1:]:
        series = series * rest + term
    return math.ldexp(series, power)
