"""Prompts that were read elsewhere: the engine goes on from their keys and values, with the same bits."""

from pathlib import Path

import numpy as np
import pytest

from htfi.decoding.config import DecodingConfig
from htfi.decoding.kv_cache import SharedKVBlocks
from htfi.decoding.ports import ForwardOutput
from htfi.decoding.prefill import PromptToPrefill
from htfi.decoding.sessions import KVSessions
from htfi.narrative.caching.tier import EventClock
from htfi.narrative.caching.tiers import MemoryTier, OuterTier, TieredCache
from htfi.wiring.models.loading import open_model
from random_pair import write_random_pair

IDS = [5 + k % 40 for k in range(90)]
SHARED = 70
HOUR = 3_600 * 10**9


class Counting:
    """A network that counts the tokens that it reads."""

    def __init__(self, network) -> None:
        self._network = network
        self.shape, self.digest = network.shape, network.digest
        self.num_read = 0

    def forward(self, ids, positions, mask, keys, values) -> ForwardOutput:
        self.num_read += ids.size
        return self._network.forward(ids, positions, mask, keys, values)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory):
    folder, _ = write_random_pair(Path(tmp_path_factory.mktemp("pair")))
    return open_model(folder, "int8").network


@pytest.fixture
def cache() -> TieredCache:
    return TieredCache(MemoryTier(2**24, EventClock()))


def sessions(
    network, cache: TieredCache | None, reader: bytes = b"me", cache_bytes: int = 2**22
) -> KVSessions:
    counting = Counting(network)
    kept = None if cache is None else SharedKVBlocks(cache, reader, network.shape, HOUR)
    return KVSessions(counting, DecodingConfig(2**22, cache_bytes), kept)


def read(one: KVSessions, ids=IDS, about=("item:1",), residency=frozenset()):
    """Logits after the prompt, its keys and values, and how many tokens were read for them."""
    before = one.network.num_read
    (opened,) = one.open_all([PromptToPrefill(ids, 120, SHARED, about, residency)])
    row = opened.row
    kv = [memory[:, row.slot, :, : len(ids)].copy() for memory in (one.arena.keys, one.arena.values)]
    one.close(row)
    return opened.logits.copy(), kv, one.network.num_read - before


@pytest.mark.parametrize("cache_bytes", [0, 20_000, 2**22])
def test_what_others_read_is_not_read_again_and_gives_the_same_bits(network, cache, cache_bytes) -> None:
    alone, alone_kv, num_alone = read(sessions(network, None, cache_bytes=cache_bytes))
    first, first_kv, num_first = read(sessions(network, cache, cache_bytes=cache_bytes))
    second, second_kv, num_second = read(sessions(network, cache, cache_bytes=cache_bytes))
    assert num_alone == num_first == len(IDS)
    assert num_second == len(IDS) - SHARED
    for logits, kv in ((first, first_kv), (second, second_kv)):
        np.testing.assert_array_equal(logits, alone)
        np.testing.assert_array_equal(kv, alone_kv)


def test_another_question_on_the_same_news_finds_them_read(network, cache) -> None:
    read(sessions(network, cache))
    other = [*IDS[:SHARED], *reversed(IDS[SHARED:])]
    found, _, num_read = read(sessions(network, cache), other)
    alone, _, _ = read(sessions(network, None), other)
    assert num_read == len(IDS) - SHARED
    np.testing.assert_array_equal(found, alone)


def test_another_engine_or_kind_of_machine_reads_for_itself(network, cache) -> None:
    read(sessions(network, cache))
    assert read(sessions(network, cache, b"other"))[2] == len(IDS)


class Unasked(MemoryTier):
    """A tier that must not be asked for what it cannot hold."""

    name = "unasked"

    def get_many(self, keys, about):
        raise AssertionError("asked")


def test_a_tier_that_keeps_no_such_large_values_is_not_asked(network) -> None:
    narrow = TieredCache(
        MemoryTier(2**24, EventClock()), [OuterTier(Unasked(2**24, EventClock()), None, 1_000)]
    )
    assert read(sessions(network, narrow))[2] == len(IDS)
    narrow.flush()
    assert read(sessions(network, narrow))[2] == len(IDS) - SHARED


def test_retracted_news_are_read_anew_and_not_kept(network, cache) -> None:
    one = sessions(network, cache)
    read(one)
    cache.forget(["item:1"])
    assert read(one)[2] == read(sessions(network, cache))[2] == len(IDS)


def test_a_value_of_another_size_is_none(network, cache) -> None:
    blocks = SharedKVBlocks(cache, b"me", network.shape, HOUR)
    read(sessions(network, cache))
    names = {key: value for key, (value, _, _) in cache._memory._entries.items()}
    for key, value in names.items():
        cache.put(key, value[:-4], HOUR, ("item:1",))
    assert read(sessions(network, cache))[2] == len(IDS)
    assert blocks.find([b"unknown"], [3], ()) == [None]
