"""What every tier of the context cache keeps to: memory, LMDB, and a Redis that these tests start themselves."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from htfi.adapters.lmdb.tier import LmdbTier
from htfi.adapters.redis.tier import RedisAddress, RedisTier
from htfi.narrative.caching.tier import CacheEntry, CacheTier, EventClock
from htfi.narrative.caching.tiers import MemoryTier, OuterTier, TieredCache
from redis_server import RedisServer, redis_server

HOUR = 3_600 * 10**9
SHARED = ("lmdb", "redis")

Open = Callable[[], CacheTier]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def now() -> EventClock:
    return EventClock()


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path, now: EventClock) -> Iterator[Open]:
    """Opens the tier that the test is about; each is closed in the end."""
    kind: str = request.param
    with ExitStack() as closing:

        def open_one() -> CacheTier:
            if kind == "memory":
                tier: CacheTier = MemoryTier(2**24, now)
            elif kind == "lmdb":
                tier = LmdbTier(tmp_path / "db", 2**24, now, pytest.fail)
            else:
                server = request.getfixturevalue("server")
                tier = RedisTier(RedisAddress(server.url, 500.0, tmp_path.name), pytest.fail)
            closing.callback(tier.close)
            return tier

        yield open_one


def every(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("opened", kinds, indirect=True)


def put(tier: CacheTier, *entries: CacheEntry) -> None:
    tier.put_many(entries)
    assert tier.drain(5.0)


def get(tier: CacheTier, key: bytes, *about: str) -> bytes | None:
    return tier.get_many([key], [about])[0]


@every("memory", *SHARED)
@pytest.mark.parametrize("size", [0, 1, 1_999, 4_080, 4_081, 100_000])
def test_a_value_comes_back_as_it_was_put(opened: Open, size: int) -> None:
    tier, value = opened(), os.urandom(size)
    put(tier, CacheEntry(b"k" * 20, value, HOUR, ("a",)))
    assert get(tier, b"k" * 20, "a") == value
    assert get(tier, b"j" * 20) is None
    put(tier, CacheEntry(b"k" * 20, b"other", HOUR, ("a",)))
    assert get(tier, b"k" * 20, "a") == b"other"


@every(*SHARED)
def test_large_values_lie_beyond_the_process(opened: Open) -> None:
    tier, value = opened(), os.urandom(300_000)
    put(tier, CacheEntry(b"k" * 20, value, HOUR, ("a",)))
    assert get(tier, b"k" * 20, "a") == value


@every("memory", *SHARED)
def test_many_keys_are_answered_in_their_order(opened: Open) -> None:
    tier = opened()
    put(tier, *(CacheEntry(bytes([k]) * 20, b"%d" % k, HOUR, ()) for k in range(0, 200, 2)))
    found = tier.get_many([bytes([k]) * 20 for k in range(200)], [()] * 200)
    assert found == [b"%d" % k if k % 2 == 0 else None for k in range(200)]


@every("memory", *SHARED)
def test_what_is_forgotten_is_gone_and_a_late_writer_brings_nothing_back(opened: Open) -> None:
    tier = opened()
    put(
        tier,
        CacheEntry(b"1", b"x", HOUR, ("a", "b")),
        CacheEntry(b"2", b"y", HOUR, ("b",)),
        CacheEntry(b"3", b"z", HOUR, ("c",)),
    )
    assert tier.forget(["b", "never met"])
    assert [get(tier, key) for key in (b"1", b"2", b"3")] == [None, None, b"z"]
    put(tier, CacheEntry(b"1", b"x", HOUR, ("a", "b")), CacheEntry(b"4", b"w", HOUR, ("a",)))
    assert [get(tier, b"1", "a", "b"), get(tier, b"4", "a")] == [None, b"w"]


@every(*SHARED)
def test_what_one_has_forgotten_the_others_hear_of_and_do_not_serve(opened: Open) -> None:
    first, second = opened(), None
    put(first, CacheEntry(b"1", b"x", HOUR, ("a",)))
    second = opened() if isinstance(first, RedisTier) else first
    assert get(second, b"1", "a") == b"x"
    first.forget(["a"])
    assert get(second, b"1", "a") is None
    if second is not first:
        assert heard(second) == ["a"]
        assert list(second.forgotten() or ()) == []


def heard(tier: CacheTier, within_s: float = 5.0) -> list[str] | None:
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        told = tier.forgotten()
        if told is None or told:
            return None if told is None else list(told)
        time.sleep(0.01)
    return []


@every(*SHARED)
def test_values_outlive_the_process_that_put_them(opened: Open) -> None:
    first = opened()
    put(first, CacheEntry(b"1", b"x", HOUR, ("a",)), CacheEntry(b"2", b"y", HOUR, ("b",)))
    first.forget(["b"])
    first.close()
    second = opened()
    assert [get(second, b"1", "a"), get(second, b"2", "b")] == [b"x", None]
    put(second, CacheEntry(b"2", b"y", HOUR, ("b",)))
    assert get(second, b"2", "b") is None


@every("memory", "lmdb")
def test_a_value_is_gone_at_its_end_in_the_time_of_events(opened: Open, now: EventClock) -> None:
    tier = opened()
    put(tier, CacheEntry(b"1", b"x", HOUR, ()))
    now.advance_to(HOUR - 1)
    assert get(tier, b"1") == b"x"
    now.advance_to(HOUR)
    assert get(tier, b"1") is None


@every("redis")
def test_a_server_drops_a_value_after_its_duration(opened: Open) -> None:
    tier = opened()
    put(tier, CacheEntry(b"1", b"x", 200 * 10**6, ()), CacheEntry(b"2", b"y", HOUR, ()))
    assert get(tier, b"1") == b"x"
    time.sleep(0.25)
    assert [get(tier, b"1"), get(tier, b"2")] == [None, b"y"]


@every(*SHARED)
def test_damage_and_foreign_values_are_misses_that_are_counted(opened: Open, now: EventClock) -> None:
    tier = opened()
    writer = TieredCache(MemoryTier(2**20, now), [OuterTier(tier)], b"one secret")
    writer.put(b"1", b"a view", HOUR)
    writer.flush()
    put(tier, CacheEntry(b"2", b"\x01 not sealed at all, by another program", HOUR, ()))
    reader = TieredCache(MemoryTier(2**20, now), [OuterTier(tier)], b"one secret")
    stranger = TieredCache(MemoryTier(2**20, now), [OuterTier(tier)], b"another")
    assert reader.get_many([b"1", b"2"], [(), ()]) == [b"a view", None]
    assert (reader.num_damaged, reader.num_missed) == (1, 1)
    assert stranger.get_many([b"1", b"2"], [(), ()]) == [None, None]
    assert stranger.num_damaged == 2


@every(*SHARED)
def test_items_with_residency_go_only_where_their_tags_are_admitted(opened: Open, now: EventClock) -> None:
    tier = opened()
    tiers = TieredCache(MemoryTier(2**20, now), [OuterTier(tier, frozenset({"eu"}))])
    tiers.put(b"1", b"x", HOUR, (), frozenset({"eu"}))
    tiers.put(b"2", b"y", HOUR, (), frozenset({"eu", "desk"}))
    tiers.flush()
    assert tier.drain(5.0)
    assert tier.get_many([b"1", b"2"], [(), ()])[0] is not None
    assert get(tier, b"2") is None
    assert tiers.get_many([b"1", b"2"], [(), ()]) == [b"x", b"y"]


def test_where_more_was_forgotten_than_is_known_nothing_kept_here_is_trusted(
    tmp_path: Path, now: EventClock
) -> None:
    class Unknowing(MemoryTier):
        """Others have had more forgotten than it can tell."""

        name = "far"

        def forgotten(self) -> None:
            return None

    near = LmdbTier(tmp_path / "db", 2**24, now, pytest.fail)
    before = TieredCache(MemoryTier(2**20, now), [OuterTier(near)])
    before.put(b"1", b"x", HOUR)
    before.flush()
    assert get(near, b"1") is not None
    after = TieredCache(MemoryTier(2**20, now), [OuterTier(near), OuterTier(Unknowing(2**20, now))])
    assert after.get(b"1") is None
    after.close()


@every(*SHARED)
def test_two_nodes_share_what_one_has_put_and_forget_what_one_has_forgotten(
    opened: Open, now: EventClock
) -> None:
    tier = opened()
    near = TieredCache(MemoryTier(2**20, now), [OuterTier(tier)])
    far = TieredCache(MemoryTier(2**20, now), [OuterTier(opened() if isinstance(tier, RedisTier) else tier)])
    near.put(b"1", b"x", HOUR, ("a",))
    near.flush()
    assert tier.drain(5.0)
    assert far.get(b"1", ("a",)) == b"x"
    far.forget(["a"])
    until_s = time.monotonic() + 5.0
    while isinstance(tier, RedisTier) and near.get(b"1", ("a",)) and time.monotonic() < until_s:
        time.sleep(0.01)
    if isinstance(tier, RedisTier):
        assert near.get(b"1", ("a",)) is None  # from memory, where it lay
        near.put(b"1", b"x", HOUR, ("a",))
        near.flush()
        assert near.get(b"1", ("a",)) is None
    assert far.get(b"1", ("a",)) is None
