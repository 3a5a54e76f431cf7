"""The setup of `htfi bench link`: a cloud in a process of its own, edges, and a faulty link between them.

`python -m htfi_eval.bench.link.setup` runs many edges in one process: an edge is a thread with a connection, a planner
and a draft of its own, as in `htfi edge`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.generation import Completion
from htfi.wiring.cluster.edge import EdgeNode, open_edge
from htfi.wiring.cluster.options import add_edge
from htfi.wiring.settings import Settings, load_settings
from htfi_eval.bench.decode.prompts import prompt_kinds, request
from htfi_eval.bench.processes import ONE_THREAD, available_cores, pin_to_core, send_answer
from htfi_eval.faulty_link.conditions import Direction, Jitter, LinkConditions
from htfi_eval.faulty_link.process import FaultyLinkProcess

CLOUD, EDGE = "cloud1", "edge1"
# A request is placed in several ways; none may find the cached answer of another.
_NO_ANSWER_CACHE = {"HTFI_SERVER__KEPT_ANSWERS": "0"}
_CLOUD_CORE = available_cores()[0]  # chosen at import: the benchmark then pins itself to another core
_START_S = 60.0
_HEARTBEAT_WAIT_S = 2.5  # for heartbeats to measure a new round trip


@dataclass(frozen=True, slots=True)
class LinkSetup:
    """A cloud, its link, and settings for edges that connect through the link."""

    target: Path
    certificates: Path
    link: FaultyLinkProcess

    def settings(self, name: str = EDGE) -> Settings:
        host, port = self.link.address
        settings = load_settings(environment={"HTFI_MODELS__TARGET": str(self.target)})
        return add_edge(settings, name, clouds=[f"{CLOUD}={host}:{port}"], certs=str(self.certificates))

    @contextmanager
    def edge(self, name: str = EDGE) -> Generator[EdgeNode]:
        """An edge that is connected to its cloud. Raises: DependencyUnavailable where it does not."""
        with open_edge(self.settings(name), name) as edge:
            if not edge.generator.wait_ready(_START_S):
                raise DependencyUnavailable(f"{name} does not reach the cloud: {edge.monitor.changes()}")
            yield edge

    def num_bytes(self) -> int:
        """Bytes over the link in both directions, TLS and heartbeats included."""
        return sum(self.link.num_bytes(way) for way in Direction)

    def set_round_trip(self, rtt_ms: float, jitter: float) -> None:
        """Set the round trip, with `jitter` its standard deviation as a share; return when heartbeats know it."""
        self.link.conditions = link_conditions(rtt_ms, jitter)
        time.sleep(_HEARTBEAT_WAIT_S)


def link_conditions(rtt_ms: float, jitter: float) -> LinkConditions:
    return LinkConditions(rtt_ms=rtt_ms, jitter_ms=jitter * rtt_ms / 2.0, jitter=Jitter.NORMAL)


@contextmanager
def open_link_setup(target: Path, num_edges: int = 1) -> Generator[LinkSetup]:
    """The cloud on one core, the rest on the others. Raises: DependencyUnavailable."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="htfi-bench-link-")))
        certificates = folder / "certs"
        names = [EDGE, *(f"edge{number}" for number in range(2, num_edges + 1))]
        arguments = [part for name in names for part in ("--edge", name)]
        _run_htfi("certs", str(certificates), "--cloud", CLOUD, *arguments)
        process = subprocess.Popen(
            [
                sys.executable, "-m", "htfi", "cloud", "--name", CLOUD, "--listen", "127.0.0.1:0",
                "--certs", str(certificates), "--target", str(target), "--plain",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | ONE_THREAD | _NO_ANSWER_CACHE,
        )  # fmt: skip
        closing.callback(_stop_process, process)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {_CLOUD_CORE})  # before it starts any thread
        link = closing.enter_context(FaultyLinkProcess(_address(process)))
        yield LinkSetup(target, certificates, link)


def _address(process: "subprocess.Popen[str]") -> tuple[str, int]:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line.strip())
        found = re.search(r"is ready on ([\d.]+):(\d+)", line)
        if found:
            return found[1], int(found[2])
    raise DependencyUnavailable(f"the cloud ended: {' '.join(said) or 'without output'}")


def _stop_process(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _run_htfi(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "htfi", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DependencyUnavailable(f"htfi {arguments[0]}: {done.stderr.strip()}")


DEADLINE_MS = 60_000.0
NUM_SEEDS = 8  # answers to one prompt, as of an ensemble
_OTHERS = "another edge could not start"


class EdgeShare(NamedTuple):
    """What one edge received: tokens of the target's answers within the time, and the time of answers. `num_alone`:
    answers of the draft, while the busy cloud was suspected."""

    num_tokens: int
    num_answers: int
    p50_ms: float
    p95_ms: float
    num_alone: int = 0


class FleetResult(NamedTuple):
    """`tokens_per_s` of all edges; `unfairness`: the worst edge's p95 over the median edge's."""

    shares: list[EdgeShare]
    tokens_per_s: float
    unfairness: float


def fleet_result(shares: list[EdgeShare], span_s: float) -> FleetResult:
    p95s = [share.p95_ms for share in shares]
    num_tokens = sum(share.num_tokens for share in shares)
    return FleetResult(shares, num_tokens / span_s, max(p95s) / median(p95s))


class _EdgeThread(threading.Thread):
    """One edge that sends one request after another until the time is over."""

    def __init__(self, edge: EdgeNode, first_number: int, go: threading.Barrier, span_s: float) -> None:
        super().__init__(daemon=True)
        self._edge, self._number, self._go, self._span_s = edge, first_number, go, span_s
        self._taken_ms: list[float] = []
        self._num_tokens = 0
        self._num_alone = 0
        self.failure = ""

    def run(self) -> None:
        try:
            self._ride()
        except (DependencyUnavailable, threading.BrokenBarrierError) as error:
            self.failure = str(error) or _OTHERS
            self._go.abort()

    @property
    def share(self) -> EdgeShare:
        p50, p95 = np.quantile(self._taken_ms, [0.5, 0.95]) if self._taken_ms else (np.inf, np.inf)
        return EdgeShare(self._num_tokens, len(self._taken_ms), float(p50), float(p95), self._num_alone)

    def _ride(self) -> None:
        vocabulary = self._edge.local_generator.vocabulary
        self._ask(vocabulary, 0)  # loads models and measures the link
        self._go.wait(_START_S)
        until_s = time.perf_counter() + self._span_s
        turn = 0
        while True:
            began_s = time.perf_counter()
            turn += 1
            num_tokens = self._ask(vocabulary, turn)
            ended_s = time.perf_counter()
            if ended_s > until_s:
                return
            self._taken_ms.append(1e3 * (ended_s - began_s))
            self._num_tokens += num_tokens

    def _ask(self, vocabulary: Vocabulary, turn: int) -> int:
        kind = next(kind for kind in prompt_kinds() if kind.name == "view, T 1")
        number, seed = divmod(turn, NUM_SEEDS)
        asked = request(kind, self._number + number, vocabulary)
        asked = replace(asked, seed=seed, deadline_ms=DEADLINE_MS, id=f"{self._number} {turn}")
        (answer,) = self._edge.generator.write([asked])
        if not isinstance(answer, Completion):
            raise DependencyUnavailable(f"{self._edge.node}: {answer.reason}")
        self._num_alone += answer.is_provisional
        return 0 if answer.is_provisional else len(answer.tokens)


def measure_fleet(stage: LinkSetup, num_edges: int, span_s: float, first_number: int) -> FleetResult:
    """`num_edges` edges in a process of their own. Raises: DependencyUnavailable."""
    host, port = stage.link.address
    asked = {
        "address": f"{host}:{port}",
        "certificates": str(stage.certificates),
        "target": str(stage.target),
        "num_edges": num_edges,
        "span_s": span_s,
        "first": first_number,
    }
    done = subprocess.run(
        [sys.executable, "-m", "htfi_eval.bench.link.setup", json.dumps(asked)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ONE_THREAD,
    )
    if done.returncode:
        raise DependencyUnavailable(f"the edges' process ended: {done.stderr.strip().splitlines()[-1:]}")
    return msgspec.json.decode(done.stdout, type=FleetResult)


def run_edges(
    address: str, certificates: Path, target: Path, num_edges: int, span_s: float, first: int
) -> FleetResult:
    """Raises: DependencyUnavailable where an edge gets no answer."""
    base_settings = load_settings(environment={"HTFI_MODELS__TARGET": str(target)})
    with ExitStack() as closing:
        go = threading.Barrier(num_edges)
        riders: list[_EdgeThread] = []
        for number in range(1, num_edges + 1):
            name = f"edge{number}"
            settings = add_edge(base_settings, name, clouds=[f"{CLOUD}={address}"], certs=str(certificates))
            edge = closing.enter_context(open_edge(settings, name))
            riders.append(_EdgeThread(edge, first + 1000 * number, go, span_s))
        for rider in riders:
            rider.start()
        for rider in riders:
            rider.join()
        failures = sorted(
            (rider.failure for rider in riders if rider.failure), key=lambda words: words == _OTHERS
        )
        if failures:
            raise DependencyUnavailable(failures[0])
        return fleet_result([rider.share for rider in riders], span_s)


def main() -> None:
    asked = json.loads(sys.argv[1])
    for core in available_cores()[1:]:  # the first core is the cloud's
        pin_to_core(core)
        break
    try:
        fleet = run_edges(
            asked["address"],
            Path(asked["certificates"]),
            Path(asked["target"]),
            asked["num_edges"],
            asked["span_s"],
            asked["first"],
        )
    except HtfiError as error:
        sys.exit(str(error))
    send_answer(fleet)


if __name__ == "__main__":
    main()
