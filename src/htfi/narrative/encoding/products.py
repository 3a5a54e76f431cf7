"""Products of the states of tokens with the weights of heads: each text's own, so that its bits are the same whatever
is read beside it.

Compiled (products_core) a batch is multiplied in one call, in one fixed order. numpy multiplies text by text; its bits
are the same where its BLAS takes its kernel for AVX2, and may differ in the last place elsewhere.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding import compiled

Floats = NDArray[np.float32]

_CHUNK = 8  # what the length of a vector is a multiple of
# Numbers of labels whose products the kernel adds in yet another order; they are left to numpy.
_NUM_UNLIKE = 2  # of rows
_BLOCK, _LEAST_UNLIKE = 16, 8  # of tokens: those of which so many lie behind the whole blocks


def padded_weights(weights: Floats) -> Floats:
    """Weights [D, S] as `token_products` is given them: with zeros behind the labels where compiled code needs them."""
    core = compiled.products
    num = weights.shape[1]
    if core is None or not core.LEVEL or num % core.PADDED_TO == 0:
        return weights
    return np.pad(weights, ((0, 0), (0, core.PADDED_TO - num % core.PADDED_TO)))


def token_products(states: Sequence[Floats], weights: Floats, num_labels: int) -> Floats:
    """Of states n × [T, D] of finite numbers, [sum of T, labels]; see `padded_weights`."""
    found: Floats = np.empty((sum(map(len, states)), num_labels), np.float32)
    core = compiled.products
    if (
        core is not None
        and _are_plain(states)
        and num_labels % _BLOCK < _LEAST_UNLIKE
        and weights.shape[1] % core.PADDED_TO == 0
        and weights.shape[1] <= core.MOST_LABELS
        and _is_plain(weights)
    ):
        core.multiply([*states], weights, found, core.LEVEL)
        return found
    start = 0
    for one in states:
        np.matmul(one, weights[:, :num_labels], out=found[start : start + len(one)])
        start += len(one)
    return found


def pooled_states(states: Sequence[Floats], attention: Floats) -> Floats:
    """Of states n × [T, D] of finite numbers their mean, and behind it their mean by attention, [n, 2D]."""
    width = len(attention)
    pooled: Floats = np.empty((len(states), 2 * width), np.float32)
    core = compiled.products
    if core is not None and _are_plain(states) and all(len(one) <= core.MOST_TOKENS for one in states):
        powers: Floats = np.empty(sum(map(len, states)), np.float32)
        core.weigh([*states], attention, powers)
        np.exp(powers, out=powers)
        core.pool([*states], powers, pooled)
        return pooled
    for of_text, row in zip(states, pooled, strict=True):
        weights = of_text @ attention
        powers = np.exp(weights - np.maximum.reduce(weights))
        shares = powers / np.add.reduce(powers)
        np.add.reduce(of_text, axis=0, out=row[:width])
        row[:width] /= np.float32(len(of_text))
        np.matmul(shares, of_text, out=row[width:])
    return pooled


def row_products(rows: Floats, weights: Floats, out: Floats) -> None:
    """Of rows [n, K] with weights [K, labels], each row by itself, into `out` [n, labels]."""
    core = compiled.products
    num, num_labels = weights.shape
    is_compiled = core is not None and core.LEVEL and num % _CHUNK == 0 and num_labels != _NUM_UNLIKE
    if core is not None and is_compiled and _is_plain(rows) and _is_plain(weights):
        core.multiply_rows(rows, weights, out)
        return
    for row, of_row in zip(rows, out, strict=True):
        np.matmul(row, weights, out=of_row)


def _are_plain(states: Sequence[Floats]) -> bool:
    """Whether compiled code can read them here."""
    core = compiled.products
    if core is None or not core.LEVEL:
        return False
    return all(_is_plain(one) and one.shape[1] == core.NUM_COMPONENTS and len(one) > 1 for one in states)


def _is_plain(array: Floats) -> bool:
    return array.dtype == np.float32 and array.flags.c_contiguous
