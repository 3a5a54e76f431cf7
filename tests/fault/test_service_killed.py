"""A service that is killed or whose disk is full: what people asked for is done once, and a stop is done always."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from htfi.adapters.stores.control_folder import read_requests
from htfi.adapters.stores.posted_news import POSTED_FILE
from htfi.governance.control.entries import Stopped
from htfi.wiring.control import governance_entries
from live_run import LiveRun
from service_process import ServiceProcess

FULL = (
    "import resource, signal\n"
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    "from htfi.apps.cli.main import main\n"
    "main()\n"
)
STOP = {"by": "Ann", "why": "drill", "scope": "series:ACME"}
KEY = {"Idempotency-Key": "3f9a02c4-7b1d"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveRun]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with LiveRun(tmp_path / "run") as found:
        yield found


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30.0
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


def asked(run: LiveRun) -> list[Any]:
    return read_requests(run.folder / "control")[0]


def test_stop_of_a_service_that_was_killed_before_it_answered_is_asked_for_once(run: LiveRun) -> None:
    lost: list[BaseException] = []
    with ServiceProcess("--follow", str(run.folder)) as service:

        def ask() -> None:
            try:
                service.client.post("/v1/stop", json=STOP, headers=KEY)
            except httpx.HTTPError as error:
                lost.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: bool(asked(run)))  # the service waits 2 s for a run that takes nothing now
        service.end(signal.SIGKILL)
        asking.join()
    with ServiceProcess("--follow", str(run.folder)) as service:
        answers = [service.client.post("/v1/stop", json=STOP, headers=KEY) for _ in range(2)]
    run.advance(3)
    assert len(lost) == 1
    assert [one.status_code for one in answers] == [202, 202]
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert len(asked(run)) == 1
    assert [one.request for one in governance_entries(run.folder) if isinstance(one, Stopped)] == [
        one.id for one in asked(run)
    ]


@pytest.mark.slow
def test_second_request_of_a_key_waits_for_no_first(run: LiveRun) -> None:
    answers: list[int] = []
    with ServiceProcess("--follow", str(run.folder)) as service:

        def ask() -> None:
            answers.append(
                httpx.post(f"{service.url}/v1/stop", json=STOP, headers=KEY, timeout=30.0).status_code
            )

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: bool(asked(run)))
        second = service.client.post("/v1/stop", json=STOP, headers=KEY)
        asking.join()
    assert (second.status_code, answers, len(asked(run))) == (409, [202], 1)


@pytest.mark.slow
def test_full_disk_stops_no_stop_and_no_reader_and_keeps_no_half_news(run: LiveRun) -> None:
    with ServiceProcess("--follow", str(run.folder), program=(sys.executable, "-c", FULL)) as service:
        narrow = service.client.post("/v1/stop", json=STOP, headers=KEY)
        news = service.client.post("/v1/news", json={"items": [{"headline": "Acme falls"}]}, headers=KEY)
        unkeyed = service.client.post("/v1/news", json={"items": [{"headline": "Acme falls"}]})
        wide = service.client.post("/v1/stop", json={"by": "Ann", "why": "fire"}, headers=KEY)
        reads = [service.client.get(f"/v1/{path}").status_code for path in ("control", "series", "news")]
    run.give(3)
    wait_until(lambda: any(isinstance(one, Stopped) for one in governance_entries(run.folder)))
    assert [narrow.status_code, news.status_code, unkeyed.status_code] == [503, 503, 503]
    assert all("\n" not in one.json()["detail"] for one in (narrow, news, unkeyed))
    assert (wide.status_code, wide.json()["outcome"]) == (200, "by_file")
    assert reads == [200, 200, 200]
    assert (run.folder / POSTED_FILE).read_bytes() == b""
    assert [one.by for one in governance_entries(run.folder) if isinstance(one, Stopped)] == ["a STOP file"]


@pytest.mark.slow
def test_service_of_a_run_that_is_killed_says_so_and_keeps_what_is_asked_for_it(run: LiveRun) -> None:
    with ServiceProcess("--follow", str(run.folder)) as service:
        run.process.kill()
        run.process.communicate()
        control = service.client.get("/v1/control").json()
        stop = service.client.post("/v1/stop", json=STOP).json()
        news = service.client.post(
            "/v1/news", json={"items": [{"headline": "Acme falls", "id": "n1"}]}
        ).json()
        waiting = service.client.get("/v1/news/n1").json()["status"]
        num_before = len(run.lines())
        with LiveRun(run.folder, run.num_days + 3) as resumed:
            resumed.wait_for(num_before + 2)
            wait_until(lambda: service.client.get("/v1/news/n1").json()["status"] != "waiting")
            stops = service.client.get("/v1/control").json()["stops"]
    assert control["is_running"] is False
    assert (
        stop["detail"] == "stopped: series:ACME; the run has ended: it holds as soon as the run starts again"
    )
    assert news["detail"] == "the run has ended: it takes them when it resumes: start it again"
    assert (waiting, [one["scope"] for one in stops]) == ("waiting", ["series:ACME"])
