"""News of files that is read in processes of its own: the same records, the same ledger, whatever becomes of them."""

import os
import signal
import time
from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.narrative.preparing import MAX_TOGETHER
from htfi.narrative.processor import NewsProcessor
from htfi.wiring import news_ahead
from htfi.wiring.news import build_news_processor
from htfi.wiring.news_ahead import MIN_ITEMS, NewsAhead, num_processes, slices
from htfi.wiring.settings import Settings, override
from ibm_news import BODY, LINES


def items(num: int, first: int = 0) -> list[News]:
    return [
        News(
            number, number, "wire", number, f"n{number}", f"{LINES[number % len(LINES)]} {number}", ("IBM",),
            body=BODY if number % 2 else "",
        )
        for number in range(first + 1, first + num + 1)
    ]  # fmt: skip


def records(processor: NewsProcessor, news: list[News], together: int = 1) -> dict[str, bytes]:
    """The records of items by id, as bytes; `together` are received before they are scored."""
    for number, item in enumerate(news, 1):
        processor.receive(item)
        if number % together == 0:
            processor.score_pending()
    found = processor.records([item.id for item in news])
    return {name: msgspec.msgpack.encode(record) for name, record in found.items()}


def new_processor(ahead: NewsAhead | None = None) -> NewsProcessor:
    processor = build_news_processor(Settings())
    processor.items_ahead = ahead
    return processor


def new_ahead(num: int, told: list[str]) -> NewsAhead:
    processor = new_processor()
    preparer = processor.facts.preparer(processor.sanitiser.undisguise)
    assert preparer is not None
    return NewsAhead(Settings(), preparer, num, told.append)


def pids(ahead: NewsAhead) -> list[int]:
    assert ahead._pool is not None
    return [child.process._child.pid for child in ahead._pool._children]


@pytest.fixture(scope="module")
def ahead():
    told: list[str] = []
    opened = new_ahead(1, told)
    opened.start()
    assert opened.await_ready(60.0)
    yield opened, told
    opened.close()
    assert told == []


def test_what_was_read_elsewhere_is_what_the_run_would_have_read(ahead) -> None:
    opened, _ = ahead
    first, then = items(MIN_ITEMS), items(24, MIN_ITEMS)
    plain, helped = new_processor(), new_processor(opened)
    for one in (plain, helped):
        one.select("IBM", 0)  # the run has a series of it
    helped.expect(first)
    taken = []
    take = opened.take
    opened.take = lambda item: taken.append(take(item)) or taken[-1]
    released = replace(first[3], row=9_999, id="released", released_by="someone")
    news = [*first[:10], released, *first[10:]]
    expected = records(plain, [*news, *then])
    found = records(helped, news)
    helped.expect(then)
    found |= records(helped, then)
    opened.take = take
    assert found == expected
    assert sum(one is not None for one in taken) == len(news) + len(then) - 1  # one was not announced
    assert any(one is not None and one.passages for one in taken)


@pytest.mark.parametrize("num", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_records_are_the_same_with_any_number_of_processes_and_after_any_is_killed(num: int) -> None:
    told: list[str] = []
    opened = new_ahead(num, told)
    try:
        news = items(160, 6_000)
        plain, helped = new_processor(), new_processor(opened)
        for one in (plain, helped):
            one.select("IBM", 0)
        opened.start()
        assert opened.await_ready(60.0)
        helped.expect(news)
        found = records(helped, news[:40], together=8)
        for pid in pids(opened)[1:]:
            os.kill(pid, signal.SIGKILL)
        found |= records(helped, news[40:], together=8)
        assert found == records(plain, news, together=8)
        assert len(told) == num - 1
    finally:
        opened.close()


def test_bodies_are_read_elsewhere_once_the_run_has_a_series(ahead) -> None:
    opened, _ = ahead
    news = [
        replace(
            one, id=f"XOM {one.id}", symbols=("XOM",), headline=one.headline.replace("IBM", "Exxon Mobil")
        )
        for one in items(40, 5_000)
    ]
    plain, helped = new_processor(), new_processor(opened)
    helped.expect(news)
    before = [opened.take(item) for item in news[:20]]
    assert any(one is not None and one.is_unread for one in before)
    assert not any(one is not None and one.passages for one in before)
    helped.select("XOM", 0)
    helped.expect(news[20:])
    plain.select("XOM", 0)
    assert records(helped, news[20:]) == records(plain, news[20:])
    assert any(note.facts.body is not None for note in helped.records([one.id for one in news]).values())


def test_items_that_never_come_are_passed_over(ahead) -> None:
    opened, _ = ahead
    opened.expect(items(30, 1_000), {"IBM"})
    opened.expect(items(90, 2_000), {"IBM"})
    (item,) = items(1, 2_050)
    found = opened.take(item)
    assert found is not None
    assert found.shown.headline == " ".join(item.headline.split())
    assert opened.take(items(1, 2_004)[0]) is None


def test_a_run_goes_on_alone_where_its_only_process_is_killed() -> None:
    told: list[str] = []
    opened = new_ahead(1, told)
    try:
        news = items(MIN_ITEMS, 3_000)
        plain, helped = new_processor(), new_processor(opened)
        helped.expect(news)  # which starts the process; it is not ready yet
        found = records(helped, news[:5])
        os.kill(pids(opened)[0], signal.SIGKILL)
        found |= records(helped, news[5:])
        assert found == records(plain, news)
        while not told:
            time.sleep(0.01)
        assert len(told) == 1
        assert not opened.expect(items(5, 4_000), {"IBM"})
        assert opened.take(items(1, 4_000)[0]) is None
    finally:
        opened.close()


def test_few_items_start_no_process() -> None:
    opened = new_ahead(1, [])
    assert opened.expect(items(MIN_ITEMS - 1), {"IBM"}) is False
    assert opened.take(items(1)[0]) is None
    opened.close()


def test_there_is_one_process_for_each_core_beside_the_runs_own(monkeypatch) -> None:
    monkeypatch.setattr(news_ahead, "usable_cores", lambda: [0, 1])
    assert num_processes(Settings()) == 1
    assert num_processes(override(Settings(), "encoding", threads=1)) == 0
    assert num_processes(override(Settings(), "encoding", model="none")) == 0
    monkeypatch.setattr(news_ahead, "usable_cores", lambda: [0])
    assert num_processes(Settings()) == 0
    monkeypatch.setattr(news_ahead, "usable_cores", lambda: list(range(64)))
    assert num_processes(Settings()) == 3
    assert num_processes(override(Settings(), "encoding", threads=3)) == 2


def test_slices_hold_all_items_in_order_and_become_smaller_at_the_end() -> None:
    news = items(300)
    cut = list(slices(news, 2))
    assert [item for one in cut for item in one] == news
    sizes = [len(one) for one in cut]
    assert sizes[0] == MAX_TOGETHER
    assert all(after <= before for before, after in pairwise(sizes))
    assert sizes[-2] == 8
    assert [len(one) for one in slices(news[:3], 2)] == [3]
    assert list(slices([], 2)) == []
