"""The shared noise (D2): one Gumbel number for each (seed, stream, position, token). Sampling and drafts read it.

It is a counter, not a state: any machine computes any number alone, with the same bits. A key is hashed from seed,
stream and position; token i takes output i of SplitMix64 started at the key (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", 2014), and -log(-log(u)) of it.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.ports import Ids
from htfi.domain import portable_math as exact

Keys = NDArray[np.uint64]
Doubles = NDArray[np.float64]

_STEP = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_FIRST64, _SECOND64 = np.uint64(_FIRST), np.uint64(_SECOND)
_SHIFT_30, _SHIFT_27, _SHIFT_31 = np.uint64(30), np.uint64(27), np.uint64(31)
_LANES = (0xD1B54A32D192ED03, 0xABC98388FB8FAC03)  # odd; they separate stream and position
_MASK64 = 2**64 - 1
_SLACK = 1e-12  # more than the logarithm's error, so that the ends of a bin bound all of it
_BITS = 52
_TABLE_BITS = 6  # of the mantissa in the table of bounds: noise above 1 is known within 0.02
_TABLE_SHIFT = 52 - _TABLE_BITS
_FIRST_BIN = 1023 << _TABLE_BITS  # of the float 1.0


def noise_key(seed: int, stream: int, position: int) -> int:
    """The key of one position, counted from 0; seeds are equal modulo 2^64."""
    return _mix_one(((_stream_key(seed, stream) ^ (position * _LANES[1] & _MASK64)) + _STEP) & _MASK64)


@lru_cache(maxsize=1024)
def _stream_key(seed: int, stream: int) -> int:
    """The part of a key that all positions of a stream share."""
    mixed = _mix_one(((seed & _MASK64) + _STEP) & _MASK64) ^ (stream * _LANES[0] & _MASK64)
    return _mix_one((mixed + _STEP) & _MASK64)


def noise_keys(seed: int, streams: Ids, positions: Ids) -> Keys:
    """`noise_key` of many positions: streams and positions [N]."""
    mixed = np.full(streams.shape, seed & _MASK64, np.uint64)
    for lane, places in zip(_LANES, (streams, positions), strict=True):
        mixed = _mix(mixed + np.uint64(_STEP)) ^ (places.astype(np.uint64) * np.uint64(lane))
    return _mix(mixed + np.uint64(_STEP))


def token_counters(token_ids: Ids) -> Keys:
    """The offset of each token from a key; compute it once for tokens that are sampled often."""
    return (np.asarray(token_ids).astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP)


def noise_hashes(row_keys: Keys, token_counters: Keys) -> Keys:
    """52 fair bits for each key [N] and counter [C]: [N, C]. The smaller the hash, the larger its noise."""
    bits = _mix(row_keys[:, None] + token_counters)
    bits >>= np.uint64(64 - _BITS)
    return bits


def gumbel_from_hashes(bits: Keys) -> Doubles:
    """Standard Gumbel noise of hashes: -log(-log(u)) with u = 1 - (bits + 1/2) / 2^52, exact and never 0 or 1."""
    return -exact.log(-exact.log(1.0 - (bits.astype(np.float64) + 0.5) * 2.0**-_BITS))


def gumbel_at(place_key: int, token: int) -> float:
    """The noise of one token, accurate enough for comparisons: the last bits depend on the machine."""
    bits = _mix_one((place_key + (token + 1) * _STEP) & _MASK64) >> (64 - _BITS)
    return -math.log(-math.log(1.0 - (bits + 0.5) * 2.0**-_BITS))


def gumbel_bounds(bits: Keys) -> tuple[Doubles, Doubles]:
    """Bounds of each hash's noise, from a table: many times cheaper than the noise itself.

    A bin is a hash as a float with a shortened mantissa, so bins are fine where the noise is large.
    """
    places = (bits.astype(np.float64) + 1.0).view(np.int64)
    places >>= _TABLE_SHIFT
    places -= _FIRST_BIN
    return _LOW.take(places), _HIGH.take(places)


def _mix(x: Keys) -> Keys:
    """SplitMix64's output function, in place where x is new."""
    x ^= x >> _SHIFT_30
    x *= _FIRST64
    x ^= x >> _SHIFT_27
    x *= _SECOND64
    x ^= x >> _SHIFT_31
    return x


def _mix_one(x: int) -> int:
    x = (x ^ (x >> 30)) * _FIRST & _MASK64
    x = (x ^ (x >> 27)) * _SECOND & _MASK64
    return x ^ (x >> 31)


def _bound_tables() -> tuple[Doubles, Doubles]:
    edges = (np.arange(_FIRST_BIN, _FIRST_BIN + (_BITS << _TABLE_BITS) + 2) << _TABLE_SHIFT).view(
        np.float64
    ) - 1.0
    firsts = np.minimum(np.ceil(edges), 2.0**_BITS)  # the smallest integer of each bin
    least, most = firsts[:-1], np.maximum(firsts[1:] - 1.0, 0.0)  # a bin without an integer is never used
    low, high = (
        gumbel_from_hashes(bits.astype(np.uint64)) for bits in (most, np.minimum(least, 2.0**_BITS - 1.0))
    )
    return low - _SLACK, high + _SLACK


GUMBEL_BOUNDS = _LOW, _HIGH = _bound_tables()
