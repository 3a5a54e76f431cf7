"""The merge keeps time's order over files and live sources, and never lets a silent one stop the others for good."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.events import Event, FeedItem, News, QuarantinedRow, TimePassed, Trade
from htfi.domain.time import NS_PER_S
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.pipeline.intake.reorder import LEAP_NS, NO_LEAP_NS
from htfi.pipeline.intake.source import OrderedSource, ReadPosition, RowBlock

T0_NS = 1_381_132_800 * NS_PER_S


class ListReader:
    """Blocks from a list; a live one gives what `blocks` holds and never ends."""

    def __init__(
        self, blocks: list[list[Event | QuarantinedRow]], now_ns: Callable[[], int] | None = None
    ) -> None:
        self.blocks = blocks
        self.live = now_ns is not None
        self._now_ns = now_ns
        self._row = 0

    def start(self, mark: ReadPosition | None) -> None:
        assert mark is None

    def read(self) -> RowBlock | None:
        known_ns = self._now_ns() if self._now_ns else None
        if not self.blocks:
            return RowBlock([self._row], [], known_until_ns=known_ns) if self.live else None
        items = self.blocks.pop(0)
        self._row += len(items)
        return RowBlock([self._row - len(items)], items)

    def progress(self) -> float | None:
        return None if self.live else 0.5

    def close(self) -> None: ...


class Aside:
    """A quarantine that only remembers."""

    def __init__(self) -> None:
        self.rejections: list[QuarantinedRow] = []

    def set_aside(self, rejection: QuarantinedRow) -> None:
        self.rejections.append(rejection)

    def counts(self) -> dict[str, int]:
        return {}

    def position(self) -> dict[str, Any]:
        return {}

    def close(self) -> None: ...


def trade(source: str, second: float, row: int) -> Trade:
    at_ns = T0_NS + round(second * NS_PER_S)
    return Trade(at_ns, at_ns, source, row, "A", 1.0, 1.0)


def source(name: str, reader: ListReader, tolerance_ns: int = 0) -> OrderedSource:
    leap_ns = NO_LEAP_NS if reader.live else LEAP_NS
    return OrderedSource(name, reader, tolerance_ns, keep_duplicates=True, leap_ns=leap_ns)


def merge(*sources: OrderedSource, aside: Aside | None = None) -> MergedFeed:
    return MergedFeed(sources, aside or Aside(), threading.Event())


def told(items: Sequence[FeedItem]) -> list[tuple[str, int]]:
    return [(item.source, item.row) for item in items if not isinstance(item, TimePassed)]


def test_ties_go_by_source_then_row() -> None:
    first = ListReader([[trade("a", 0, 1), trade("a", 1, 2)], [trade("a", 1, 3), trade("a", 2, 4)]])
    second = ListReader([[trade("b", 1, 1)], [trade("b", 1, 2), trade("b", 2, 3)]])
    found = told(list(merge(source("a", first), source("b", second))))
    assert found == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("a", 4), ("b", 3)]


def test_the_last_rows_of_a_file_need_no_later_one() -> None:
    feed = merge(source("a", ListReader([[trade("a", 0, 1), trade("a", 0.5, 2)]]), NS_PER_S))
    assert told(list(feed)) == [("a", 1), ("a", 2)]


def test_refused_rows_reach_the_quarantine_when_the_stream_reaches_them() -> None:
    aside = Aside()
    bad = QuarantinedRow("a", 2, "malformed", "", "")
    feed = merge(source("a", ListReader([[trade("a", 0, 1), bad, trade("a", 1, 3)]])), aside=aside)
    items = iter(feed)
    assert next(items).available_at_ns == T0_NS
    assert aside.rejections == []
    next(items)
    assert aside.rejections == [bad]


def test_a_silent_live_source_does_not_hold_up_files() -> None:
    file = ListReader([[trade("f", 0, 1)], [trade("f", 1, 2)]])
    live = ListReader([], now_ns=lambda: T0_NS + 100 * NS_PER_S)
    items = iter(merge(source("f", file), source("l", live)))
    assert told([next(items), next(items)]) == [("f", 1), ("f", 2)]


def test_time_passes_while_a_live_source_is_silent() -> None:
    clock = iter(range(T0_NS, T0_NS + 10 * NS_PER_S, NS_PER_S // 4))
    live = ListReader([[trade("l", 0, 1)]], now_ns=lambda: next(clock))
    feed = merge(source("l", live))
    items = iter(feed)
    assert told([next(items)]) == [("l", 1)]
    later = [next(items), next(items)]
    assert all(isinstance(item, TimePassed) for item in later)
    assert T0_NS < later[0].available_at_ns < later[1].available_at_ns
    live.blocks.append([trade("l", 5, 2)])
    assert told([next(items)]) == [("l", 2)]


def test_a_clock_that_stands_still_passes_no_time() -> None:
    live = ListReader([[trade("l", 0, 1)]], now_ns=lambda: T0_NS)
    feed = merge(source("l", live))
    items = iter(feed)
    next(items)
    threading.Timer(0.6, feed.stop).start()
    assert list(items) == []


class StoppedBell(threading.Event):
    """A bell that ends the feed where it would wait: what came before came without waiting."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def wait(self, timeout: float | None = None) -> bool:
        self._stop()
        return False


@pytest.mark.parametrize("is_news", [True, False])
def test_time_passes_at_once_after_news_alone_so_that_it_is_answered(is_news: bool) -> None:
    item = News(T0_NS, T0_NS, "l", 1, "n", "Acme cuts its forecast", ("A",)) if is_news else trade("l", 0, 1)
    live = ListReader([[item]], now_ns=lambda: T0_NS + 1)
    feed: MergedFeed
    feed = MergedFeed([source("l", live)], Aside(), StoppedBell(lambda: feed.stop()))
    first, *rest = feed
    assert first == item
    assert rest == ([TimePassed(T0_NS + 1)] if is_news else [])


def test_time_does_not_pass_after_news_while_more_may_come_of_its_instant() -> None:
    item = News(T0_NS, T0_NS, "l", 1, "n", "Acme cuts its forecast", ("A",))
    live, other = ListReader([[item]], now_ns=lambda: T0_NS + 5), ListReader([], now_ns=lambda: T0_NS)
    feed: MergedFeed
    feed = MergedFeed([source("l", live), source("o", other)], Aside(), StoppedBell(lambda: feed.stop()))
    assert list(feed) == [item]


def test_the_end_is_told_once_after_the_last_item() -> None:
    feed = merge(source("a", ListReader([[trade("a", 0, 1), trade("a", 1, 2)]])))
    told_after: list[int] = []
    taken: list[FeedItem] = []
    feed.on_end = lambda: told_after.append(len(taken))
    for item in feed:
        taken.append(item)  # noqa: PERF402 - the end is told while it goes on
    assert told_after == [2]


def test_stop_ends_the_wait_for_a_live_source() -> None:
    feed = merge(source("l", ListReader([], now_ns=lambda: T0_NS)))
    threading.Timer(0.05, feed.stop).start()
    assert all(isinstance(item, TimePassed) for item in feed)


def test_progress_is_known_where_any_source_has_an_end() -> None:
    file, live = ListReader([]), ListReader([], now_ns=lambda: T0_NS)
    assert merge(source("f", file), source("l", live)).progress() == 0.0
    assert merge(source("l", live)).progress() is None


def test_what_a_reader_raises_reaches_the_caller() -> None:
    class Broken(ListReader):
        def read(self) -> RowBlock | None:
            raise DependencyUnavailable("disk gone")

    with pytest.raises(DependencyUnavailable, match="disk gone"):
        list(merge(source("a", Broken([]))))


def test_progress_counts_rows_handed_out_not_rows_read_ahead() -> None:
    half_read = ListReader([[trade("f", second, second + 1) for second in range(4)]])
    feed = merge(source("f", half_read))
    items = iter(feed)
    next(items)
    assert feed.progress() == 1 / 8
    next(items)
    assert feed.progress() == 2 / 8
