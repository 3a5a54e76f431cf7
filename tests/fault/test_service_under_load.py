"""kill -9 of the service, of its worker and of the run while clients stream, post and ask: they go on, and what each
was answered holds once.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import htfi
from htfi.adapters.stores.admissions import read_admissions
from htfi.adapters.stores.posted_news import PostedNewsFile
from htfi.client import Client, acts
from htfi.client.bodies import ForecastQuestion
from htfi.client.news_bodies import SubmittedItem
from htfi.domain.errors import HtfiError
from htfi.pipeline.operator_actions import PostedEntry
from live_run import LiveRun
from page_run import daily_bars
from service_process import ServiceProcess

pytestmark = pytest.mark.slow
_WAIT_S = 60.0


class Clients:
    """Threads that use a service until `end`: readers of the stream, senders of news, and one who asks the worker."""

    def __init__(self, url: str, num_readers: int = 3, num_senders: int = 3) -> None:
        self._url = url
        self.ending = threading.Event()
        self.seen: list[list[int]] = [[] for _ in range(num_readers)]
        self.accepted: list[str] = []
        self.num_forecasts = 0
        self.failures: list[BaseException] = []
        jobs: list[Callable[[], None]] = [self._sender(place) for place in range(num_senders)]
        jobs += [self._reader(seen) for seen in self.seen]
        jobs.append(self._ask)
        self._threads = [threading.Thread(target=self._safely(job), daemon=True) for job in jobs]
        for one in self._threads:
            one.start()

    def end(self, num_entries: int) -> None:
        """Once the readers have so many entries."""
        self.ending.set()
        until(lambda: all(len(seen) >= num_entries for seen in self.seen) or bool(self.failures))

    def _safely(self, job: Callable[[], None]) -> Callable[[], None]:
        def work() -> None:
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - the test shows it
                self.failures.append(error)

        return work

    def _reader(self, seen: list[int]) -> Callable[[], None]:
        def read() -> None:
            with Client(self._url) as client:
                seen.extend(one.index for one in client.stream(first=0))

        return read

    def _sender(self, place: int) -> Callable[[], None]:
        def send() -> None:
            number = 0
            with Client(self._url) as client:
                while not self.ending.wait(0.01):
                    name = f"{place}-{number}"
                    item = SubmittedItem(
                        f"Acme opens plant number {number} of {place}", id=name, symbols=["ACME"]
                    )
                    (answer,) = client.send(acts.submit_news([item])).items
                    assert answer.status == "accepted", answer  # the first answer, however often it was asked
                    self.accepted.append(name)
                    number += 1

        return send

    def _ask(self) -> None:
        question = ForecastQuestion([bar for bar in daily_bars(0, 40) if bar["symbol"] == "AAA"])  # type: ignore[misc]
        with Client(self._url) as client:
            while not self.ending.wait(0.01):
                with suppress(HtfiError):  # one whose worker or service was killed says so
                    self.num_forecasts += len(client.forecast_bars(question).items)


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def kill_worker(service: ServiceProcess) -> None:
    pid = service.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert children, "no worker has been started"
    os.kill(int(children[0]), signal.SIGKILL)


def test_each_process_is_killed_under_load_and_the_clients_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = LiveRun(folder)
    service = ServiceProcess("--follow", str(folder))
    try:
        clients = Clients(service.url)
        for victim in ("service", "worker", "run", "service", "run and service", "worker"):
            before, asked = len(clients.accepted), clients.num_forecasts
            until(lambda: clients.num_forecasts > asked and len(clients.accepted) > before + 5)  # noqa: B023
            if victim == "worker":
                kill_worker(service)
            num_days = run.num_days
            if "run" in victim:
                run.process.kill()
                run.process.communicate()
            if "service" in victim:
                service.end(signal.SIGKILL)
                service.client.close()
                service = ServiceProcess("--follow", str(folder), port=service.port)
            if "run" in victim:
                run = LiveRun(folder, num_days)
            run.give(2)
            assert clients.failures == []
        clients.ending.set()
        time.sleep(0.1)

        def have_all_entered() -> bool:
            run.give(1)  # news enters after an event
            return len(entered(folder)) == len(known(folder))

        until(have_all_entered)
        run.end()
        with htfi.open_ledger(folder) as ledger:
            size = ledger.verify(recompute=True).num_entries
        clients.end(size)
        assert clients.failures == []
        assert clients.seen == [list(range(size))] * 3
        assert set(clients.accepted) <= set(known(folder))
        assert len(clients.accepted) == len(set(clients.accepted)) > 30
        assert sorted(entered(folder)) == list(range(1, len(known(folder)) + 1))
    finally:
        for process in (run.process, service.process):
            if process.poll() is None:
                process.kill()
            process.communicate()
        service.client.close()


def known(folder: Path) -> list[str]:
    """The ids of posted items."""
    return list(PostedNewsFile(folder).read())


def entered(folder: Path) -> list[int]:
    """The numbers of posted items, as the run took them."""
    return [one.release.number for one in read_admissions(folder)[1] if isinstance(one.release, PostedEntry)]
