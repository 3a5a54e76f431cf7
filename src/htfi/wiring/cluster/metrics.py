"""What edges and clouds know of each other and of their work, as metrics; and peers' changes as lines of the log."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from htfi.decoding.link.frames import DraftMode
from htfi.domain.peers import PeerChange, PeerState
from htfi.telemetry import catalogue
from htfi.telemetry.logs import EventLog, LogEvent, LogLevel
from htfi.telemetry.metrics import Reading

if TYPE_CHECKING:
    from htfi.decoding.link.server.server import ServerMetrics
    from htfi.scheduling.health.node import NodeMonitor

_MAX_PEERS = 64  # each has a value for every state
_STATE_NAMES = {
    PeerState.UNKNOWN: "unknown",
    PeerState.HEALTHY: "healthy",
    PeerState.DEGRADED: "degraded",
    PeerState.DRAINING: "draining",
    PeerState.SUSPECT: "suspect",
    PeerState.DEAD: "dead",
}


def log_peer(log: EventLog, change: PeerChange) -> None:
    """A peer's change as a line. Its words are not in it: another node may have written them."""
    is_bad = change.what in (PeerState.DEAD, PeerState.SUSPECT, PeerState.DEGRADED, "refused")
    log.write(
        LogEvent.PEER, LogLevel.WARNING if is_bad else LogLevel.INFO, peer=change.peer, change=change.what
    )


def peer_readings(monitor: "NodeMonitor") -> Iterator[Reading]:
    """State and round trips of the first peers."""
    for peer in monitor.peers()[:_MAX_PEERS]:
        figures = monitor.figures(peer)
        for state, name in _STATE_NAMES.items():
            yield catalogue.PEER_STATE, (peer, name), float(figures.state is state)
        for quantile, ms in (("0.5", figures.rtt_p50_ms), ("0.95", figures.rtt_p95_ms)):
            if ms is not None:
                yield catalogue.ROUND_TRIP, (peer, quantile), ms / 1e3


def edge_readings(
    monitor: "NodeMonitor", num_placed: Mapping[tuple[str, DraftMode], int]
) -> Iterator[Reading]:
    """The peers of an edge, and how many of its requests were placed where."""
    yield from peer_readings(monitor)
    placed = Counter[str]()
    for (cloud, _), num in num_placed.items():
        placed[cloud] += num
    for cloud, num in placed.items():
        yield catalogue.PLACED, (cloud,), float(num)


def cloud_readings(monitor: "NodeMonitor", latest: Callable[[], "ServerMetrics | None"]) -> Iterator[Reading]:
    """The peers of a cloud, and its figures as the engine's thread left them last."""
    yield from peer_readings(monitor)
    server = latest()
    if server is None:
        return
    yield catalogue.CLOUD_STREAMS, (), float(server.num_streams)
    yield catalogue.CLOUD_QUEUE, (), float(server.num_waiting)
    yield catalogue.CLOUD_ROWS, (), float(server.num_rows)
    yield catalogue.CLOUD_QUEUE_SECONDS, (), server.queue_ms / 1e3
    yield catalogue.CLOUD_PASSES, (), float(server.num_passes)
    yield catalogue.CLOUD_TOKENS, (), float(server.num_tokens)
    yield catalogue.CLOUD_REFUSED, (), float(server.num_refused)
    yield catalogue.CLOUD_DRAINING, (), float(server.is_draining)
