"""Sessions: found or computed, a prompt gives the same bits; budgets are kept; beginnings of prompts stay longest."""

import numpy as np
import pytest

from htfi.decoding.config import DecodingConfig
from htfi.decoding.kv_cache import KVBlock, PrefixCache
from htfi.decoding.prefill import block_bounds
from htfi.decoding.sessions import KVSessions
from htfi.domain.errors import InvalidInput, ShapeMismatch
from kv_blocks import num_cached, num_free
from tiny_network import TinyNetwork

VOCAB = 23
SHAPE = TinyNetwork(VOCAB).shape
PROMPT = [int(token) for token in np.random.Generator(np.random.PCG64(1)).integers(0, VOCAB, 50)]


def sessions(**settings: int) -> KVSessions:
    return KVSessions(
        TinyNetwork(VOCAB), DecodingConfig(**{"batch_bytes": 2**20, "block_tokens": 8, **settings})
    )


def test_a_prompt_found_in_the_cache_has_the_bits_of_one_computed():
    cold, warm = sessions(cache_bytes=0), sessions(cache_bytes=2**20)
    warm.open([*PROMPT[:30], 1, 2, 3], 100, shared=30)
    others = [warm.open(PROMPT[:n], 64).row for n in (5, 9)]
    for _ in range(2):
        one, two = cold.open(PROMPT, 100, shared=30), warm.open(PROMPT, 100, shared=30)
        assert np.array_equal(one.logits, two.logits)
        for mine, its in ((cold.arena.keys, warm.arena.keys), (cold.arena.values, warm.arena.values)):
            assert np.array_equal(mine[:, one.row.slot, :, :50], its[:, two.row.slot, :, :50])
        assert (one.num_reused_tokens, two.num_reused_tokens > 0) == (0, True)
        cold.close(one.row)
        warm.close(others.pop())


def test_what_is_shared_is_read_once_to_the_token_and_the_last_block_always():
    engine = sessions()
    assert engine.open([*PROMPT[:30], 1, 2], 64, shared=30).num_reused_tokens == 0
    assert engine.open([*PROMPT[:30], 3], 64, shared=30).num_reused_tokens == 30
    assert engine.open([*PROMPT[:30], 1, 2], 64, shared=30).num_reused_tokens == 30
    assert engine.open(PROMPT[:29], 64).num_reused_tokens == 24
    assert engine.open([*PROMPT[:8], *PROMPT[9:30]], 64).num_reused_tokens == 8
    assert engine.open([7, *PROMPT[1:30]], 64).num_reused_tokens == 0


def test_a_tail_that_nothing_can_share_is_not_kept():
    engine = sessions()
    engine.open(PROMPT[:20], 64)
    assert num_cached(engine.cache) == 2
    engine.open(PROMPT[30:50], 64, shared=3)
    assert num_cached(engine.cache) == 2 + 3


def test_the_same_tokens_after_another_beginning_are_not_taken_for_each_other():
    engine, one, other = sessions(), PROMPT[:16], PROMPT[16:32]
    for prompt in (one, other):
        engine.open([*prompt, 1], 64)
    crossed = [*one[:8], *other[8:], 1]
    opened = engine.open(crossed, 64)
    assert opened.num_reused_tokens == 8
    assert np.array_equal(opened.logits, sessions(cache_bytes=0).open(crossed, 64).logits)


@pytest.mark.parametrize(
    ("num_tokens", "shared", "cuts"),
    [
        (10, 0, [(0, 4), (4, 8), (8, 10)]),
        (10, 6, [(0, 4), (4, 6), (6, 10)]),
        (8, 8, [(0, 4), (4, 8)]),
        (3, 99, [(0, 3)]),
        (5, -1, [(0, 4), (4, 5)]),
    ],
)
def test_a_prompt_is_cut_in_blocks_counted_anew_after_its_shared_part(
    num_tokens: int, shared: int, cuts: list[tuple[int, int]]
):
    assert block_bounds(num_tokens, shared, 4) == cuts


def test_the_least_recently_used_block_goes_first_and_a_chain_loses_its_end_before_its_beginning():
    cache = PrefixCache(SHAPE, 8, 3 * 8 * SHAPE.kv_bytes_per_token)
    block = KVBlock(*(np.zeros((2, 2, 8, 8), np.float32),) * 2)
    for key in (b"a1", b"a2", b"b1"):
        cache.put(key, block)
    cache.touch([b"b1"])
    cache.touch([b"a1", b"a2"])
    cache.put(b"c1", block)
    assert cache.find(b"b1") is None
    cache.put(b"c2", block)
    assert cache.find(b"a2") is None
    assert cache.find(b"a1") is not None
    assert (num_cached(cache), num_free(cache)) == (3, 0)


def test_forks_go_apart_and_leave_their_origin_alone():
    engine = sessions()
    row = engine.open(PROMPT, 60).row
    forks = engine.fork(row, 10)
    after = engine.extend([row, *forks], [[5]] * 11)
    for logits in after[1:]:
        np.testing.assert_allclose(logits, after[0], atol=1e-5)
    apart = engine.extend(forks, [[n] for n in range(10)])
    assert len({logits[-1].argmax() for logits in apart}) > 1
    engine.rewind(forks[3], len(PROMPT))
    np.testing.assert_allclose(engine.extend([forks[3]], [[5]])[0], after[0], atol=1e-5)


def test_half_empty_arenas_close_up():
    engine = sessions()
    rows = [engine.open(PROMPT[: 5 + n], 60).row for n in range(8)]
    for row in rows[:5]:
        engine.close(row)
    engine.extend(rows[5:], [[1], [2], [3]])
    assert engine.arena.num_slots == 3


def test_an_arena_that_stood_empty_has_the_shape_of_a_new_one():
    engine = sessions()
    for row in [engine.open(PROMPT, 60).row for _ in range(4)]:
        engine.close(row)
    engine.open(PROMPT[:5], 60)
    assert (engine.arena.num_slots, engine.arena.capacity) == (1, 32)


def test_more_tokens_than_a_row_may_hold_are_refused():
    engine = sessions()
    row = engine.open([1, 2], 4).row
    with pytest.raises(ShapeMismatch, match="do not fit a row of 2 of 4"):
        engine.extend([row], [[1, 2, 3]])
    with pytest.raises(InvalidInput, match="rewind"):
        engine.rewind(row, 3)
    with pytest.raises(InvalidInput, match="prompt of 0"):
        engine.open([], 4)


def test_what_can_never_fit_has_a_reason_with_its_numbers():
    engine = sessions(batch_bytes=100 * SHAPE.kv_bytes_per_token)
    assert engine.refusal(64) is None
    for refusal, words in ((engine.refusal(600), "at most 512"), (engine.refusal(64, 2), "2 × 64 tokens")):
        assert refusal is not None
        assert words in refusal.reason


@pytest.mark.parametrize(
    "settings",
    [{"batch_bytes": 0}, {"cache_bytes": -1}, {"block_tokens": 0}, {"max_batch": 0}],
)
def test_settings_that_cannot_be_are_refused_by_name(settings: dict[str, int]):
    with pytest.raises(InvalidInput, match=f"decoding.{next(iter(settings))}"):
        DecodingConfig(**settings)
