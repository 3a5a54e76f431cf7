"""News out of quarantine: an item enters the run between two events, in the same place after a crash or in a rerun."""

import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from htfi.adapters.stores.admissions import (
    ADMITTED_FILE,
    REQUESTED_FILE,
    AdmissionsFile,
    read_admissions,
    request_admission,
)
from htfi.adapters.stores.held_news import HELD_NEWS, HeldNewsFile, read_held
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Event, FeedItem, News, TimePassed, Trade
from htfi.domain.news import Screening
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.pipeline.components import InputChain
from htfi.pipeline.operator_actions import NewsAdmission, OperatorFeed
from htfi.pipeline.ports import Position

S = 10**9
START = 1_700_000_000 * S


def stream(num: int = 40) -> list[FeedItem]:
    """Trades, silence, and every seventh event an item of news, forged where it is the third."""
    told: list[FeedItem] = []
    for place in range(num):
        at_ns = START + place * S
        if place % 7 == 3:
            publisher = "Reuteгs" if place in (3, 17) else ""
            told.append(
                News(
                    at_ns,
                    at_ns,
                    "feed",
                    place,
                    f"n{place}",
                    f"Acme story {place}",
                    ("ACME",),
                    publisher=publisher,
                )
            )
        elif place % 5 == 4:
            told.append(TimePassed(at_ns))
        else:
            told.append(Trade(at_ns, at_ns, "ticks", place, "ACME", 10.0, 1.0))
    return told


class ListFeed:
    def __init__(self, items: list[FeedItem], position: Position | None = None) -> None:
        self._items, self._next = items, position["next"] if position else 0

    def __iter__(self) -> Iterator[FeedItem]:
        while self._next < len(self._items):
            self._next += 1
            yield self._items[self._next - 1]

    def position(self) -> Position:
        return {"next": self._next}

    def progress(self) -> float | None:
        return None

    def stop(self) -> None:
        self._items = []

    def close(self) -> None: ...


def no_ask(_: int) -> None: ...


def live(
    folder: Path,
    ask: Callable[[int], None] = no_ask,
    stop_after: int = 10**9,
    saved: dict[str, Position] | None = None,
    again: Path | None = None,
    items: list[FeedItem] | None = None,
) -> tuple[list[Event], dict[str, Position], str]:
    """A run that screens, holds and digests; `ask(n)` is called after the n-th item. Its events, state and digest."""
    folder.mkdir(exist_ok=True)
    held = HeldNewsFile(folder / HELD_NEWS, saved["held"] if saved else None)
    position = saved["feed"] if saved else None
    told = stream() if items is None else items
    ticks = iter(range(0, 10**15, 10**9))  # each look at the clock is a second later
    feed = OperatorFeed(
        ListFeed(told, position["feed"] if position else None),
        held,
        AdmissionsFile(folder, again),
        ticks.__next__,
        position,
    )
    sanitiser, chain, events = Sanitiser(), InputChain(), []
    if saved:
        sanitiser.restore(saved["sanitiser"])
        chain.restore(saved["chain"])
    state: dict[str, Position] = {}
    for number, item in enumerate(feed, 1):
        if not isinstance(item, TimePassed):
            events.append(item)
            chain.add(item)
        if isinstance(item, News):
            screened = sanitiser.screen(item)
            if screened.verdict is Screening.QUARANTINE:
                held.hold(item, screened)
        ask(number)
        if number >= stop_after:
            break
    state = {
        "held": held.position(), "feed": feed.position(), "sanitiser": sanitiser.state(), "chain": chain.state()
    }  # fmt: skip
    held.close()
    return events, state, chain.close().digest


def asks(folder: Path, at: int, number: int = 1, by: str = "Ann Lee") -> Callable[[int], None]:
    def ask(done: int) -> None:
        if done == at:
            held = list(read_held(folder / HELD_NEWS))[number - 1]
            request_admission(
                folder, NewsAdmission(number, held.item.id, held.screened.digest, by, "checked")
            )

    return ask


def test_released_item_enters_at_the_runs_own_time_with_the_persons_name(tmp_path: Path):
    events, _, _ = live(tmp_path / "a", asks(tmp_path / "a", at=12))
    (released,) = [one for one in events if isinstance(one, News) and one.released_by]
    assert (released.id, released.released_by, released.publisher) == ("n3", "Ann Lee: checked", "Reuteгs")
    before = events[events.index(released) - 1]
    assert released.available_at_ns >= before.available_at_ns > released.event_time_ns
    assert [one.available_at_ns for one in events] == sorted(one.available_at_ns for one in events)


def test_rerun_with_the_same_releases_comes_to_the_same_digest_and_without_them_does_not(tmp_path: Path):
    first = tmp_path / "a"
    _, _, digest = live(first, asks(first, at=12))
    _, _, again = live(tmp_path / "b", again=first / ADMITTED_FILE)
    _, _, without = live(tmp_path / "c")
    assert again == digest != without
    assert (tmp_path / "b" / ADMITTED_FILE).read_bytes() == (first / ADMITTED_FILE).read_bytes()
    assert (tmp_path / "b" / HELD_NEWS).read_bytes() == (first / HELD_NEWS).read_bytes()


def test_rerun_with_silence_elsewhere_comes_to_the_same_digest(tmp_path: Path):
    first = tmp_path / "a"
    _, _, digest = live(first, asks(first, at=12))
    loud = [one for one in stream() if not isinstance(one, TimePassed)]
    assert live(tmp_path / "b", again=first / ADMITTED_FILE, items=loud)[2] == digest


@pytest.mark.parametrize("stop", range(1, 44))
def test_run_stopped_anywhere_goes_on_to_the_same_bytes(tmp_path: Path, stop: int):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _, _, digest = live(whole, asks(whole, at=12))
    _, saved, _ = live(parts, asks(parts, at=12), stop_after=stop)
    rest = asks(parts, at=12 - stop) if stop < 12 else no_ask
    _, _, after = live(parts, rest, saved=saved)
    assert after == digest
    for name in (HELD_NEWS, ADMITTED_FILE):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


def test_run_killed_after_a_release_took_effect_has_it_at_the_same_place(tmp_path: Path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _, _, digest = live(whole, asks(whole, at=12))
    _, saved, _ = live(parts, stop_after=8)
    live(parts, asks(parts, at=4), stop_after=20, saved=saved)  # killed: what it would have saved is lost
    assert live(parts, saved=saved)[2] == digest
    assert (parts / ADMITTED_FILE).read_bytes() == (whole / ADMITTED_FILE).read_bytes()


def test_item_released_after_the_end_enters_when_the_run_is_started_again(tmp_path: Path):
    _, saved, _ = live(tmp_path)
    asks(tmp_path, at=0)(0)
    events, _, _ = live(tmp_path, saved=saved)
    assert [one.released_by for one in events if isinstance(one, News)] == ["Ann Lee: checked"]
    assert events[0].available_at_ns == stream()[-1].available_at_ns


def test_second_release_of_an_item_is_refused_before_and_after_it_took_effect(tmp_path: Path):
    _, saved, _ = live(tmp_path)
    asks(tmp_path, at=0)(0)
    with pytest.raises(InvalidInput, match="already admitted by Ann Lee"):
        asks(tmp_path, at=0, by="Bob")(0)
    live(tmp_path, saved=saved)
    with pytest.raises(InvalidInput, match="already admitted by Ann Lee"):
        asks(tmp_path, at=0, by="Bob")(0)
    asked, entered = read_admissions(tmp_path)
    assert (len(asked), len(entered)) == (1, 1)


def test_release_of_an_item_that_this_run_does_not_hold_is_no_release_of_another(tmp_path: Path):
    first = tmp_path / "a"
    live(first, asks(first, at=12))
    honest = [one if not isinstance(one, News) else _honest(one) for one in stream()]
    with pytest.raises(IntegrityError, match="does not hold"):
        live(tmp_path / "b", again=first / ADMITTED_FILE, items=honest)


def _honest(item: News) -> News:
    from msgspec.structs import replace

    return replace(item, publisher="")


def test_half_written_lines_of_a_crash_are_cut_off_and_broken_ones_told(tmp_path: Path):
    _, saved, _ = live(tmp_path)
    asks(tmp_path, at=0)(0)
    for name in (REQUESTED_FILE, HELD_NEWS):
        with (tmp_path / name).open("ab") as file:
            file.write(b'{"number":2,"id"')
    asks(tmp_path, at=0, number=2)(0)
    assert [one.number for one in read_admissions(tmp_path)[0]] == [1, 2]
    assert len(list(read_held(tmp_path / HELD_NEWS))) == 2
    live(tmp_path, saved=saved)
    (tmp_path / HELD_NEWS).write_bytes(b"{}\n")
    with pytest.raises(IntegrityError, match="line 1"):
        list(read_held(tmp_path / HELD_NEWS))


def test_text_that_no_file_can_hold_is_held_back_all_the_same(tmp_path: Path):
    held = HeldNewsFile(tmp_path / HELD_NEWS)
    item = News(START, START, "feed", 1, "a", "half \ud800 of a pair")
    held.hold(item, Sanitiser().screen(item))
    assert held.find(1) is not None
    assert held.find(2) is None
    held.close()


def _ask_until_killed(folder: Path) -> None:
    for number in range(1, 10**6):
        request_admission(folder, NewsAdmission(number, f"n{number}", "d", "Ann Lee", "checked"))


def test_release_that_was_told_done_survives_a_kill(tmp_path: Path):
    child = get_context("spawn").Process(target=_ask_until_killed, args=(tmp_path,))
    child.start()
    assert child.pid is not None
    while not (tmp_path / REQUESTED_FILE).exists() or (tmp_path / REQUESTED_FILE).stat().st_size < 2_000:
        child.join(0.01)
        assert child.is_alive()
    os.kill(child.pid, signal.SIGKILL)
    child.join(10)
    asked, _ = read_admissions(tmp_path)
    assert [one.number for one in asked] == list(range(1, len(asked) + 1))
    request_admission(tmp_path, NewsAdmission(10**6, "late", "d", "Bob", "checked"))
    assert len(read_admissions(tmp_path)[0]) == len(asked) + 1
