"""Texts are encoded once; where a text may lie, and when it must be forgotten, follows its item."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.caching.encoded import CachedScorer, CachedTextReader, cache_names
from htfi.narrative.caching.tier import EventClock
from htfi.narrative.caching.tiers import MemoryTier, OuterTier, TieredCache
from htfi.narrative.encoding.heads import Head, Heads
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.scorer import NewsScorer, scored_text
from htfi.narrative.encoding.text_reading import EncoderTextReader
from htfi.narrative.ports import TextEmbeddings

DAY = 86_400 * 10**9


class Letters:
    """Texts as counts of letters, and which of them were asked."""

    version, size = "letters@1", 26

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts):
        self.asked += texts
        counts = np.array([[text.lower().count(chr(97 + k)) + 0.5 for k in range(26)] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    def read_parts(self, texts: Sequence[str]) -> Iterator[TextEmbeddings]:
        yield self.read(texts)

    def read(self, texts):
        points = self.encode(texts)
        return TextEmbeddings(
            points, [np.outer(np.arange(1, 4), point).astype(np.float32) for point in points]
        )


class Far(MemoryTier):
    """A tier beyond the process that shows what reached it."""

    name = "far"


def item(number: int, headline: str, **more: object) -> ScreenedItem:
    news = News(number * DAY, number * DAY, "wire", number, f"n{number}", headline, ("IBM",), **more)
    return ScreenedItem(news, Screening.PASS, 1.0, cluster=f"n{number}")


@pytest.fixture
def time() -> EventClock:
    return EventClock()


@pytest.fixture
def far(time: EventClock) -> Far:
    return Far(2**20, time)


@pytest.fixture
def cache(time: EventClock, far: Far) -> TieredCache:
    return TieredCache(MemoryTier(2**20, time), [OuterTier(far, frozenset())])


def made_up_heads() -> Heads:
    rng = np.random.Generator(np.random.PCG64(3))

    def head(name: str, *labels: str) -> Head:
        sizes = ((30, len(labels)), (len(labels),), (26, 2), (2,))
        return Head(name, labels, *(rng.normal(size=size).astype(np.float32) for size in sizes))

    heads = (head("sentiment", "negative", "neutral", "positive"), head("relevance", "idle", "relevant"))
    return Heads({one.name: one for one in heads}, digest="ab" * 32)


HEADS = made_up_heads()


def scoring(encoder: Letters, cache: TieredCache, time: EventClock) -> CachedScorer:
    num_labels = {name: len(head.labels) for name, head in HEADS.heads.items()}
    cached = CachedTextReader(EncoderTextReader(encoder, HEADS), num_labels, cache, b"who", 3 * DAY)
    return CachedScorer(NewsScorer(cached, HEADS, EntityLinker({})), cached, time)


def test_scores_are_the_same_cold_warm_and_without_a_cache(cache: TieredCache, time: EventClock) -> None:
    items = [item(1, "Fed cuts rates"), item(2, "Fed cuts rates"), item(3, "Oil falls")]
    alone = NewsScorer(EncoderTextReader(Letters(), HEADS), HEADS, EntityLinker({})).score(items)
    encoder = Letters()
    assert scoring(encoder, cache, time).score(items) == alone
    assert encoder.asked == ["Fed cuts rates", "Oil falls"]
    assert scoring(encoder, cache, time).score(items) == alone
    one_by_one = [scoring(encoder, cache, time).score([one])[0].sentiment for one in items]
    assert one_by_one == [one.sentiment for one in alone]
    assert len(set(one_by_one)) == 2
    assert len(encoder.asked) == 2


def test_a_retracted_text_is_encoded_anew_and_not_kept(
    cache: TieredCache, time: EventClock, far: Far
) -> None:
    encoder, one = Letters(), item(1, "Fed cuts rates")
    scoring(encoder, cache, time).score([one])
    cache.flush()
    assert len(far) == 1
    cache.forget(cache_names(one))
    assert len(far) == 0
    for _ in range(2):
        scoring(encoder, cache, time).score([replace(one, item=replace(one.item, id="n9"))])
    cache.flush()
    assert (len(encoder.asked), len(far)) == (3, 0)


def test_a_tagged_items_point_stays_in_this_process(cache: TieredCache, time: EventClock, far: Far) -> None:
    encoder, one = Letters(), item(1, "Fed cuts rates", residency=("eu",))
    for _ in range(2):
        scoring(encoder, cache, time).score([one])
    cache.flush()
    assert (len(encoder.asked), len(far)) == (1, 0)


def test_texts_that_nobody_told_of_are_not_kept(cache: TieredCache, far: Far) -> None:
    encoder = Letters()
    cached = CachedTextReader(EncoderTextReader(encoder, None), {}, cache, b"who", DAY)
    for _ in range(2):
        assert cached.read(["a", "b", "a"])[0] == cached.read(["a"])[0]
    cache.flush()
    assert (len(far), len(encoder.asked)) == (0, 6)
    assert cached.read([]) == []


def test_a_value_that_is_no_point_is_worked_out_anew(cache: TieredCache, time: EventClock) -> None:
    encoder, one = Letters(), item(1, "Fed cuts rates")
    scoring(encoder, cache, time).score([one])
    (key,) = cache._memory._entries
    whole = msgspec.msgpack.decode(cache.get(key))
    nan = np.full(26, np.nan, "<f4").tobytes()
    for damaged in ([whole[0][:-4], whole[1]], [nan, whole[1]], [whole[0], {}], "short"):
        cache.put(key, msgspec.msgpack.encode(damaged), DAY)
        scoring(encoder, cache, time).score([one])
    assert encoder.asked == [scored_text(one)] * 5
