"""Builds an edge: its watch over the clouds, its plan of where readings run, the readers of its rungs, its publisher.

The edge command opens one around a run; `open_run` then reads the news with it.

Of several edges in one group only the leader publishes. An edge that takes the lead publishes again what it withheld
in the last while, as it cannot know how far the one before it came: a reader of several edges gets each decision at
least once, and recognises it by its id.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import FileIO, RawIOBase
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from numpy.random import PCG64
from numpy.random import Generator as RandomGenerator

from htfi.adapters.device.metrics import DeviceMonitor
from htfi.adapters.grpc.tls import TlsFiles
from htfi.adapters.grpc.transport import GrpcTransport, fast_thread_switching
from htfi.adapters.keys.mark_key import mark_key_of
from htfi.adapters.probes.server import ProbeResult, ProbeServer
from htfi.decoding.acceptance import AcceptanceAlarm
from htfi.decoding.link.client.generator import ExpectedTarget, FullPrecisionGenerator, LinkedGenerator
from htfi.decoding.link.frames import seal_health
from htfi.decoding.local_generator import LocalGenerator
from htfi.domain.decision import Rung
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import open_private
from htfi.domain.peers import PeerChange, PeerState
from htfi.narrative.deep_reader import LateDeepReader
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, SecureReader, TemplateReader
from htfi.scheduling.health.config import FIRST_HEARTBEAT_MS, HealthConfig
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.node import NodeMonitor
from htfi.scheduling.placement.edge_placer import EdgePlacer
from htfi.scheduling.placement.planner import PlacementPlanner
from htfi.wiring.cluster.control_requests import open_cluster_governance
from htfi.wiring.cluster.metrics import log_peer
from htfi.wiring.cluster.node_status import NodeStatusBody, device_status, link_status, node_status_file
from htfi.wiring.cluster.placement import PlannedPlacer
from htfi.wiring.config import ClusterConfig, ClusterRole
from htfi.wiring.models.readers import LazyGenerator, frontier_reader, in_full_precision, open_model_pair
from htfi.wiring.models.speculation import require_shared_noise
from htfi.wiring.outputs import PEERS
from htfi.wiring.settings import Settings
from htfi.wiring.telemetry import NO_PROCESS_TELEMETRY, ProcessTelemetry

_UNREACHABLE = (PeerState.SUSPECT, PeerState.DEAD)


@dataclass(slots=True)
class EdgeNode:
    """An edge that is open: who reads at which rung, and what it knows of the clouds."""

    node: str
    clouds: Mapping[str, str]
    leader_group: str
    readers: dict[Rung, NewsReader]
    generator: LinkedGenerator
    local_generator: LocalGenerator
    placer: PlannedPlacer
    monitor: NodeMonitor
    transport: GrpcTransport
    lease_s: float
    peer_log: "PeerLog"

    def may_publish(self) -> bool:
        """Whether decisions may be passed on: always, unless another edge of its group leads."""
        return not self.leader_group or self.monitor.leads(leader_role(self.leader_group))

    def leader_only(self, mirror: BinaryIO) -> BinaryIO:
        """A mirror of decisions, silent while another edge leads the group."""
        if not self.leader_group:
            return mirror
        return cast(BinaryIO, LeaderOutput(mirror, self.may_publish, 2.0 * self.lease_s))


class PeerLog:
    """What happens to other nodes, as lines of a file in the run's folder, from the time that there is a run."""

    def __init__(self) -> None:
        self._file: FileIO | None = None

    @contextmanager
    def recording(self, folder: Path, before: Iterable[PeerChange]) -> Generator[None]:
        """Append to the folder's file; `before` are the changes that came before the run."""
        try:
            descriptor = open_private(folder / PEERS, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise DependencyUnavailable(f"{folder / PEERS}: cannot be opened: {error.strerror}") from error
        with FileIO(descriptor, "ab") as file:
            self._file = file
            for change in before:
                self.note(change)
            try:
                yield
            finally:
                self._file = None

    def note(self, change: PeerChange) -> None:
        file = self._file
        if file is not None:
            try:
                file.write(msgspec.json.encode(change) + b"\n")
            except (OSError, ValueError):  # a full disk, a closed file: the run itself will say so
                self._file = None


def leader_role(desk: str) -> str:
    return f"desk:{desk}"


@contextmanager
def open_edge(
    settings: Settings,
    name: str,
    *,
    secure: bool = True,
    folder: Path | None = None,
    governance: Path | None = None,
    telemetry: ProcessTelemetry = NO_PROCESS_TELEMETRY,
) -> Generator[EdgeNode]:
    """An edge of the cluster in the settings.

    Where the run's `folder` holds a marking key, the noise of its readings follows from it. Where the `governance`
    folder names several nodes, it agrees with them on policy bundles and shares stops. Its requests carry the trace of
    the step that asks; its probes show metrics too.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    cluster = settings.cluster
    node = cluster.node(name, ClusterRole.EDGE)
    require_shared_noise(settings.decoding, "an edge")
    if not cluster.clouds:
        raise InvalidInput("an edge needs a cloud: --cloud NAME=HOST:PORT, or `htfi run` without one")
    key = mark_key_of(folder) if folder is not None else None
    target, draft = open_model_pair(settings.models)
    health = health_config(settings.health, cluster)
    device = DeviceMonitor()
    log = PeerLog()
    exchange = open_cluster_governance(governance, name)

    def note(change: PeerChange) -> None:
        log.note(change)
        log_peer(telemetry.log, change)

    watch = NodeMonitor(name, health, lambda: device_metrics(device), seal_health, note, exchange=exchange)
    with ExitStack() as closing:
        closing.enter_context(fast_thread_switching())
        transport = GrpcTransport(
            name,
            tls=tls_files(cluster, name) if secure else None,
            rng=RandomGenerator(PCG64(int.from_bytes(os.urandom(8), "little"))),
            peers=cluster.clouds,
            watcher=watch,
            trouble=watch.dial_failed,
        )
        closing.callback(transport.close)
        places = PlannedPlacer(
            EdgePlacer(PlacementPlanner(settings.placement), watch.figures, device.metrics)
        )
        alone = draft.drafting_generator(settings.decoding)
        generator = LinkedGenerator(
            alone,
            ExpectedTarget(target.version, target.folder.digest),
            name,
            transport,
            places,
            lambda: [cloud for cloud in cluster.clouds if watch.state(cloud) not in _UNREACHABLE],
            time.monotonic,
            watch.note,
            settings.edge,
            AcceptanceAlarm(),
            telemetry.traceparent,
            telemetry.points,
        )
        closing.callback(generator.close)
        full = in_full_precision(target)
        edge_generator = LazyGenerator(draft, lambda: draft.plain_generator(settings.decoding))
        linked = ModelReader(
            generator, settings.narrative, target.trust, draft.trust, target.meaning, draft.meaning, key=key
        )
        readers: dict[Rung, NewsReader] = {
            Rung.TEMPLATE: TemplateReader(settings.narrative),
            Rung.EDGE: ModelReader(
                edge_generator, settings.narrative, draft.trust, meaning=draft.meaning, key=key
            ),
            Rung.SPECULATIVE: linked,
            Rung.SECURE: SecureReader(linked, settings.narrative),
            Rung.DEEP: LateDeepReader(
                FullPrecisionGenerator(generator, full.version),
                settings.narrative,
                full.trust,
                full.meaning,
                key,
            ),
        }
        if settings.models.frontier_url:
            readers[Rung.DEEP] = frontier_reader(settings.models, settings.narrative)
        edge = EdgeNode(
            name, cluster.clouds, cluster.leader_group, readers, generator, alone, places, watch, transport,
            health.lease_ms / 1e3, log,
        )  # fmt: skip
        if folder is not None:
            closing.enter_context(node_status_file(folder, lambda device: _status(edge, device)))
        if cluster.leader_group:
            watch.request_leadership(leader_role(cluster.leader_group))
            closing.callback(watch.resign, leader_role(cluster.leader_group))
        if node.probes:
            closing.enter_context(
                ProbeServer(
                    node.probes,
                    lambda: ProbeResult(True),
                    lambda: _edge_readiness(edge),
                    pages=telemetry.pages,
                )
            )
        generator.wait_ready(FIRST_HEARTBEAT_MS / 1e3)
        yield edge


def _status(edge: EdgeNode, device: DeviceMonitor) -> NodeStatusBody:
    placed = dict(edge.placer.num_placed)
    return NodeStatusBody(
        edge.node,
        time.time_ns(),
        device_status(device),
        [
            link_status(name, edge.clouds.get(name), edge.monitor.figures(name), placed)
            for name in sorted({*edge.clouds, *edge.monitor.peers()})
        ],
        sum(num for (cloud, _), num in placed.items() if not cloud),
    )


def _edge_readiness(edge: EdgeNode) -> ProbeResult:
    """An edge is ready without a cloud too: it works alone."""
    well = [cloud for cloud in edge.clouds if edge.monitor.state(cloud) is PeerState.HEALTHY]
    return ProbeResult(True, f"healthy clouds: {', '.join(well) or 'none, so readings are provisional'}")


def health_config(config: HealthConfig, cluster: ClusterConfig) -> HealthConfig:
    """All clouds vote, where the settings name no voters."""
    return config if config.voters else replace(config, voters=tuple(sorted(cluster.clouds)))


def tls_files(cluster: ClusterConfig, node: str) -> TlsFiles:
    """Where `htfi certs` put them."""
    folder = Path(cluster.certificates)
    return TlsFiles(folder / "ca.pem", folder / f"{node}.pem", folder / f"{node}.key")


def device_metrics(device: DeviceMonitor) -> NodeHealthMetrics:
    """This machine's own, without a queue."""
    metrics = device.metrics()
    return NodeHealthMetrics(
        temperature_c=metrics.temperature_c,
        throttle_share=min(max(metrics.throttle_share or 0.0, 0.0), 1.0),
        power_w=max(metrics.power_w or 0.0, 0.0),
    )


_MAX_BUFFERED_BYTES = 16 << 20  # kept back at most


class LeaderOutput(RawIOBase):
    """A sink of lines that hands them on while `leads()` is true. `kept_s` is how long others may not have noticed."""

    def __init__(
        self,
        mirror: BinaryIO,
        leads: Callable[[], bool],
        kept_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mirror = mirror
        self._leads = leads
        self._kept_s = kept_s
        self._clock = clock
        self._kept: deque[tuple[float, bytes]] = deque()
        self._num_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        """All of `data`, now or when this node comes to lead."""
        lines = bytes(cast(bytes, data))
        self._drop_expired()
        if not self._leads():
            self._kept.append((self._clock(), lines))
            self._num_bytes += len(lines)
            return len(lines)
        while self._kept:
            _, kept = self._kept.popleft()
            self._num_bytes -= len(kept)
            _write_all(self._mirror, kept)
        _write_all(self._mirror, lines)
        return len(lines)

    def flush(self) -> None:
        self._mirror.flush()

    def _drop_expired(self) -> None:
        too_old_s = self._clock() - self._kept_s
        while self._kept and (self._kept[0][0] < too_old_s or self._num_bytes > _MAX_BUFFERED_BYTES):
            _, gone = self._kept.popleft()
            self._num_bytes -= len(gone)


def _write_all(mirror: BinaryIO, lines: bytes) -> None:
    view = memoryview(lines)
    while view:
        view = view[mirror.write(view) or 0 :]
