"""Standard input goes through its inbox: a run that is killed goes on without a row lost or taken twice."""

import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from htfi.adapters.feeds.live import Inbox, InboxRow
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.events import Bar, FeedItem, TimePassed, Trade
from htfi.domain.time import NS_PER_S, SystemClock, format_ns
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.wiring.feeds import open_feed, resolve

T0_NS = 1_381_132_800 * NS_PER_S


class StepClock:
    """A clock that a test sets."""

    def __init__(self, now_ns: int) -> None:
        self.time_ns = now_ns

    def now_ns(self) -> int:
        return self.time_ns


def rows(first: int, last: int) -> list[str]:
    return [
        f'{{"ts":"{format_ns(T0_NS + n * NS_PER_S)}","symbol":"A","price":{n}}}'
        for n in range(first, last + 1)
    ]


@contextmanager
def feed(
    folder: Path,
    lines: list[str] | None,
    position: dict[str, Any] | None = None,
    stamp: str = "",
    clock: Any = None,
) -> Iterator[tuple[MergedFeed, Callable[[str], None]]]:
    """A feed on a pipe; with `lines` these are piped and the pipe is closed, else the test says more."""
    reading, writing = os.pipe()
    quarantine = QuarantineFile(folder / "q.jsonl", position["quarantine"] if position else None)
    specs = resolve(["-"], stamp=stamp)
    merged = open_feed(
        specs,
        inbox=folder / "inbox",
        quarantine=quarantine,
        clock=clock or SystemClock(),
        position=position["feed"] if position else None,
        stdin=reading,
    )

    def say(text: str) -> None:
        os.write(writing, text.encode())

    if lines is not None:
        say("".join(f"{line}\n" for line in lines))
        os.close(writing)
    try:
        yield merged, say
    finally:
        if lines is None:
            os.close(writing)
        merged.close()
        quarantine.close()


def prices(items: list[FeedItem]) -> list[float]:
    return [item.price for item in items if isinstance(item, Trade)]


def saved(merged: MergedFeed) -> dict[str, Any]:
    return {"feed": merged.position(), "quarantine": {"num_bytes": 0, "counts": {}}}


def take(merged: MergedFeed, count: int) -> list[FeedItem]:
    items = iter(merged)
    return [next(items) for _ in range(count)]


def test_piped_rows_become_events_and_are_written_down(tmp_path: Path) -> None:
    with feed(tmp_path, [*rows(1, 3), "junk", ""]) as (merged, _):
        assert prices(list(merged)) == [1.0, 2.0, 3.0]
        assert merged.progress() is None
    assert len((tmp_path / "inbox" / "stdin.jsonl").read_bytes().splitlines()) == 4
    assert b'"malformed"' in (tmp_path / "q.jsonl").read_bytes()


def test_the_same_stream_piped_again_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with feed(tmp_path, rows(1, 5)) as (merged, _):
        assert prices(take(merged, 3)) == [1.0, 2.0, 3.0]
        position = saved(merged)
    with feed(tmp_path, rows(1, 8), position) as (merged, _):
        assert prices(list(merged)) == [4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_continuation_is_added_to_what_was_there(tmp_path: Path) -> None:
    with feed(tmp_path, rows(1, 5)) as (merged, _):
        take(merged, 3)
        position = saved(merged)
    with feed(tmp_path, rows(6, 8), position) as (merged, _):
        assert prices(list(merged)) == [4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_continuation_that_begins_like_the_inbox_is_not_cut(tmp_path: Path) -> None:
    other = rows(1, 2) + rows(9, 9)
    with feed(tmp_path, rows(1, 5)) as (merged, _):
        assert len(list(merged)) == 5
        position = saved(merged)
    with feed(tmp_path, other, position) as (merged, _):
        assert prices(list(merged)) == [9.0]
    contents = (tmp_path / "inbox" / "stdin.jsonl").read_text().splitlines()
    assert (
        len(contents) == 8
    )  # the two rows that came again stand there too, and are refused as late or double
    assert (tmp_path / "q.jsonl").read_bytes().count(b"\n") == 2


def test_a_shorter_repeat_adds_nothing(tmp_path: Path) -> None:
    with feed(tmp_path, rows(1, 5)) as (merged, _):
        take(merged, 3)
        position = saved(merged)
    with feed(tmp_path, rows(1, 2), position) as (merged, _):
        assert prices(list(merged)) == [4.0, 5.0]


def test_rows_flow_while_the_pipe_is_open(tmp_path: Path) -> None:
    with feed(tmp_path, None) as (merged, say):
        say("\n".join(rows(1, 3)) + "\n" + rows(4, 4)[0][:10])
        assert prices(take(merged, 2)) == [1.0, 2.0]


def test_arrival_stamps_never_step_back_and_time_passes_in_silence(tmp_path: Path) -> None:
    clock = StepClock(T0_NS)
    with feed(tmp_path, None, stamp="arrival", clock=clock) as (merged, say):
        items = iter(merged)
        say(rows(1, 1)[0] + "\n")
        first = next(item for item in items if not isinstance(item, TimePassed))
        clock.time_ns = T0_NS + 5 * NS_PER_S
        passed = next(items)
        clock.time_ns = T0_NS + 1 * NS_PER_S
        say(rows(2, 2)[0] + "\n")
        second = next(items)
    assert isinstance(first, Trade)
    assert (first.available_at_ns, first.event_time_ns) == (T0_NS, T0_NS + NS_PER_S)
    assert passed == TimePassed(T0_NS + 5 * NS_PER_S)
    assert isinstance(second, Trade)
    assert second.available_at_ns == T0_NS + 5 * NS_PER_S


def test_a_clock_behind_the_last_run_still_goes_on_from_it(tmp_path: Path) -> None:
    with feed(tmp_path, rows(1, 2), stamp="arrival", clock=StepClock(T0_NS)) as (merged, _):
        list(merged)
        position = saved(merged)
    with feed(tmp_path, rows(1, 3), position, "arrival", StepClock(T0_NS - 60 * NS_PER_S)) as (merged, _):
        (third,) = [item for item in merged if not isinstance(item, TimePassed)]
    assert third.available_at_ns == T0_NS


def test_piped_bars_are_taken_at_their_word_and_must_give_it(tmp_path: Path) -> None:
    """What the next row would tell of a bar's length comes after the bar was used."""
    bars = [
        f'{{"ts":"{format_ns(T0_NS + n * 60 * NS_PER_S)}","symbol":"A","close":{n + 1}{stated}}}'
        for n, stated in enumerate(("", ',"interval":"M1"', ',"interval":"h4"'))
    ]
    with feed(tmp_path, bars) as (merged, _):
        found = list(merged)
    assert [(item.interval, item.row) for item in found if isinstance(item, Bar)] == [("1m", 2), ("4h", 3)]
    assert b"state `interval`" in (tmp_path / "q.jsonl").read_bytes()


def test_a_line_that_a_crash_tore_is_taken_away(tmp_path: Path) -> None:
    bell = threading.Event()
    inbox = Inbox(tmp_path / "i.jsonl", StepClock(7), bell, 0)
    inbox.append([(b'{"a":1}', 7), (b"\xff", 1), (b"long", 2_000_000)])
    inbox.close()
    with (tmp_path / "i.jsonl").open("ab") as file:
        file.write(b'{"at":9,"row":"half')
    again = Inbox(tmp_path / "i.jsonl", StepClock(3), bell, 0)
    assert list(again.rows()) == [
        InboxRow(7, row='{"a":1}'), InboxRow(7, hex="ff"), InboxRow(7, row="long", num_bytes=2_000_000),
    ]  # fmt: skip
    again.append([(b"next", 4)])
    assert [arrival.at for arrival in again.rows()] == [7, 7, 7, 7]
    again.close()


def test_an_inbox_on_a_full_disk_ends_the_run_with_one_line(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        with (
            feed(tmp_path, rows(1, 5)) as (merged, _),
            pytest.raises(DependencyUnavailable, match=r"stdin\.jsonl: File too large: free some disk space"),
        ):
            list(merged)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_an_inbox_that_lost_rows_is_refused(tmp_path: Path) -> None:
    with feed(tmp_path, rows(1, 5)) as (merged, _):
        list(merged)
        position = saved(merged)
    position["feed"]["sources"]["stdin"]["mark"] = [3, 10_000]
    with (
        pytest.raises(IntegrityError, match="shorter than when the run stopped"),
        feed(tmp_path, [], position),
    ):
        pass
