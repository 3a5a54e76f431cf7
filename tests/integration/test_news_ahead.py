"""News of files that is read in a process of its own: the same readings, the same ledger, whatever becomes of it."""

import os
import signal
import time

import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.narrative.processor import NewsProcessor
from htfi.wiring import news_ahead
from htfi.wiring.news import build_news_processor
from htfi.wiring.news_ahead import MIN_ITEMS, NewsAhead, reads_ahead
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


def await_ready(ahead: NewsAhead) -> None:
    until_s = time.monotonic() + 60.0
    while ahead._process is not None and not ahead._process.is_ready and time.monotonic() < until_s:
        time.sleep(0.02)


def records(processor: NewsProcessor, news: list[News]) -> object:
    for item in news:
        processor.receive(item)
        processor.score_pending()
    return processor.records([item.id for item in news])


@pytest.fixture(scope="module")
def ahead():
    told: list[str] = []
    opened = NewsAhead(Settings(), told.append)
    yield opened, told
    opened.close()
    assert len(told) <= 1


def test_what_was_read_elsewhere_is_what_the_run_would_have_read(ahead) -> None:
    opened, told = ahead
    first, then = items(MIN_ITEMS), items(24, MIN_ITEMS)
    plain, helped = build_news_processor(Settings()), build_news_processor(Settings())
    helped.items_ahead = opened
    for one in (plain, helped):
        one.select("IBM", 0)  # the run has a series of it
    helped.expect(first)
    await_ready(opened)
    taken = []
    take = opened.take
    opened.take = lambda item: taken.append(take(item)) or taken[-1]
    released = replace(first[3], row=9_999, id="released", released_by="someone")
    news = [*first[:10], released, *first[10:]]
    expected = records(plain, [*news, *then])
    found = dict(records(helped, news))
    helped.expect(then)
    found |= records(helped, then)
    assert found == expected
    num_prepared = sum(one is not None for one in taken)
    assert (
        num_prepared >= len(first) + len(then) - 2
    )  # one is sent before the child is asked, one was not announced
    assert any(one is not None and one.passages for one in taken)
    assert told == []


def test_bodies_are_read_elsewhere_once_the_run_has_a_series(ahead) -> None:
    opened, _ = ahead
    news = [
        replace(
            one, id=f"XOM {one.id}", symbols=("XOM",), headline=one.headline.replace("IBM", "Exxon Mobil")
        )
        for one in items(40, 5_000)
    ]
    plain, helped = build_news_processor(Settings()), build_news_processor(Settings())
    helped.items_ahead = opened
    helped.expect(news)
    before = [opened.take(item) for item in news[:20]]
    assert any(one is not None and one.is_unread for one in before)
    assert not any(one is not None and one.passages for one in before)
    helped.select("XOM", 0)
    helped.expect(news[20:])
    plain.select("XOM", 0)
    found = records(helped, news[20:])
    assert found == records(plain, news[20:])
    assert any(note.facts.body is not None for note in found.values())


def test_items_that_never_come_are_passed_over(ahead) -> None:
    opened, _ = ahead
    opened.expect(items(30, 1_000), {"IBM"})
    opened.expect(items(30, 2_000), {"IBM"})
    (item,) = items(1, 2_004)
    found = opened.take(item)
    assert found is not None
    assert found.shown.headline == " ".join(item.headline.split())


def test_a_run_goes_on_where_the_process_is_killed(ahead) -> None:
    opened, told = ahead
    news = items(40, 3_000)
    plain, helped = build_news_processor(Settings()), build_news_processor(Settings())
    helped.items_ahead = opened
    helped.expect(news)
    found = dict(records(helped, news[:5]))
    os.kill(opened._process._child.pid, signal.SIGKILL)
    found |= records(helped, news[5:])
    assert found == records(plain, news)
    assert len(told) == 1
    helped.expect(items(5, 4_000))
    assert opened.take(items(1, 4_000)[0]) is None


def test_few_items_start_no_process() -> None:
    opened = NewsAhead(Settings(), print)
    assert opened.expect(items(MIN_ITEMS - 1), {"IBM"}) is False
    assert opened.take(items(1)[0]) is None
    opened.close()


def test_one_core_or_one_process_reads_in_the_run(monkeypatch) -> None:
    monkeypatch.setattr(news_ahead, "usable_cores", lambda: [0, 1])
    assert reads_ahead(Settings())
    assert not reads_ahead(override(Settings(), "encoding", threads=1))
    assert not reads_ahead(override(Settings(), "encoding", model="none"))
    monkeypatch.setattr(news_ahead, "usable_cores", lambda: [0])
    assert not reads_ahead(Settings())
