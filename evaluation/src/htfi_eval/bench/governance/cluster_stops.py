"""How soon a stop holds over a cluster: asked of one edge's governance folder, until another edge releases no more.

Real processes on loopback: a cloud, an edge that is asked, and an edge that takes bars from a pipe as fast as they are
written. The request reaches the second edge through the cloud. Time counts from just before the request is written to
the arrival of the last line with a forecast.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

import numpy as np

from htfi.domain.errors import DependencyUnavailable
from htfi.wiring.bundles import init_folder
from htfi.wiring.control import request_reenabling, request_stop
from htfi.wiring.ledger import create_signing_key
from htfi_eval.bench.governance.stops import (
    BARS_PER_S,
    MAPPING,
    NUM_SERIES,
    START_S,
    Arrivals,
    feed_bars,
    is_quiet,
    is_released_again,
    pause_until_any_phase,
    wait_for,
)
from htfi_eval.results import PartFigures

NUM_STOPS, NUM_QUICK = 100, 3
NODES = ("asked", "busy", "cloud")


def figures(quick: bool) -> PartFigures:
    """stop_cluster_p99_ms. Raises: DependencyUnavailable where a node fails."""
    with TemporaryDirectory(prefix="htfi-cluster-stops-") as scratch:
        times_ms = measure_cluster_stops(Path(scratch), NUM_QUICK if quick else NUM_STOPS)
    p50, p99 = (float(np.percentile(times_ms, q)) for q in (50, 99))
    return PartFigures(
        title="Stops over a cluster",
        metrics={"stop_cluster_p50_ms": p50, "stop_cluster_p99_ms": p99},
        rows=[
            {
                "what": f"stop asked of one edge, another through a cloud, {BARS_PER_S} decisions/s",
                "stops": len(times_ms),
                "p50 ms": p50,
                "p99 ms": p99,
                "max ms": max(times_ms),
            }
        ],
    )


def measure_cluster_stops(folder: Path, num: int) -> list[float]:
    """Milliseconds from each request to the last forecast that the other edge released; 0 where none was."""
    times_ms: list[float] = []
    with _cluster(folder) as arrivals:
        asked = folder / "governance-asked"
        for number in range(num):
            pause_until_any_phase(number)
            began_ns = time.monotonic_ns()
            request_stop(None, "firm", "bench", f"stop {number}", shared=asked)
            wait_for(partial(is_quiet, arrivals, time.monotonic_ns()))
            late = [at for at in arrivals.forecast_ns if at > began_ns]
            times_ms.append((late[-1] - began_ns) / 1e6 if late else 0.0)
            request_reenabling(None, "firm", "bench", "the next one", shared=asked)
            wait_for(partial(is_released_again, arrivals, time.monotonic_ns()))
    return times_ms


@contextmanager
def _cluster(folder: Path) -> Generator[Arrivals]:
    """A cloud, an idle edge and a busy one, of one governance; what the busy one releases."""
    (folder / "feeds.toml").write_text(MAPPING)
    officer = str(create_signing_key(folder / "officer.key", "officer"))
    for node in NODES:
        init_folder(folder / f"governance-{node}", 1, [("officer", officer)], NODES)
    with ExitStack() as closing:
        cloud = _start(folder, "cloud", "--name", "cloud", "--listen", "127.0.0.1:0", "--plain")
        closing.callback(_end, cloud)
        address = _address(cloud)
        arrivals = Arrivals()
        for name in ("asked", "busy"):
            words = ("--map", "feeds.toml", "--name", name, "--out", name, "--cloud", f"cloud={address}")
            edge = _start(folder, "edge", *words, "--stdout", "--no-report", "--plain")
            closing.callback(_end, edge)
            if name == "busy":
                _follow(edge, arrivals, closing)
        wait_for(lambda: len(arrivals.forecast_ns) > NUM_SERIES)
        yield arrivals


def _follow(edge: "subprocess.Popen[bytes]", arrivals: Arrivals, closing: ExitStack) -> None:
    """Feed an edge, and note what comes out of it."""
    ended = threading.Event()
    pipe, lines = cast("IO[bytes]", edge.stdin), cast("IO[bytes]", edge.stdout)
    threading.Thread(target=feed_bars, args=(pipe, ended), name="feeder", daemon=True).start()
    threading.Thread(target=arrivals.follow, args=(lines,), name="arrivals", daemon=True).start()
    closing.callback(ended.set)


def _start(folder: Path, command: str, *words: str) -> "subprocess.Popen[bytes]":
    node = words[words.index("--name") + 1]
    more: Sequence[str] = ("--insecure-loopback", "--governance", f"governance-{node}")
    return subprocess.Popen(
        [sys.executable, "-m", "htfi", command, *words, *more],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _address(cloud: "subprocess.Popen[bytes]") -> str:
    """Where a cloud that was started listens. Raises: DependencyUnavailable."""
    lines = cast("IO[bytes]", cloud.stdout)
    for line in iter(lines.readline, b""):
        _, ready, rest = line.decode(errors="replace").partition(" is ready on ")
        if ready:
            threading.Thread(target=lines.read, name="cloud", daemon=True).start()  # what it prints later
            return rest.partition(": ")[0].strip()
    raise DependencyUnavailable("the cloud whose stops are timed did not begin: run `htfi cloud` to see why")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    with suppress(OSError):
        cast("IO[bytes]", process.stdin).close()
    try:
        process.wait(START_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
