"""Texts that are known to follow are encoded together with the first that is asked for; the answers are the same."""

import numpy as np
import pytest

from htfi.domain.events import News
from htfi.narrative.encoding.read_ahead import MAX_AHEAD, MAX_HELD, ReadAheadTextReader
from htfi.narrative.encoding.text_reading import TextReading
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.wiring.news import build_news_processor
from htfi.wiring.settings import Settings


class Counts:
    """Texts as counts of three letters, and the batches that were asked."""

    version, size = "counts@1", 3

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def read(self, texts):
        self.batches.append(list(texts))
        points = [np.array([text.count(letter) + 0.5 for letter in "abc"], "<f4") for text in texts]
        return [TextReading(point.tobytes(), {}) for point in points]


TEXTS = [f"a b {'c ' * number}" for number in range(7)]


def test_what_is_expected_is_read_with_the_first_text_and_not_again() -> None:
    reader = Counts()
    ahead = ReadAheadTextReader(reader)
    ahead.expect(TEXTS)
    assert ahead.read(TEXTS[:1]) == Counts().read(TEXTS[:1])
    assert reader.batches == [TEXTS]
    assert ahead.read(TEXTS[3:]) == Counts().read(TEXTS[3:])
    assert len(reader.batches) == 1


def test_several_readers_of_one_text_cost_one_pass() -> None:
    reader = Counts()
    ahead = ReadAheadTextReader(reader)
    for _ in range(3):
        ahead.read(["a b", "b c", "a b"])
    assert reader.batches == [["a b", "b c"]]


def test_no_more_is_read_ahead_than_the_bound_and_the_rest_with_the_next_text() -> None:
    reader = Counts()
    ahead = ReadAheadTextReader(reader)
    texts = [f"a {number}" for number in range(2 * MAX_AHEAD)]
    ahead.expect(texts)
    ahead.read(texts[:1])
    ahead.read(texts[MAX_AHEAD + 1 : MAX_AHEAD + 2])
    assert [len(batch) for batch in reader.batches] == [MAX_AHEAD + 1, MAX_AHEAD - 1]


def test_what_follows_is_begun_and_not_again_where_a_cache_knew_it_all() -> None:
    begun: list[list[str]] = []

    def begin(texts):
        begun.append(list(texts))
        return False

    ahead = ReadAheadTextReader(Counts(), begin)
    texts = [f"a {number}" for number in range(2 * MAX_AHEAD)]
    ahead.expect(texts)
    assert begun == [texts[:MAX_AHEAD]]
    ahead.expect(texts)  # nothing was missing meanwhile
    assert len(begun) == 1
    ahead.read(texts[:1])
    assert begun[1:] == [texts[MAX_AHEAD + 1 :]]
    ahead.expect(["b", texts[0], "c"])
    assert begun[2:] == [["b", "c"]]


def test_few_are_read_with_a_text_where_a_core_begins_with_those_that_follow() -> None:
    begun: list[list[str]] = []

    def begin(texts):
        begun.append(list(texts))
        return True

    reader = Counts()
    ahead = ReadAheadTextReader(reader, begin)
    texts = [f"a {number}" for number in range(2 * MAX_AHEAD)]
    ahead.expect(texts)
    assert ahead.read(texts[:2]) == Counts().read(texts[:2])
    few = len(reader.batches[0])
    assert 2 < few < MAX_AHEAD // 4
    assert begun[1:] == [texts[few : few + MAX_AHEAD]]


def test_what_is_held_is_bounded_and_what_is_gone_is_read_again() -> None:
    reader = Counts()
    ahead = ReadAheadTextReader(reader)
    many = [f"{number} a" for number in range(MAX_HELD + 5)]
    for text in many:
        ahead.read([text])
    assert len(ahead._held) == MAX_HELD
    ahead.read(many[-1:])
    assert len(reader.batches) == len(many)
    ahead.read(many[:1])
    assert len(reader.batches) == len(many) + 1


def test_a_withdrawn_item_is_forgotten_with_its_body() -> None:
    reader = Counts()
    ahead = ReadAheadTextReader(reader)
    ahead.read(["a b", "a b\nwith a body", "c"])
    ahead.forget("a b")
    ahead.read(["c"])
    ahead.read(["a b"])
    assert reader.batches[1:] == [["a b"]]


def news(number: int, headline: str) -> News:
    return News(number, number, "wire", number, f"n{number}", headline, ("IBM",))


@pytest.mark.parametrize("is_told", [True, False])
def test_a_run_that_is_told_what_follows_scores_the_same(is_told: bool) -> None:
    lines = [
        "IBM cuts its outlook after a weak quarter",
        "  IBM   wins a large order from the army  ",
        "IBM up",
        "Shares of IBM fall 4%",
    ]
    items = [news(number, line) for number, line in enumerate(lines, 1)]
    plain, told = build_news_processor(Settings()), build_news_processor(Settings())
    if is_told:
        told.expect(items)
    found = []
    for made in (plain, told):
        for item in items:
            made.receive(item)
            made.score_pending()
        found.append(made.records([item.id for item in items]))
    assert len(found[0]) == len(lines)
    assert found[0] == found[1]
    assert all(record.facts is not None for record in found[0].values())


def test_a_feed_of_files_tells_of_its_news_before_it_comes(tmp_path) -> None:

    from htfi.adapters.stores.held_news import QuarantineFile
    from htfi.domain.time import SystemClock
    from htfi.wiring.feeds import open_feed, resolve

    (tmp_path / "wire.jsonl").write_text(
        "".join(
            f'{{"ts": "2024-01-0{day}T10:00:00Z", "id": "n{day}", "headline": "line {day}"}}\n'
            for day in (1, 2, 3)
        )
    )
    quarantine = QuarantineFile(tmp_path / "quarantine.jsonl", None)
    feed = open_feed(
        resolve([str(tmp_path / "wire.jsonl")], None),
        inbox=tmp_path / "inbox",
        quarantine=quarantine,
        clock=SystemClock(),
    )
    assert isinstance(feed, MergedFeed)
    told: list[str] = []
    feed.announce = lambda items: told.extend(item.id for item in items)
    came = []
    for item in feed:
        came.append(item.id)
        assert item.id in told
    feed.close()
    assert told == came == ["n1", "n2", "n3"]
