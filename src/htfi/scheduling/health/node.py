"""Monitors a node's peers over the transport's streams; an edge or a cloud owns one.

It handles what the transport reports, and what it sends, in the transport's thread. Every change that it finds is
kept, for the terminal and for the record.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from numpy.random import PCG64
from numpy.random import Generator as RandomGenerator

from htfi.domain.peers import PeerChange, PeerState
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.exchange import BundleExchange
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.monitor import PeerMonitor
from htfi.scheduling.health.peer_contact import PeerFigures

_MAX_CHANGES = 256  # kept for the view


def boottime_s() -> float:
    """Monotonic seconds that count a machine's sleep, where the system counts it: a lease must run out meanwhile."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(boot) if boot is not None else time.monotonic()


class NodeMonitor:
    """Implements `StreamObserver` on top of `PeerMonitor`, for calls from any thread.

    `metrics` is called each tick and must not wait; `seal` makes a frame of a message; `on_change` gets each change as
    it happens, in the thread that found it. `exchange` agrees with the other nodes on policy bundles.
    """

    def __init__(
        self,
        node: str,
        config: HealthConfig,
        metrics: Callable[[], NodeHealthMetrics],
        seal: Callable[[bytes], bytes],
        on_change: Callable[[PeerChange], None] = lambda _: None,
        clock: Callable[[], float] = boottime_s,
        exchange: BundleExchange | None = None,
    ) -> None:
        self.node = node
        self._own_metrics = metrics
        self._seal = seal
        self._on_change = on_change
        self._clock = clock
        self._lock = threading.Lock()
        self._streams: dict[str, list[str]] = {}  # by peer, the newest last
        self._replies: list[tuple[str, bytes]] = []
        self._changes: deque[PeerChange] = deque(maxlen=_MAX_CHANGES)
        rng = RandomGenerator(PCG64(int.from_bytes(os.urandom(8), "little")))
        self._monitor = PeerMonitor(node, config, rng, clock(), exchange)

    # What the transport calls, in its thread.

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        del dialled
        with self._lock:
            self._streams.setdefault(node, []).append(stream)
            self._monitor.stream_opened(node, stream, self._clock())

    def ended(self, stream: str, node: str, reason: str) -> None:
        with self._lock:
            streams = self._streams.get(node, [])
            if stream in streams:
                streams.remove(stream)
            self._monitor.stream_ended(node, reason, self._clock(), stream)
        self._publish_changes()

    def received(self, stream: str, node: str, body: bytes) -> None:
        del stream
        with self._lock:
            self._replies += self._monitor.receive(node, body, self._clock())

    def seen(self, stream: str, node: str) -> None:
        del stream
        with self._lock:
            self._monitor.activity_seen(node, self._clock())

    def due(self) -> Sequence[tuple[str, bytes]]:
        metrics = self._own_metrics()
        with self._lock:
            self._monitor.report_metrics(metrics)
            bodies = [*self._replies, *self._monitor.tick(self._clock())]
            self._replies.clear()
            sent = [
                (streams[-1], self._seal(body))
                for peer, body in bodies
                if (streams := self._streams.get(peer))
            ]
        self._publish_changes()
        return sent

    def dial_failed(self, node: str, reason: str) -> None:
        """Why a node cannot be dialled; empty reason: it can again, which its stream will show."""
        if reason:
            self.note(node, "refused", reason)

    # What others ask, from any thread.

    def note(self, peer: str, what: str, reason: str) -> None:
        """A change that another found: a reroute, a refusal."""
        change = PeerChange(time.time_ns(), peer, what, reason)
        self._changes.append(change)
        self._on_change(change)

    def request_leadership(self, role: str) -> None:
        """Try to lead a role. Raises: InvalidInput without voters."""
        with self._lock:
            self._monitor.request_leadership(role)

    def resign(self, role: str) -> None:
        """Lead it no more, and let others; voters learn of it with the next tick."""
        with self._lock:
            self._replies += self._monitor.resign(role, self._clock())

    def leads(self, role: str) -> bool:
        """Whether this node leads it now. Ask right before each act."""
        with self._lock:
            return self._monitor.leads(role, self._clock())

    def peers(self) -> list[str]:
        with self._lock:
            return [peer for peer in self._monitor.peers() if peer != self.node]

    def state(self, peer: str) -> PeerState:
        with self._lock:
            return self._monitor.state(peer)

    def figures(self, peer: str) -> PeerFigures:
        with self._lock:
            return self._monitor.figures(peer)

    def changes(self) -> tuple[PeerChange, ...]:
        """The latest, oldest first."""
        return tuple(self._changes)

    def _publish_changes(self) -> None:
        with self._lock:
            found = self._monitor.changes()
        for peer, what, reason in found:
            self.note(peer, what, reason)
