"""What `htfi bench link` measures on: a cloud in a process of its own, an edge here, and a faulty link between them."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from htfi.domain.errors import DependencyUnavailable
from htfi.wiring.cluster.edge import EdgeNode, open_edge
from htfi.wiring.cluster.options import add_edge
from htfi.wiring.settings import Settings, load_settings
from htfi_eval.bench.processes import available_cores
from htfi_eval.faulty_link.conditions import Direction, Jitter, LinkConditions
from htfi_eval.faulty_link.process import FaultyLinkProcess

CLOUD, EDGE = "cloud1", "edge1"
THREADS = ("OMP_NUMTHREADS", "OPENBLAS_NUMTHREADS", "MKL_NUMTHREADS")
# A request may come in several ways: none is to find the answer of another.
_NO_ANSWER_CACHE = {"HTFI_DESK__KEPT_ANSWERS": "0"}
_CLOUD_CORE = available_cores()[0]  # as they are when this is loaded: the bench then keeps itself to another
_START_S = 60.0
_HEARTBEAT_WAIT_S = 2.5  # in which heartbeats tell of a new round trip: what they remember is younger


@dataclass(frozen=True, slots=True)
class LinkSetup:
    """A cloud, its link, and the settings of whoever dials it through the link."""

    target: Path
    certificates: Path
    link: FaultyLinkProcess

    def settings(self, name: str = EDGE) -> Settings:
        host, port = self.link.address
        told = load_settings(environment={"HTFI_MODELS__TARGET": str(self.target)})
        return add_edge(told, name, clouds=[f"{CLOUD}={host}:{port}"], certs=str(self.certificates))

    @contextmanager
    def edge(self, name: str = EDGE) -> Generator[EdgeNode]:
        """An edge that has found its cloud. Raises: DependencyUnavailable where it does not."""
        with open_edge(self.settings(name), name) as edge:
            if not edge.author.wait_ready(_START_S):
                raise DependencyUnavailable(f"{name} finds no cloud: {edge.monitor.changes()}")
            yield edge

    def num_bytes(self) -> int:
        """What has gone over the link both ways, TLS and heartbeats included."""
        return sum(self.link.num_bytes(way) for way in Direction)

    def set_round_trip(self, rtt_ms: float, jitter: float) -> None:
        """A new round trip, `jitter` its standard deviation as a share of it; returns when it is known."""
        self.link.conditions = link_conditions(rtt_ms, jitter)
        time.sleep(_HEARTBEAT_WAIT_S)


def link_conditions(rtt_ms: float, jitter: float) -> LinkConditions:
    return LinkConditions(rtt_ms=rtt_ms, jitter_ms=jitter * rtt_ms / 2.0, jitter=Jitter.NORMAL)


@contextmanager
def open_link_setup(target: Path, num_edges: int = 1) -> Generator[LinkSetup]:
    """The cloud on one core, all else on the others. Raises: DependencyUnavailable."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="htfi-bench-link-")))
        certificates = folder / "certs"
        names = [EDGE, *(f"edge{number}" for number in range(2, num_edges + 1))]
        told = [part for name in names for part in ("--edge", name)]
        _run_htfi("certs", str(certificates), "--cloud", CLOUD, *told)
        process = subprocess.Popen(
            [
                sys.executable, "-m", "htfi", "cloud", "--name", CLOUD, "--listen", "127.0.0.1:0",
                "--certs", str(certificates), "--target", str(target), "--plain",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | dict.fromkeys(THREADS, "1") | _NO_ANSWER_CACHE,
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
    raise DependencyUnavailable(f"the cloud ended: {' '.join(said) or 'without a word'}")


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
