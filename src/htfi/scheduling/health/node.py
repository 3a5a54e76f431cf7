"""A node's watch over its peers on the transport's streams.

It handles what the transport reports, sends and asks for, in the transport's thread.

Edge and cloud own one. Everything that the watch finds is kept as changes, for the terminal and for the record.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from numpy.random import PCG64
from numpy.random import Generator as RandomGenerator

from htfi.decoding.link.frames import FrameChannel, seal
from htfi.domain.peers import PeerChange, PeerState
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.monitor import PeerMonitor
from htfi.scheduling.health.peer_contact import PeerFigures

_MAX_CHANGES = 256  # kept for the view


THREAD_SWITCH_S = 0.0005


@contextmanager
def fast_thread_switching() -> Generator[None]:
    """The interpreter changes threads ten times as often inside: a frame then waits 1 ms for a busy caller, not 6."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(THREAD_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def boottime_s() -> float:
    """Monotonic seconds that count a machine's sleep, where the system counts it: a lease must run out meanwhile."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(boot) if boot is not None else time.monotonic()


class NodeMonitor:
    """Implements the transport's Watcher over scheduling's Watch. `vitals` is asked each tick, and must not wait.

    `on_change` gets each change as it happens, in the thread that found it.
    """

    def __init__(
        self,
        node: str,
        config: HealthConfig,
        vitals: Callable[[], NodeHealthMetrics],
        on_change: Callable[[PeerChange], None] = lambda _: None,
        clock: Callable[[], float] = boottime_s,
    ) -> None:
        self.node = node
        self._vitals = vitals
        self._on_change = on_change
        self._clock = clock
        self._lock = threading.Lock()
        self._streams: dict[str, list[str]] = {}  # by peer, the newest last
        self._owed: list[tuple[str, bytes]] = []
        self._changes: deque[PeerChange] = deque(maxlen=_MAX_CHANGES)
        rng = RandomGenerator(PCG64(int.from_bytes(os.urandom(8), "little")))
        self._watch = PeerMonitor(node, config, rng, clock())

    # What the transport calls, in its thread.

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        del dialled
        with self._lock:
            self._streams.setdefault(node, []).append(stream)
            self._watch.stream_opened(node, stream, self._clock())

    def ended(self, stream: str, node: str, words: str) -> None:
        with self._lock:
            streams = self._streams.get(node, [])
            if stream in streams:
                streams.remove(stream)
            self._watch.stream_ended(node, words, self._clock(), stream)
        self._publish_changes()

    def received(self, stream: str, node: str, body: bytes) -> None:
        del stream
        with self._lock:
            self._owed += self._watch.receive(node, body, self._clock())

    def seen(self, stream: str, node: str) -> None:
        del stream
        with self._lock:
            self._watch.activity_seen(node, self._clock())

    def due(self) -> Sequence[tuple[str, bytes]]:
        vitals = self._vitals()
        with self._lock:
            self._watch.report_metrics(vitals)
            bodies = [*self._owed, *self._watch.tick(self._clock())]
            self._owed.clear()
            sent = [
                (streams[-1], seal(FrameChannel.HEALTH, body))
                for peer, body in bodies
                if (streams := self._streams.get(peer))
            ]
        self._publish_changes()
        return sent

    def troubled(self, node: str, words: str) -> None:
        """Why a node cannot be dialled; empty words: it can again, which its stream will show."""
        if words:
            self.note(node, "refused", words)

    # What others ask, from any thread.

    def note(self, peer: str, what: str, words: str) -> None:
        """A change that another found: a reroute, a refusal."""
        change = PeerChange(time.time_ns(), peer, what, words)
        self._changes.append(change)
        self._on_change(change)

    def seek(self, role: str) -> None:
        """Try to lead a role. Raises: InvalidInput without voters."""
        with self._lock:
            self._watch.seek(role)

    def resign(self, role: str) -> None:
        """Lead it no more, and let others; voters learn of it with the next tick."""
        with self._lock:
            self._owed += self._watch.resign(role, self._clock())

    def leads(self, role: str) -> bool:
        """Whether this node leads it now. Ask right before each act."""
        with self._lock:
            return self._watch.leads(role, self._clock())

    def peers(self) -> list[str]:
        with self._lock:
            return [peer for peer in self._watch.peers() if peer != self.node]

    def state(self, peer: str) -> PeerState:
        with self._lock:
            return self._watch.state(peer)

    def figures(self, peer: str) -> PeerFigures:
        with self._lock:
            return self._watch.figures(peer)

    def changes(self) -> tuple[PeerChange, ...]:
        """The latest, oldest first."""
        return tuple(self._changes)

    def _publish_changes(self) -> None:
        with self._lock:
            found = self._watch.changes()
        for peer, what, words in found:
            self.note(peer, what, words)
