"""How soon a hold holds on one node: a stop by a request's file, and a breaker that trips.

A real `htfi run` under a policy bundle takes bars from a pipe as fast as they are written and serves its decisions on a
socket (`stop_times` says what is timed).
"""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple, cast

from htfi.domain.errors import DependencyUnavailable
from htfi.wiring.bundles import init_folder
from htfi.wiring.control import ControlOutcome, request_reenabling, request_stop
from htfi_eval.bench.governance.bar_feed import MAPPING, NUM_SERIES, BarFeed
from htfi_eval.bench.governance.served_lines import ServedLines
from htfi_eval.bench.governance.stop_times import (
    NUM_EACH,
    NUM_QUICK,
    activate_breaker,
    check_trip,
    create_officer,
    pause_until_any_phase,
    stop_figures,
)
from htfi_eval.results import PartFigures

BARS_PER_S = 400  # of all series: a decision each
START_S = 60.0


class BusyRun(NamedTuple):
    """A live run's folder, what feeds it, and what it releases."""

    folder: Path
    feed: BarFeed
    lines: ServedLines


def figures(quick: bool) -> PartFigures:
    """stop_local_p99_ms and what it is the worse of. Raises: DependencyUnavailable where the run fails."""
    num = NUM_QUICK if quick else NUM_EACH
    with TemporaryDirectory(prefix="htfi-stops-") as scratch, _busy_run(Path(scratch)) as run:
        requested_ms = [_time_request(run, number) for number in range(num)]
        tripped_ms = [_time_trip(run) for _ in range(num)]
    what = f"{NUM_SERIES} series, {BARS_PER_S} decisions/s"
    return stop_figures("Stops", "local", what, requested_ms, tripped_ms)


def _time_request(run: BusyRun, number: int) -> float:
    """Milliseconds from a request to the last forecast that was released after it; 0 where none was."""
    pause_until_any_phase(number, run.feed.step_s)
    began_ns = time.monotonic_ns()
    if request_stop(run.folder, "firm", "bench", f"stop {number}") is not ControlOutcome.LOGGED:
        raise DependencyUnavailable("the run whose stops are timed did not log one")
    run.lines.wait_until_held()
    taken_ms = (run.lines.last_forecast_ns(began_ns) - began_ns) / 1e6
    _release(run)
    return taken_ms


def _time_trip(run: BusyRun) -> float:
    """Milliseconds from the bars that trip the breaker to the last decision on them, or the last forecast."""
    frozen = run.feed.freeze_once()
    run.lines.wait_until_held()
    last_ns = run.lines.last_withheld_ns(check_trip(run.folder, frozen))
    taken_ms = (max(last_ns, run.lines.last_forecast_ns(frozen.written_ns)) - frozen.written_ns) / 1e6
    _release(run)
    return taken_ms


def _release(run: BusyRun) -> None:
    request_reenabling(run.folder, "firm", "bench", "the next one")
    run.lines.wait_until_released(NUM_SERIES)


@contextmanager
def _busy_run(folder: Path) -> Generator[BusyRun]:
    (folder / "feeds.toml").write_text(MAPPING)
    init_folder(folder / "governance", 1, [("officer", create_officer(folder))])
    activate_breaker(folder, folder / "governance")
    address = str(folder / "lines.sock")
    words = (
        "--map",
        "feeds.toml",
        "--out",
        "run",
        "--governance",
        "governance",
        "--listen",
        f"unix:{address}",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "htfi", "run", *words, "--plain", "--no-report"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    lines = ServedLines()
    try:
        with (
            BarFeed(cast("IO[bytes]", process.stdin), BARS_PER_S) as feed,
            _connect(address, process) as client,
        ):
            with client.makefile("rb") as served:
                follower = threading.Thread(target=lines.follow, args=(served,), name="lines", daemon=True)
                follower.start()
                try:
                    lines.wait_until_released(NUM_SERIES)
                    yield BusyRun(folder / "run", feed, lines)
                finally:
                    client.shutdown(socket.SHUT_RDWR)
                    follower.join()
            process.terminate()
    finally:
        end_process(process)


def _connect(address: str, process: "subprocess.Popen[bytes]") -> socket.socket:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s and process.poll() is None:
        client = socket.socket(socket.AF_UNIX)
        if client.connect_ex(address) == 0:
            client.sendall(b'{"from": 0}\n')
            return client
        client.close()
        time.sleep(0.05)
    raise DependencyUnavailable(
        "the run whose stops are timed did not begin: run `htfi run` alone to see why"
    )


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """End a process and close its pipes."""
    process.terminate()
    try:
        process.wait(START_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what nobody has read is lost with the process
                pipe.close()
