"""How soon a policy bundle is in force on five nodes: from the request at one of them to the last that recorded it.

Five processes of this machine, each with a governance folder, on loopback sockets (`bundle_node.py`). Time counts from
just before the request is written to the moment at which the last node has the activation in its governance log.
"""

import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

import numpy as np

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.time import NS_PER_S
from htfi.governance.bundles.bundle import (
    BundleHead,
    BundleKind,
    OfficerRoll,
    parse_bundle,
    write_bundle,
    write_officers,
)
from htfi.governance.bundles.tables import BundleTables
from htfi.wiring.cluster.bundles import ask_activation, name_nodes, sign_change
from htfi.wiring.ledger import create_signing_key
from htfi_eval.results import PartFigures

NODES = ("node-a", "node-b", "node-c", "node-d", "node-e")
NUM_BUNDLES, NUM_QUICK = 20, 3
_WAIT_S = 30.0


def figures(quick: bool) -> PartFigures:
    """bundle_activation_s, the slowest of the bundles. Raises: DependencyUnavailable where a node fails."""
    with TemporaryDirectory(prefix="htfi-bundles-") as scratch:
        times_s = measure_activations(Path(scratch), NUM_QUICK if quick else NUM_BUNDLES)
    row = {
        "what": f"activation over {len(NODES)} processes on loopback",
        "bundles": len(times_s),
        "p50 s": float(np.median(times_s)),
        "max s": max(times_s),
    }
    metrics: dict[str, float | None] = {"bundle_activation_s": max(times_s)}
    return PartFigures(title="Policy bundles", metrics=metrics, rows=[row])


def measure_activations(folder: Path, num: int) -> list[float]:
    """Seconds from each request to the last node's record. Requests go to the nodes in turn."""
    keys = [folder / f"{name}.key" for name in ("ann", "ben", "cid")]
    roll = OfficerRoll(2, {path.stem: create_signing_key(path, path.stem) for path in keys})
    for node in NODES:
        (folder / node).mkdir()
        (folder / node / "officers.toml").write_text(write_officers(roll))
        name_nodes(folder / node, NODES)
    times_s: list[float] = []
    previous, start_ns = "", time.time_ns() // NS_PER_S * NS_PER_S
    with _running_nodes(folder) as arrivals:
        for number in range(1, num + 1):
            head = BundleHead(number, previous, BundleKind.QUORUM, "ann", start_ns)
            text = write_bundle(head, BundleTables())
            previous = parse_bundle(text).digest
            began_ns = time.monotonic_ns()
            ask_activation(folder / NODES[number % len(NODES)], sign_change(text, keys[:2]))
            found = [_arrival(arrivals) for _ in NODES]
            if {digest for _, digest in found} != {previous}:
                raise DependencyUnavailable("the nodes whose activation is timed went by different bundles")
            times_s.append((max(at_ns for at_ns, _ in found) - began_ns) / 1e9)
    return times_s


def _arrival(arrivals: "queue.Queue[str]") -> tuple[int, str]:
    try:
        at_ns, digest = arrivals.get(timeout=_WAIT_S).split()
    except queue.Empty:
        raise DependencyUnavailable(
            f"a node whose activation is timed did not record a bundle within {_WAIT_S:.0f} s"
        ) from None
    return int(at_ns), digest


@contextmanager
def _running_nodes(folder: Path) -> Generator["queue.Queue[str]"]:
    """Five processes that are linked; what they write about activations arrives in the queue."""
    ports = [f"{node}={port}" for node, port in zip(NODES, _free_ports(len(NODES)), strict=True)]
    arrivals: queue.Queue[str] = queue.Queue()
    processes: list[subprocess.Popen[str]] = []
    try:
        for node in NODES:
            words = ["-m", "htfi_eval.bench.governance.bundle_node", str(folder / node), node, *ports]
            process = subprocess.Popen(
                [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            processes.append(process)
        for process in processes:
            lines = cast("IO[str]", process.stdout)
            if not lines.readline():
                raise DependencyUnavailable("a node whose activation is timed did not start")
            threading.Thread(target=_collect, args=(lines, arrivals), daemon=True).start()
        yield arrivals
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _collect(lines: IO[str], arrivals: "queue.Queue[str]") -> None:
    for line in lines:
        arrivals.put(line)


def _free_ports(num: int) -> list[int]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(num)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports
