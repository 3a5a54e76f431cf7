"""News that is posted to a run that goes on: each item once, sanitised as any, and what became of it is told."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from htfi.adapters.stores import posted_news
from htfi.adapters.stores.admissions import ADMITTED_FILE
from htfi.adapters.stores.posted_news import POSTED_FILE, PostedNewsFile, PostedNewsReader, RunIsBehind
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.events import News
from htfi.pipeline.operator_actions import PostedNews
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from live_run import LiveRun
from service_process import ServiceProcess

RAISES = "Acme raises its profit outlook for the year"


def item(name: str, headline: str = RAISES) -> PostedNews:
    return PostedNews(0, News(0, 0, "posted", 0, name, headline, ("ACME",)), "Ann", 1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveRun, ServiceProcess]]:
    folder = tmp_path_factory.mktemp("live") / "run"
    with LiveRun(folder) as run, ServiceProcess("--follow", str(folder)) as service:
        yield run, service


def item_once(
    service: ServiceProcess, name: str, is_done: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """What became of an item, once that is so."""
    end = time.monotonic() + 30.0
    while not is_done(found := service.client.get(f"/v1/news/{name}").json()):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def test_each_item_is_used_repeated_or_held_back_as_news_of_any_feed(
    served: tuple[LiveRun, ServiceProcess],
) -> None:
    run, service = served
    hostile = "Ac\u200bme \u202eto\u202c soar now <script>"
    items = [
        {"id": "n1", "headline": RAISES, "symbols": ["ACME"]},
        {"id": "n2", "headline": RAISES, "symbols": ["ACME"]},
        {"id": "n3", "headline": hostile, "symbols": ["ACME"], "publisher": "Reute\u0433s"},
        {"id": "n4", "headline": ""},
        {"id": "n5", "headline": "x", "published_at": "never"},
    ]
    answer = service.client.post("/v1/news", json={"items": items})
    assert answer.status_code == 202
    assert [(one["status"], one["reason"]) for one in answer.json()["items"]] == [
        ("accepted", ""), ("accepted", ""), ("accepted", ""), ("refused", "missing_field"), ("refused", "bad_time"),
    ]  # fmt: skip
    run.advance(2)
    run.advance(2)  # the items entered between the bars
    used = item_once(service, "n1", lambda found: found["status"] == "used")
    repeated = item_once(service, "n2", lambda found: found["status"] == "deduplicated")
    held = item_once(service, "n3", lambda found: found["status"] == "quarantined")
    log = open_ledger_readonly(run.folder)
    context = decode_entry(log.entry(used["decisions"][0]["index"])).news_context
    log.close()
    assert context is not None
    assert "n1" in {one.id for one in context.considered}
    assert (used["clean_headline"], held["clean_headline"], held["phrases"]) == (RAISES, "", [])
    marked = [RAISES[one["start"] : one["end"]] for one in used["phrases"]]
    assert marked == ["raises its profit outlook"]
    assert used["decisions"][-1]["event"] == "guidance"
    read = service.client.get(f"/v1/decisions/{used['decisions'][0]['index']}/news").json()
    assert [one["id"] for one in read["items"] if one["headline"] == RAISES] == ["n1"]
    assert repeated["decisions"][0]["first_report"] == "n1"
    assert held["findings"]
    assert held["headline"] == hostile
    quarantine = service.client.get("/v1/quarantine").json()["items"]
    assert [(one["number"], one["id"]) for one in quarantine] == [(held["quarantine_number"], "n3")]
    again = service.client.post("/v1/news", json={"items": items[:1]}).json()["items"][0]
    changed = service.client.post("/v1/news", json={"items": [items[0] | {"headline": "Acme falls"}]})
    assert (again["status"], changed.status_code) == ("known", 422)
    listed = service.client.get("/v1/news", params={"limit": 2}).json()
    assert ([one["id"] for one in listed["items"]], listed["next"]) == (["n3", "n2"], 2)


def test_stop_and_its_end_are_answered_once_the_run_that_goes_on_has_logged_them(
    served: tuple[LiveRun, ServiceProcess],
) -> None:
    run, service = served
    ended = threading.Event()

    def feed() -> None:
        while not ended.wait(0.02):
            run.give(1)

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        stop = service.client.post("/v1/stop", json={"by": "Ann", "why": "drill"})
        stopped = service.client.get("/v1/control").json()
        end = service.client.post("/v1/reenable", json={"by": "Bo", "why": "over"})
        clear = service.client.get("/v1/control").json()
    finally:
        ended.set()
        feeding.join()
    assert [(one.status_code, one.json()["outcome"]) for one in (stop, end)] == [(200, "logged")] * 2
    assert [(one["scope"], one["by"], one["cause"]) for one in stopped["stops"]] == [
        ("firm", "Ann", "command")
    ]
    assert (stopped["is_clear"], clear["is_clear"], clear["stops"], clear["waiting"]) == (False, True, [], [])


@pytest.mark.slow
def test_run_that_resumes_or_is_repeated_comes_to_the_same_record(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with LiveRun(folder) as run:
        PostedNewsFile(folder).append([item("n1")], lambda: 0)
        end = time.monotonic() + 30.0
        while not (folder / ADMITTED_FILE).exists():
            assert time.monotonic() < end
            run.give(1)
            time.sleep(0.1)
        run.advance(2)
        run.process.kill()
        run.process.communicate()
        num_days = run.num_days
    lines = run.lines()
    with LiveRun(folder, num_days) as resumed:
        resumed.wait_for(len(lines))
        resumed.end()
    again = tmp_path / "again"
    with LiveRun(again, num_days, "--releases", str(folder / ADMITTED_FILE)) as repeated:
        repeated.wait_for(len(lines))
        repeated.end()
    assert resumed.lines()[: len(lines)] == lines
    assert repeated.lines()[: len(lines)] == lines
    assert sum('"n1"' in line for line in lines) >= 1


def test_ids_are_of_one_item_for_good_also_over_processes(tmp_path: Path) -> None:
    first, second = PostedNewsFile(tmp_path), PostedNewsFile(tmp_path)
    first.append([item("a"), item("b")], lambda: 0)
    (again,) = second.append([item("a")], lambda: 0)
    (third,) = second.append([item("c")], lambda: 0)
    with pytest.raises(InvalidInput, match="id of another item"):
        first.append([item("c", "Acme falls")], lambda: 0)
    assert (again.number, third.number) == (1, 3)
    assert list(first.read()) == ["a", "b", "c"]


def test_writers_at_once_lose_and_repeat_nothing(tmp_path: Path) -> None:
    def post(name: str) -> None:
        file = PostedNewsFile(tmp_path)
        for number in range(20):
            file.append([item(f"{name}{number}")], lambda: 0)

    threads = [threading.Thread(target=post, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = PostedNewsReader(tmp_path).read_new()
    assert [one.number for one in found] == list(range(1, 81))
    assert len({one.item.id for one in found}) == 80


def test_a_line_that_a_crash_cut_is_taken_away_and_a_changed_one_is_named(tmp_path: Path) -> None:
    PostedNewsFile(tmp_path).append([item("a")], lambda: 0)
    path = tmp_path / POSTED_FILE
    with path.open("ab") as file:
        file.write(b'{"number":2,"it')
    reader = PostedNewsReader(tmp_path)
    assert [one.item.id for one in reader.read_new()] == ["a"]
    PostedNewsFile(tmp_path).append([item("b")], lambda: 0)
    assert [one.item.id for one in reader.read_new()] == ["b"]
    path.write_bytes(path.read_bytes().replace(b"raises", b"lowers", 1))
    with pytest.raises(IntegrityError, match="line 1: is not as it was written"):
        PostedNewsReader(tmp_path).read_new()


def test_full_disk_is_said_and_leaves_no_half_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, write = PostedNewsFile(tmp_path), os.write
    file.append([item("a")], lambda: 0)

    def half(descriptor: int, data: bytes) -> int:
        write(descriptor, bytes(data)[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(posted_news.os, "write", half)
        with pytest.raises(DependencyUnavailable, match="free some disk space"):
            file.append([item("b")], lambda: 0)
    assert (tmp_path / POSTED_FILE).read_bytes().count(b"\n") == 1
    assert [one.item.id for one in PostedNewsReader(tmp_path).read_new()] == ["a"]


def test_what_waits_for_a_run_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posted_news, "MAX_WAITING", 2)
    file = PostedNewsFile(tmp_path)
    file.append([item("a"), item("b")], lambda: 0)
    with pytest.raises(RunIsBehind):
        file.append([item("c")], lambda: 0)
    file.append([item("c")], lambda: 1)
    assert list(file.read()) == ["a", "b", "c"]
