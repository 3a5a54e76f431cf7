"""Heads read in one compiled call give the bits that they give step by step, and leave what it cannot read to that."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from htfi import models
from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.heads import cue_ids
from htfi.narrative.facts.network import LABELS, TOKEN_LABELS, FactHeads
from htfi.wiring.encoder import open_heads

Floats = NDArray[np.float32]

pytestmark = pytest.mark.skipif(
    compiled.heads is None or not compiled.products.LEVEL,
    reason="built without a C compiler, or on a processor without AVX2",
)
WIDTH = 384
HEADS, FACTS = open_heads(), FactHeads.load(models.FACTS)
TEXTS = ("Fed raises rates 3% as profits fall!", "Nike cuts outlook", "", "$AAPL to the moon 🚀")


def _read(points: Floats, states: list[Floats]) -> list[bytes]:
    texts = [TEXTS[place % len(TEXTS)] for place in range(len(states))]
    shares = [*HEADS.score(points, states, texts).values()]
    shares += [head.probabilities(points, states, [*map(cue_ids, texts)]) for head in HEADS.heads.values()]
    for scores in FACTS.read_each(states, [np.zeros((len(one), 2), np.int64) for one in states]):
        shares += [getattr(scores, name) for name in (*LABELS, *TOKEN_LABELS)]
    return [np.ascontiguousarray(one).tobytes() for one in shares]


def _read_in_steps(points: Floats, states: list[Floats]) -> list[bytes]:
    with pytest.MonkeyPatch().context() as missing:
        missing.setattr(compiled, "heads", None)
        return _read(points, states)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(2, 66), min_size=1, max_size=5),
    st.integers(0, 99),
    st.sampled_from([0.02, 1.0, 40.0]),
)
def test_one_call_gives_the_bits_of_the_steps(lengths: list[int], seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    states = [np.float32(scale) * rng.standard_normal((num, WIDTH), np.float32) for num in lengths]
    points = np.stack([one.mean(axis=0) for one in states])
    assert _read(points, states) == _read_in_steps(points, states)


@pytest.mark.parametrize("number", [np.nan, np.inf, -2e3])
@pytest.mark.parametrize("is_of_point", [False, True])
def test_numbers_that_are_none_or_large_are_left_to_the_steps(number: float, *, is_of_point: bool) -> None:
    states = [np.full((num, WIDTH), 0.25, np.float32) for num in (4, 9)]
    points: Floats = np.full((2, WIDTH), 0.05, np.float32)
    (points if is_of_point else states[1])[1, 7] = number
    found = HEADS.score(points, states, TEXTS[:2])
    assert all(np.isfinite(shares).all() for shares in found.values())
    assert _read(points, states) == _read_in_steps(points, states)


def test_texts_of_one_token_or_very_many_are_left_to_the_steps() -> None:
    states = [np.full((num, WIDTH), 0.25, np.float32) for num in (1, 200)]
    points: Floats = np.full((2, WIDTH), 0.05, np.float32)
    assert _read(points, states) == _read_in_steps(points, states)
