"""How soon a hold of one edge holds at another: a stop asked of its governance folder, and a firm-wide breaker's trip.

Real processes on loopback: a cloud, an edge that is asked or whose breaker trips, and an edge that takes bars from a
pipe as fast as they are written. Both reach the second edge through the cloud (`stop_times` says what is timed).
"""

import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple, cast

from htfi.domain.errors import DependencyUnavailable
from htfi.governance.control.entries import BundleAdopted
from htfi.wiring.bundles import init_folder
from htfi.wiring.control import governance_entries, request_reenabling, request_stop
from htfi_eval.bench.governance.bar_feed import MAPPING, NUM_SERIES, BarFeed
from htfi_eval.bench.governance.served_lines import ServedLines, wait_for
from htfi_eval.bench.governance.stop_times import (
    NUM_EACH,
    NUM_QUICK,
    activate_breaker,
    check_trip,
    create_officer,
    pause_until_any_phase,
    stop_figures,
)
from htfi_eval.bench.governance.stops import BARS_PER_S, end_process
from htfi_eval.results import PartFigures

NODES = ("asked", "busy", "cloud")
ASKED_BARS_PER_S = 100  # of the edge that is asked, so that a shared core is left to the busy one


class FedEdge(NamedTuple):
    """An edge's run, what feeds it, and what it releases."""

    run: Path
    feed: BarFeed
    lines: ServedLines


class Cluster(NamedTuple):
    """Two edges of one governance, and the governance folder of the first."""

    asked: FedEdge
    busy: FedEdge
    governance: Path


def figures(quick: bool) -> PartFigures:
    """stop_cluster_p99_ms and what it is the worse of. Raises: DependencyUnavailable where a node fails."""
    num = NUM_QUICK if quick else NUM_EACH
    with TemporaryDirectory(prefix="htfi-cluster-stops-") as scratch, _cluster(Path(scratch)) as cluster:
        requested_ms = [_time_request(cluster, number) for number in range(num)]
        tripped_ms = [_time_trip(cluster) for _ in range(num)]
    what = f"one edge to another through a cloud, {BARS_PER_S} decisions/s"
    return stop_figures("Stops over a cluster", "cluster", what, requested_ms, tripped_ms)


def _time_request(cluster: Cluster, number: int) -> float:
    """Milliseconds from a request to the last forecast that either edge released after it; 0 where none did."""
    pause_until_any_phase(number, cluster.busy.feed.step_s)
    began_ns = time.monotonic_ns()
    request_stop(None, "firm", "bench", f"stop {number}", shared=cluster.governance)
    taken_ms = (_last_forecast_ns(cluster, began_ns) - began_ns) / 1e6
    _release(cluster)
    return taken_ms


def _time_trip(cluster: Cluster) -> float:
    """Milliseconds from the bars that trip the breaker to the last decision on them, or the last forecast."""
    frozen = cluster.asked.feed.freeze_once()
    last_ns = _last_forecast_ns(cluster, frozen.written_ns)
    tripped_ns = cluster.asked.lines.last_withheld_ns(check_trip(cluster.asked.run, frozen))
    _release(cluster)
    return (max(last_ns, tripped_ns) - frozen.written_ns) / 1e6


def _last_forecast_ns(cluster: Cluster, since_ns: int) -> int:
    """When the last forecast of either edge came, once neither releases any."""
    for edge in (cluster.busy, cluster.asked):
        edge.lines.wait_until_held()
    return max(edge.lines.last_forecast_ns(since_ns) for edge in (cluster.busy, cluster.asked))


def _release(cluster: Cluster) -> None:
    request_reenabling(None, "firm", "bench", "the next one", shared=cluster.governance)
    for edge in (cluster.busy, cluster.asked):
        edge.lines.wait_until_released(NUM_SERIES)


@contextmanager
def _cluster(folder: Path) -> Generator[Cluster]:
    """A cloud and two edges of one governance, whose bundle both edges go by."""
    (folder / "feeds.toml").write_text(MAPPING)
    officer = create_officer(folder)
    for node in NODES:
        init_folder(folder / f"governance-{node}", 1, [("officer", officer)], NODES)
    with ExitStack() as closing:
        cloud = _start(folder, "cloud", "--name", "cloud", "--listen", "127.0.0.1:0", "--plain")
        closing.callback(end_process, cloud)
        address = _address(cloud)
        asked, busy = (
            _fed_edge(folder, name, address, bars_per_s, closing)
            for name, bars_per_s in (("asked", ASKED_BARS_PER_S), ("busy", BARS_PER_S))
        )
        for edge in (asked, busy):
            edge.lines.wait_until_released(NUM_SERIES)
        activate_breaker(folder, folder / "governance-asked")
        wait_for(lambda: all(map(_has_bundle, (asked, busy))))
        yield Cluster(asked, busy, folder / "governance-asked")


def _has_bundle(edge: FedEdge) -> bool:
    return any(isinstance(one, BundleAdopted) and one.text for one in governance_entries(edge.run))


def _fed_edge(folder: Path, name: str, cloud: str, bars_per_s: float, closing: ExitStack) -> FedEdge:
    words = ("--map", "feeds.toml", "--name", name, "--out", name, "--cloud", f"cloud={cloud}")
    process = _start(folder, "edge", *words, "--stdout", "--no-report", "--plain")
    closing.callback(end_process, process)
    feed = closing.enter_context(BarFeed(cast("IO[bytes]", process.stdin), bars_per_s))
    lines = ServedLines()
    threading.Thread(target=lines.follow, args=(process.stdout,), name="lines", daemon=True).start()
    return FedEdge(folder / name, feed, lines)


def _start(folder: Path, command: str, *words: str) -> "subprocess.Popen[bytes]":
    node = words[words.index("--name") + 1]
    more = ("--insecure-loopback", "--governance", f"governance-{node}")
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
