"""The context cache in one process: what it gives, what it drops, what it forgets, and readers that ask it."""

import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.generation import RequestRefused
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.caching.cached_reader import CachedReader, ViewCachePolicy, with_cache
from htfi.narrative.caching.tier import EventClock, cache_key, lifetime_ns, seal, unseal
from htfi.narrative.caching.tiers import MemoryTier, TieredCache
from htfi.narrative.ports import LateNewsReader
from htfi.narrative.question import Question, item_name, question_id

DAY = NS_PER_DAY


def question(symbol: str = "SPX", day: int = 1, item: str = "n1") -> Question:
    news = News(day * DAY - 1, day * DAY - 1, "wire", 1, item, "Fed cuts rates by 50 bp", (symbol,))
    return Question(symbol, day * DAY, DAY, (news,), (0.1, -0.2))


class Counting:
    """A reader that counts what it is asked; its view tells the question."""

    version = "counting@1"
    speculation_stats = None

    def __init__(self, **view: object) -> None:
        self.asked: list[str] = []
        self._view = view

    def read(self, questions, deadline_ms):
        self.asked += [one.symbol for one in questions]
        return [replace(self.view_of(one), **self._view) for one in questions]

    def view_of(self, one: Question) -> NewsView:
        ids = tuple(item.id for item in one.items)
        return NewsView(1.0, 0.5, 1.25, 0.7, ids, one.as_of_ns, DAY, words=one.symbol, reader=self.version)


def cached(reader: Counting, cache: TieredCache, time: EventClock, **options: bool) -> CachedReader:
    return with_cache(reader, ViewCachePolicy(cache, b"who", lifetime_ns(DAY, 0.125), time, **options))


@pytest.fixture
def time() -> EventClock:
    return EventClock()


@pytest.fixture
def cache(time: EventClock) -> TieredCache:
    return TieredCache(MemoryTier(2**20, time))


def test_a_question_asked_before_is_answered_without_the_reader(cache: TieredCache, time: EventClock) -> None:
    reader = Counting()
    first = cached(reader, cache, time).read([question()], 50.0)
    again = cached(reader, cache, time).read([question()], 50.0)
    assert first == again == [reader.view_of(question())]
    assert reader.asked == ["SPX"]


@pytest.mark.parametrize(
    "change", [{"as_of_ns": 2 * DAY}, {"symbol": "IBM"}, {"context": (0.3,)}, {"name": "x"}]
)
def test_whatever_a_reader_is_told_makes_another_question(
    cache: TieredCache, time: EventClock, change: dict
) -> None:
    reader = Counting()
    around = cached(reader, cache, time)
    around.read([question()], 50.0)
    around.read([replace(question(), **change)], 50.0)
    assert len(reader.asked) == 2


@pytest.mark.parametrize("view", [{"provisional": True}, {"reader": "template@1"}])
def test_a_provisional_view_and_a_refusal_are_not_kept(
    cache: TieredCache, time: EventClock, view: dict
) -> None:
    reader = Counting(**view)
    around = cached(reader, cache, time)
    for _ in range(2):
        around.read([question()], 50.0)
    assert len(reader.asked) == 2


def test_a_target_reads_a_batch_in_the_company_that_it_would_have_without_a_cache(
    cache: TieredCache, time: EventClock
) -> None:
    reader = Counting()
    around = cached(reader, cache, time)
    around.read([question("SPX"), question("IBM")], 50.0)
    around.read([question("SPX")], 50.0)
    assert reader.asked == ["SPX", "IBM", "SPX"]
    around.read([question("SPX"), question("IBM")], 50.0)
    assert len(reader.asked) == 3


def test_a_reader_whose_rounds_no_company_changes_reads_only_what_is_new(
    cache: TieredCache, time: EventClock
) -> None:
    reader = Counting()
    around = cached(reader, cache, time, is_isolated=True)
    around.read([question("SPX")], 50.0)
    views = around.read([question("IBM"), question("SPX")], 50.0)
    assert reader.asked == ["SPX", "IBM"]
    assert [view.words for view in views] == ["IBM", "SPX"]


def test_what_was_retracted_is_read_again_and_not_kept(cache: TieredCache, time: EventClock) -> None:
    reader = Counting()
    around = cached(reader, cache, time)
    around.read([question()], 50.0)
    cache.forget([item_name("n1")])
    for _ in range(2):
        around.read([question()], 50.0)
    assert len(reader.asked) == 3


def test_a_view_is_gone_once_its_news_have_faded(cache: TieredCache, time: EventClock) -> None:
    reader = Counting()
    around = cached(reader, cache, time)
    around.read([question()], 50.0)
    time.advance_to(4 * DAY)
    around.read([question()], 50.0)
    assert len(reader.asked) == 2


def test_memory_never_passes_its_bound_and_keeps_what_was_used_last(time: EventClock) -> None:
    memory = MemoryTier(20_000, time)
    cache = TieredCache(memory)
    keys = [cache_key("x", bytes([k])) for k in range(100)]
    for key in keys:
        cache.put(key, bytes(500), DAY)
        cache.get(keys[0])
        assert memory.num_bytes <= 20_000
    assert cache.get(keys[0]) is not None
    assert cache.get(keys[-1]) is not None
    assert cache.get(keys[1]) is None
    cache.put(b"large", bytes(30_000), DAY)
    assert cache.get(b"large") is None


def test_a_seal_holds_for_its_key_its_lifetime_and_its_secret_alone() -> None:
    sealed = seal(b"key", b"value", 7, b"secret")
    assert unseal(b"key", sealed, b"secret") == (b"value", 7)
    assert unseal(b"other", sealed, b"secret") is None
    assert unseal(b"key", sealed) is None
    for place in range(len(sealed)):
        damaged = bytearray(sealed)
        damaged[place] ^= 1
        assert unseal(b"key", bytes(damaged), b"secret") is None
        assert unseal(b"key", sealed[:place], b"secret") is None


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    assert len({cache_key("a", b"bc"), cache_key("ab", b"c"), cache_key("a", b"b", b"c")}) == 3


class Late(Counting):
    """Gives provisional views, and the whole ones when it is told to."""

    def __init__(self) -> None:
        super().__init__(provisional=True)
        self.pursued: list[Question] = []
        self.ready: list[tuple[str, NewsView | RequestRefused]] = []

    def take_late_views(self):
        told, self.ready = self.ready, []
        return told

    def request_views(self, questions):
        self.pursued += questions


def test_a_view_that_came_late_is_kept_and_then_answers_at_once(cache: TieredCache, time: EventClock) -> None:
    reader, one = Late(), question()
    around = cached(reader, cache, time)
    assert isinstance(around, LateNewsReader)
    assert around.read([one], 50.0)[0].provisional
    reader.ready = [(question_id(one), reader.view_of(one)), ("unknown", RequestRefused("no time"))]
    assert around.take_late_views() == [
        (question_id(one), reader.view_of(one)),
        ("unknown", RequestRefused("no time")),
    ]
    assert cached(reader, cache, time).read([one], 50.0) == [reader.view_of(one)]
    assert reader.asked == ["SPX"]


def test_what_is_pursued_comes_from_the_cache_where_it_is_known(cache: TieredCache, time: EventClock) -> None:
    reader, known, unknown = Late(), question(), question("IBM")
    first = cached(reader, cache, time)
    first.read([known], 50.0)
    reader.ready = [(question_id(known), reader.view_of(known))]
    first.take_late_views()
    again = cached(reader, cache, time)
    again.request_views([known, unknown])
    assert reader.pursued == [unknown]
    assert again.take_late_views() == [(question_id(known), reader.view_of(known))]
    assert again.take_late_views() == []


def test_a_reader_that_never_answers_late_does_not_behind_a_cache(
    cache: TieredCache, time: EventClock
) -> None:
    assert not isinstance(cached(Counting(), cache, time), LateNewsReader)
