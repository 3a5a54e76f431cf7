"""The shared noise of D2: one Gumbel number for each (seed, stream, position, token). Samplers and drafts read it.

It is a counter, not a state: any machine works out any number alone, with the same bits. A key is hashed from seed,
stream and position; token i then takes output i of SplitMix64 started at the key (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", 2014), and -log(-log(u)) of it.
"""

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.ports import Ids

Keys = NDArray[np.uint64]
Doubles = NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_LANES = (np.uint64(0xD1B54A32D192ED03), np.uint64(0xABC98388FB8FAC03))  # odd; keep stream and position apart
_MASK64 = 2**64 - 1


def keys(seed: int, streams: Ids, positions: Ids) -> Keys:
    """One key a place: streams and positions [N], counted from 0; seeds are equal modulo 2^64."""
    key = np.full(np.shape(streams), seed & _MASK64, np.uint64)
    for lane, places in zip(_LANES, (streams, positions), strict=True):
        key = _mix(key + _STEP) ^ (np.asarray(places).astype(np.uint64) * lane)
    return _mix(key + _STEP)


def uniforms(row_keys: Keys, token_ids: Ids) -> Doubles:
    """Numbers strictly between 0 and 1, [N, C], for keys [N] and token ids [C] or [N, C]."""
    counters = (np.asarray(token_ids).astype(np.uint64) + np.uint64(1)) * _STEP
    bits = _mix(row_keys[:, None] + counters)
    bits >>= np.uint64(12)
    numbers = bits.astype(np.float64)  # 52 bits, so the half below and the product are exact
    numbers += 0.5
    numbers *= 2.0**-52
    return numbers


def gumbel(row_keys: Keys, token_ids: Ids) -> Doubles:
    """Standard Gumbel noise [N, C] for keys [N] and token ids [C] or [N, C], the same bits on every machine."""
    return -exact_log(-exact_log(uniforms(row_keys, token_ids)))


def rough_gumbel(row_keys: Keys, token_ids: Ids) -> Doubles:
    """The same within 1e-9, by the machine's own logarithm: fast, but its last bits are the machine's."""
    noise = uniforms(row_keys, token_ids)
    np.log(noise, out=noise)
    np.negative(noise, out=noise)
    np.log(noise, out=noise)
    return np.negative(noise, out=noise)


def _mix(x: Keys) -> Keys:
    x = x ^ (x >> np.uint64(30))
    x *= _FIRST
    x ^= x >> np.uint64(27)
    x *= _SECOND
    x ^= x >> np.uint64(31)
    return x


_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts: the first has 32 trailing zero bits
_LN2_LOW = 1.90821492927058770002e-10
_SQRT_HALF = 0.7071067811865476
_SERIES = [1.0 / k for k in range(21, 0, -2)]  # atanh(f)/f = Σ f^2i/(2i+1), enough for |f| ≤ 0.172


def exact_log(x: Doubles) -> Doubles:
    """Natural logarithm of positive numbers, by operations that IEEE 754 rounds exactly."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < _SQRT_HALF
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    power = (exponent - small).astype(np.float64)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    series = np.full_like(square, _SERIES[0])
    for term in _SERIES[1:]:
        series *= square
        series += term
    return power * _LN2_HIGH + (2.0 * f * series + power * _LN2_LOW)
