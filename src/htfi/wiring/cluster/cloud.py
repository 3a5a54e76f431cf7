"""Builds a cloud: the server over its target, the streams to edges and other clouds, the watch over all of them.

The cloud command opens one and serves until it has drained.
"""

import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs
from numpy.random import PCG64
from numpy.random import Generator as RandomGenerator

from htfi.adapters.device.metrics import DeviceMonitor
from htfi.adapters.grpc.transport import GrpcTransport, fast_thread_switching
from htfi.adapters.probes.server import ProbeResult, ProbeServer
from htfi.decoding.engine import DecodingEngine
from htfi.decoding.link.frames import seal_health
from htfi.decoding.link.server.remote_drafts import RoutedStrategy
from htfi.decoding.link.server.server import ServerMetrics as DeskVitals
from htfi.decoding.link.server.server import VerificationServer
from htfi.decoding.strategies import build_strategy
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.node import NodeMonitor
from htfi.scheduling.turns.fair_share import FairScheduler
from htfi.wiring.cluster.control_requests import open_cluster_governance
from htfi.wiring.cluster.edge import device_metrics, health_config, tls_files
from htfi.wiring.cluster.metrics import cloud_readings, log_peer
from htfi.wiring.config import ClusterRole, split_address
from htfi.wiring.models.readers import in_full_precision, open_model_pair
from htfi.wiring.models.speculation import build_draft_length_planner, require_shared_noise, strategy_parts
from htfi.wiring.settings import Settings
from htfi.wiring.telemetry import NO_PROCESS_TELEMETRY, ProcessTelemetry

_IDLE_S = 0.02  # how long a server without work waits for a frame before it looks at the time
_REPORT_S = 0.02  # between figures for heartbeats
_MAX_FRAMES_PER_PASS = 64  # frames received between two passes
_CACHE_TOKENS = 32_768  # of prompts: many edges ask about the same news, each at moments of its own


@dataclass(slots=True)
class CloudServer:
    """A cloud that is open: `serve` it, `drain` it."""

    address: str
    model: str
    server: VerificationServer
    monitor: NodeMonitor
    transport: GrpcTransport
    drain_s: float
    status: "_ServerStatus"

    def serve(self, look: Callable[[], None] = lambda: None) -> None:
        """Receive, step, send, until it has drained; at most `drain_s` after `drain`."""
        server, transport, report_s = self.server, self.transport, 0.0
        while not self._has_drained():
            is_busy = server.step()
            arrival = transport.receive(0.0 if is_busy else min(server.next_s() or _IDLE_S, _IDLE_S))
            for _ in range(_MAX_FRAMES_PER_PASS):
                if arrival is None:
                    break
                server.receive(arrival)
                arrival = transport.receive(0.0)
            full: set[str] = set()  # what a stream does not take now must not be overtaken
            for stream, sealed in server.outgoing():
                if stream in full or not transport.send(stream, sealed):
                    full.add(stream)
                    server.unsent(stream, sealed)
            for stream, reason in server.drops():
                transport.drop(stream, reason)
            now_s = time.monotonic()
            if now_s >= report_s:
                report_s = now_s + _REPORT_S
                self.status.server_metrics = server.metrics
            look()

    def drain(self) -> None:
        """Take nothing new, finish what is begun. Safe in a signal handler."""
        self.status.drains_at_s = self.status.drains_at_s or time.monotonic()

    def _has_drained(self) -> bool:
        began_s = self.status.drains_at_s
        if began_s is None:
            return False
        if not self.server.metrics.is_draining:
            self.server.drain()
        return self.server.is_idle or time.monotonic() - began_s > self.drain_s


@dataclass(slots=True)
class _ServerStatus:
    """What the watch's thread may read of the server: the engine's thread leaves it here."""

    device: DeviceMonitor = field(default_factory=DeviceMonitor)
    server_metrics: DeskVitals | None = None
    drains_at_s: float | None = None

    def health_metrics(self) -> NodeHealthMetrics:
        own, server = device_metrics(self.device), self.server_metrics
        if server is None:
            return own
        pace = server.pace
        return structs.replace(
            own,
            queue=server.num_waiting,
            queue_ms=server.queue_ms,
            num_rows=server.num_rows,
            step_p50_ms=server.step_p50_ms,
            step_p95_ms=server.step_p95_ms,
            prompt_ms_per_token=pace.prompt_ms,
            verify_ms=(pace.fixed_ms, pace.row_ms, pace.token_ms, pace.cell_ms),
            draft_ms_per_token=pace.draft_ms,
            progress=server.num_passes,
            is_draining=server.is_draining or self.drains_at_s is not None,
        )


@contextmanager
def open_cloud(
    settings: Settings,
    name: str,
    *,
    secure: bool = True,
    with_draft: bool = True,
    governance: Path | None = None,
    telemetry: ProcessTelemetry = NO_PROCESS_TELEMETRY,
) -> Generator[CloudServer]:
    """A cloud of the cluster in the settings.

    Where the `governance` folder names several nodes, it agrees with them on policy bundles and shares stops.
    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    cluster = settings.cluster
    node = cluster.node(name, ClusterRole.CLOUD)
    require_shared_noise(settings.decoding, "a cloud")
    target, draft = open_model_pair(settings.models)
    decoding = replace(
        settings.decoding,
        max_batch=max(settings.decoding.max_batch, settings.turns.max_rows),
        cache_tokens=max(settings.decoding.cache_tokens, _CACHE_TOKENS),
    )
    learning = replace(settings.decoding, draft_length="measured")
    drafts = with_draft and settings.decoding.strategy != "plain"
    routed = RoutedStrategy(build_strategy(strategy_parts(target, draft, learning)) if drafts else None)
    rounds = DecodingEngine(
        target.network,
        target.tokenizer,
        target.name,
        decoding,
        target.tokenizer.opening,
        target.folder.digest,
        routed,
        build_draft_length_planner(learning),
    )

    def full() -> tuple[DecodingEngine, RoutedStrategy, FairScheduler]:
        """The target in full precision, without a draft."""
        of, alone = in_full_precision(target), RoutedStrategy()
        tokenizer = of.tokenizer
        rounds = DecodingEngine(
            of.network, tokenizer, of.name, decoding, tokenizer.opening, of.folder.digest, alone
        )
        return rounds, alone, FairScheduler(settings.turns)

    rng = RandomGenerator(PCG64(int.from_bytes(os.urandom(8), "little")))
    config = replace(settings.server, node=name, residency=node.residency)
    server = VerificationServer(
        rounds,
        routed,
        FairScheduler(settings.turns),
        time.monotonic,
        config,
        int(rng.integers(1, 1 << 31)),
        full,
        telemetry.tracer,
    )
    status = _ServerStatus()
    exchange = open_cluster_governance(governance, name)
    watch = NodeMonitor(
        name,
        health_config(settings.health, cluster),
        status.health_metrics,
        seal_health,
        lambda change: log_peer(telemetry.log, change),
        exchange=exchange,
    )
    if telemetry.pages:
        telemetry.registry.read_from(lambda: cloud_readings(watch, lambda: status.server_metrics))
    with ExitStack() as closing:
        closing.enter_context(fast_thread_switching())
        transport = GrpcTransport(
            name,
            tls=tls_files(cluster, name) if secure else None,
            rng=rng,
            listen=node.address,
            peers={other: address for other, address in cluster.clouds.items() if other != name},
            watcher=watch,
            trouble=watch.dial_failed,
        )
        closing.callback(transport.close)
        host, _ = split_address(node.address, name)
        address = f"{host}:{transport.port}"
        cloud = CloudServer(address, target.version, server, watch, transport, cluster.drain_s, status)
        if node.probes:
            closing.enter_context(
                ProbeServer(
                    node.probes,
                    lambda: ProbeResult(True),
                    lambda: _cloud_readiness(status, transport),
                    pages=telemetry.pages,
                )
            )
        yield cloud


def _cloud_readiness(status: _ServerStatus, transport: GrpcTransport) -> ProbeResult:
    if status.drains_at_s is not None:
        return ProbeResult(False, "draining")
    return ProbeResult(transport.is_listening, "" if transport.is_listening else "its port is closed")
