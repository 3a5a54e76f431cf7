"""How soon a stop holds: from a request's file to the last decision that a busy live run still releases.

A real `htfi run` takes bars from a pipe as fast as they are written and serves its decisions on a socket. Time counts
from just before the request is written to the arrival of the last line with a forecast.
"""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

import numpy as np

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.time import format_ns
from htfi.wiring.control import ControlOutcome, request_reenabling, request_stop
from htfi_eval.results import PartFigures

NUM_STOPS, NUM_QUICK = 100, 3
NUM_SERIES = 20
BARS_PER_S = 400  # of all series: a decision each
START_S, STEP_S = 60.0, 20.0
QUIET_S = 0.3  # without a forecast while bars come: the stop holds
MAPPING = """[[source]]
name = "bars"
stdin = true
kind = "bar"
"""


@dataclass
class Arrivals:
    """When lines came from the run, and which of them hold a forecast; a thread of its own fills it."""

    forecast_ns: list[int] = field(default_factory=list[int])
    withheld_ns: list[int] = field(default_factory=list[int])

    def follow(self, lines: IO[bytes]) -> None:
        for line in lines:
            now_ns = time.monotonic_ns()
            (self.withheld_ns if b'"withheld":true' in line[:160] else self.forecast_ns).append(now_ns)


def figures(quick: bool) -> PartFigures:
    """stop_local_p99_ms. Raises: DependencyUnavailable where the run fails."""
    with TemporaryDirectory(prefix="htfi-stops-") as scratch:
        times_ms = measure_stops(Path(scratch), NUM_QUICK if quick else NUM_STOPS)
    level = {name: float(np.percentile(times_ms, q)) for name, q in (("p50", 50), ("p99", 99))}
    row = {
        "what": f"stop by a file, {NUM_SERIES} series, {BARS_PER_S} decisions/s",
        "stops": len(times_ms),
        "p50 ms": level["p50"],
        "p99 ms": level["p99"],
        "max ms": max(times_ms),
    }
    metrics: dict[str, float | None] = {
        "stop_local_p50_ms": level["p50"],
        "stop_local_p99_ms": level["p99"],
    }
    return PartFigures(title="Stops", metrics=metrics, rows=[row])


def measure_stops(folder: Path, num: int) -> list[float]:
    """Milliseconds from each request to the last forecast that was released after it; 0 where none was."""
    times_ms: list[float] = []
    with _busy_run(folder) as arrivals:
        run = folder / "run"
        for number in range(num):
            pause_until_any_phase(number)
            began_ns = time.monotonic_ns()
            if request_stop(run, "firm", "bench", f"stop {number}") is not ControlOutcome.LOGGED:
                raise DependencyUnavailable("the run whose stops are timed did not log one")
            wait_for(partial(is_quiet, arrivals, time.monotonic_ns()))
            late = [at for at in arrivals.forecast_ns if at > began_ns]
            times_ms.append((late[-1] - began_ns) / 1e6 if late else 0.0)
            request_reenabling(run, "firm", "bench", "the next one")
            wait_for(partial(is_released_again, arrivals, time.monotonic_ns()))
    return times_ms


def pause_until_any_phase(number: int) -> None:
    """Wait a part of the time between two bars, so that stops fall at any place between them."""
    time.sleep(np.random.default_rng(number).uniform(0.0, NUM_SERIES / BARS_PER_S))


def is_quiet(arrivals: Arrivals, since_ns: int) -> bool:
    """Whether decisions have come for a while and none of them with a forecast."""
    now_ns = time.monotonic_ns()
    is_busy = bool(arrivals.withheld_ns) and arrivals.withheld_ns[-1] > since_ns
    return is_busy and now_ns - max(arrivals.forecast_ns[-1], since_ns) > QUIET_S * 1e9


def is_released_again(arrivals: Arrivals, since_ns: int) -> bool:
    return arrivals.forecast_ns[-1] > since_ns


def wait_for(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + STEP_S
    while not condition():
        if time.monotonic() > until_s:
            raise DependencyUnavailable(
                "the run whose stops are timed does not go on: run `htfi run` to see why"
            )
        time.sleep(0.005)


@contextmanager
def _busy_run(folder: Path) -> Generator[Arrivals]:
    (folder / "feeds.toml").write_text(MAPPING)
    address = str(folder / "lines.sock")
    words = [
        "run",
        "--map",
        "feeds.toml",
        "--out",
        "run",
        "--plain",
        "--no-report",
        "--listen",
        f"unix:{address}",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "htfi", *words],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ended = threading.Event()
    feeder = threading.Thread(
        target=feed_bars, args=(cast("IO[bytes]", process.stdin), ended), name="feeder", daemon=True
    )
    arrivals = Arrivals()
    try:
        feeder.start()
        client = _connect(address, process)
        with client, client.makefile("rb") as lines:
            follower = threading.Thread(target=arrivals.follow, args=(lines,), name="arrivals", daemon=True)
            follower.start()
            wait_for(lambda: len(arrivals.forecast_ns) > NUM_SERIES)
            yield arrivals
            client.shutdown(socket.SHUT_RDWR)
            follower.join()
    finally:
        ended.set()
        process.terminate()
        feeder.join()
        with suppress(BrokenPipeError):
            cast("IO[bytes]", process.stdin).close()
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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


def feed_bars(pipe: IO[bytes], ended: threading.Event) -> None:
    """Bars of all series in turn, each a second long and just ended, at the rate of `BARS_PER_S`."""
    rng = np.random.default_rng(5)
    prices = np.full(NUM_SERIES, 100.0)
    step_s, number = NUM_SERIES / BARS_PER_S, 0
    start_ns = time.time_ns() - 3_600 * 10**9
    next_s = time.monotonic()
    while not ended.is_set():
        prices *= np.exp(rng.normal(0.0, 1e-3, NUM_SERIES))
        at = format_ns(start_ns + number * 10**9)
        rows = [
            json.dumps({"symbol": f"S{k:02d}", "ts": at, "interval": "1s", "open": price, "high": price * 1.001,
                        "low": price * 0.999, "close": price, "volume": 100})
            for k, price in enumerate(prices.round(4).tolist())
        ]  # fmt: skip
        try:
            pipe.write("".join(f"{row}\n" for row in rows).encode())
            pipe.flush()
        except OSError:
            return
        number += 1
        next_s += step_s
        time.sleep(max(next_s - time.monotonic(), 0.0))
