"""Products with the weights of heads, compiled, add in the order that is written down, on every kind of processor;
numpy gives the same bits where its BLAS takes the kernel that the order is from.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.encoding.products import padded_weights, pooled_states, row_products, token_products
from htfi.wiring.encoder import open_heads

Floats = NDArray[np.float32]

core = compiled.products
pytestmark = pytest.mark.skipif(
    core is None or not core.LEVEL, reason="built without a C compiler, or on a processor without AVX2"
)
WIDTH = 384
_LARGE = np.float32(2.0**60)


def _fused(one: Floats, other: Floats, sums: Floats) -> Floats:
    """A multiplication and an addition with one rounding: the product of two such numbers is exact in 64 bits."""
    return (one.astype(np.float64) * other + sums).astype(np.float32)


def _chain(states: Floats, weights: Floats) -> Floats:
    sums: Floats = np.zeros((len(states), weights.shape[1]), np.float32)
    for place in range(states.shape[1]):
        sums = _fused(states[:, place, None], weights[place], sums)
    return sums


def _in_order(states: Floats, weights: Floats) -> Floats:
    """The products [T, S] as `products.h` adds them."""
    halves = [slice(0, 192), slice(192, 384)]
    one, other = (_chain(states[:, half], weights[half]) for half in halves)
    chained = one + other
    one, other = (
        _chain(states[:, half][:, ::2], weights[half][::2])
        + _chain(states[:, half][:, 1::2], weights[half][1::2])
        for half in halves
    )
    paired = one + other
    num, num_labels = chained.shape
    whole = num_labels - num_labels % 16
    in_blocks = num - num % 12
    for row in range(num):
        if row >= in_blocks:
            labels = list(range(whole)) if row < in_blocks + (num - in_blocks) // 4 * 4 else []
        else:
            labels = [*range(min(8, whole)), *range(max(whole - 8, 0), whole)] if row % 12 < 6 else []
        chained[row, labels] = paired[row, labels]
    return chained


def _is_blas_alike() -> bool:
    """Whether numpy's products add in that order: told by a sum in which a large number comes and goes."""
    states: Floats = np.ones((12, WIDTH), np.float32)
    states[:, 0], states[:, 1] = _LARGE, -_LARGE
    left = states @ np.ones((WIDTH, 64), np.float32)
    return left[0, 0] == WIDTH - 192 and left[0, 20] == WIDTH - 2 and left[6, 0] == WIDTH - 2


def _texts(lengths: Sequence[int], seed: int) -> list[Floats]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((num, WIDTH), np.float32) for num in lengths]


@pytest.mark.parametrize("num_labels", [3, 16, 20, 64, 80])
def test_products_of_tokens_add_in_the_written_order_at_each_level(num_labels: int) -> None:
    assert core is not None
    states = _texts([2, 3, 5, 12, 13, 22, 31, 47], num_labels)
    weights = np.random.default_rng(1).standard_normal((WIDTH, num_labels), np.float32)
    expected = np.concatenate([_in_order(one, weights) for one in states])
    for level in range(1, core.LEVEL + 1):
        found: Floats = np.empty_like(expected)
        core.multiply(states, padded_weights(weights), found, level)
        assert np.array_equal(found, expected)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(2, 70), min_size=1, max_size=4),
    st.integers(0, 99),
    st.sampled_from([3, 5, 16, 20, 58]),
)
def test_numpy_gives_the_same_bits(lengths: list[int], seed: int, num_labels: int) -> None:
    if not _is_blas_alike():
        pytest.skip("numpy's BLAS adds in another order on this processor")
    states = _texts(lengths, seed)
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((WIDTH, num_labels), np.float32)
    heads = rng.standard_normal((2 * WIDTH, num_labels), np.float32)
    attention = rng.standard_normal(WIDTH, np.float32)

    def read() -> list[bytes]:
        pooled = pooled_states(states, attention)
        rows: Floats = np.empty((len(states), num_labels), np.float32)
        row_products(pooled, heads, rows)
        seen = token_products(states, padded_weights(weights), num_labels)
        return [pooled.tobytes(), rows.tobytes(), seen.tobytes()]

    found = read()
    with pytest.MonkeyPatch().context() as missing:
        missing.setattr(compiled, "products", None)
        assert found == read()


def test_a_text_has_the_same_bits_whatever_is_read_with_it() -> None:
    heads: Heads = open_heads()
    states = _texts([13, 2, 40, 7], 3)
    points = np.stack([one.mean(axis=0) for one in states])
    words = ["profit rises", "a", "b", "c"]
    together = heads.score(points, states, words)
    same: list[bool] = []
    for place, one in enumerate(states):
        alone = heads.score(points[place : place + 1], [one], words[place : place + 1])
        same += [np.array_equal(together[name][place], alone[name][0]) for name in together]
    assert len(same) >= 4
    assert all(same)


def test_states_of_another_shape_are_refused_by_compiled_code_and_left_to_numpy() -> None:
    assert core is not None
    weights: Floats = np.ones((WIDTH, 32), np.float32)
    with pytest.raises(ValueError, match="another shape"):
        core.multiply([np.ones((3, WIDTH), np.float32)], weights, np.empty((2, 32), np.float32), 1)
    small: Floats = np.ones((2, 8), np.float32)
    assert token_products([small], np.ones((8, 3), np.float32), 3).tolist() == [[8.0] * 3] * 2
