"""The choice of a token in C is the choice in Python, whatever the logits: the fallback is the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from gumbel_noise import gumbel
from htfi.decoding import sampling as choosing
from htfi.decoding.noise import noise_keys
from htfi.decoding.ports import Floats, Ids
from htfi.decoding.sampling import AllowedTokens, SamplingParams, sample_tokens

pytestmark = pytest.mark.skipif(choosing.core is None, reason="the choice in C was not compiled")

ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-40, 50.0]


def in_python(logits: Floats, admitted: AllowedTokens, sampling: SamplingParams, row_keys: np.ndarray) -> Ids:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "core", None)
        return sample_tokens(logits, admitted, sampling, row_keys)


@settings(max_examples=examples(400), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_rows=st.integers(1, 5),
    vocab_size=st.integers(1, 400),
    share=st.floats(0.0, 1.0),
    scale=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 3.0, 100.0, 1e6]),
    num_odd=st.integers(0, 6),
    temperature=st.sampled_from([0.0, 0.001, 0.3, 0.7, 1.0, 2.0, 1000.0]),
)
def test_compiled_choice_is_pythons(
    seed: int, num_rows: int, vocab_size: int, share: float, scale: float, num_odd: int, temperature: float
) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    logits = (rng.standard_normal((num_rows, vocab_size)) * scale).astype(np.float32)
    for _ in range(num_odd):
        logits[rng.integers(num_rows), rng.integers(vocab_size)] = ODD[rng.integers(len(ODD))]
    ids = np.flatnonzero(rng.random(vocab_size) <= share)
    ids = ids if len(ids) else rng.integers(vocab_size, size=1)
    row_keys = rng.integers(0, 2**64, num_rows, np.uint64)
    given_ = (logits, AllowedTokens.of(ids), SamplingParams(temperature), row_keys)
    assert np.array_equal(sample_tokens(*given_), in_python(*given_))


def test_close_races_are_settled_by_the_exact_noise() -> None:
    """Flat logits over many tokens: the table leaves two or more in most rows; every row is the argmax over all."""
    ids = np.arange(2245)
    places = np.arange(300)
    row_keys = noise_keys(5, np.zeros_like(places), places)
    logits = np.zeros((300, 2245), np.float32)
    tokens = sample_tokens(logits, AllowedTokens.of(ids), SamplingParams(1.0), row_keys)
    assert np.array_equal(tokens, gumbel(row_keys, ids).argmax(axis=1))


def test_scores_that_tie_to_the_last_bit_go_to_the_lowest_id() -> None:
    """Logits so large that the noise is lost in them."""
    ids = np.array([3, 5, 9])
    logits = np.full((4, 12), 3e38, np.float32)
    tokens = sample_tokens(logits, AllowedTokens.of(ids), SamplingParams(1.0), np.arange(4, dtype=np.uint64))
    assert tokens.tolist() == [3, 3, 3, 3]


def test_rows_in_strides_are_read_where_they_lie() -> None:
    rng = np.random.Generator(np.random.PCG64(2))
    wide = rng.standard_normal((6, 50)).astype(np.float32)
    row_keys = np.arange(3, dtype=np.uint64)
    admitted = AllowedTokens.of(np.arange(0, 20, 3))
    wanted = sample_tokens(np.ascontiguousarray(wide[::2, :20]), admitted, SamplingParams(1.0), row_keys)
    assert np.array_equal(sample_tokens(wide[::2, :20], admitted, SamplingParams(1.0), row_keys), wanted)
    assert np.array_equal(sample_tokens(wide.T[:20, ::2].T, admitted, SamplingParams(1.0), row_keys), wanted)


@pytest.mark.parametrize("ids", [[5, 60], [-1, 3], [9, 2]])
def test_ids_that_do_not_fit_are_left_to_python(ids: list[int]) -> None:
    tokens = choosing.compiled_choice(
        np.zeros((1, 50), np.float32), np.array(ids), np.zeros(2, np.uint64), 1.0, np.zeros(1, np.uint64)
    )
    assert tokens is None
