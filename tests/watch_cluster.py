"""A cluster in memory, of real watches in virtual time: delays, losses, partitions, freezes, drifting clocks."""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from htfi.scheduling.health.config import TICK_MS, HealthConfig
from htfi.scheduling.health.monitor import PeerMonitor, PeerTransition


@dataclass
class Link:
    """One direction. Frames arrive in order, as on a stream; a lost one only where the test says so."""

    delay_ms: float = 5.0
    jitter_ms: float = 0.0  # either way
    loss: float = 0.0
    twice: float = 0.0
    is_cut: bool = False
    last_s: float = 0.0


@dataclass
class Node:
    name: str
    watch: PeerMonitor
    offset_s: float  # its monotonic clock's start
    rate: float
    is_up: bool = True
    frozen_until_s: float = -math.inf
    inbox: list[tuple[str, bytes]] = field(default_factory=list)  # what came while it was frozen
    changes: list[tuple[float, PeerTransition]] = field(default_factory=list)
    num_bytes: int = 0
    num_bodies: int = 0


class Cluster:
    """Nodes and streams between them. `now_s` is true time; each node has its own clock."""

    def __init__(self, seed: int, config: HealthConfig | None = None) -> None:
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.config = config if config is not None else HealthConfig()
        self.now_s = 0.0
        self.nodes: dict[str, Node] = {}
        self.links: dict[tuple[str, str], Link] = {}
        self.bodies: Counter[str] = Counter()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._starts = 0

    def start(self, name: str, *, offset_s: float | None = None, rate: float = 1.0) -> Node:
        """A node begins, or begins anew."""
        self._starts += 1
        offset_s = float(self.rng.uniform(0.0, 1e4)) if offset_s is None else offset_s
        rng = np.random.Generator(np.random.PCG64([int(self.rng.integers(1 << 32)), self._starts]))
        node = Node(name, None, offset_s, rate)  # type: ignore[arg-type]
        node.watch = PeerMonitor(name, self.config, rng, self.clock(node))
        self.nodes[name] = node
        self.at(self.now_s + float(self.rng.uniform(0.0, 0.025)), lambda: self._tick(node))
        return node

    def clock(self, node: Node) -> float:
        return node.offset_s + self.now_s * node.rate

    def connect(self, a: str, b: str, link: Callable[[], Link] = Link) -> None:
        for one, other in ((a, b), (b, a)):
            self.links.setdefault((one, other), link())
            node = self.nodes[one]
            node.watch.stream_opened(other, f"{a}-{b}", self.clock(node))

    def kill(self, name: str, *, is_told: bool = False) -> None:
        """A node is gone. `is_told`: its peers' streams end, as the kernel of a living machine would see to."""
        self.nodes[name].is_up = False
        if is_told:
            for one, other in self.links:
                if one == name and self.nodes[other].is_up:
                    self.nodes[other].watch.stream_ended(
                        name, "connection reset", self.clock(self.nodes[other])
                    )

    def freeze(self, name: str, seconds: float) -> None:
        """SIGSTOP: it neither ticks nor reads; frames wait in its kernel."""
        self.nodes[name].frozen_until_s = self.now_s + seconds

    def cut(self, pairs: Sequence[tuple[str, str]], is_cut: bool = True) -> None:
        for pair in pairs:
            self.links[pair].is_cut = is_cut

    def at(self, when_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (when_s, next(self._order), act))

    def run(self, seconds: float, each: Callable[[], None] | None = None) -> None:
        """`each` is called after every event."""
        end_s = self.now_s + seconds
        while self._queue and self._queue[0][0] <= end_s:
            self.now_s, _, act = heapq.heappop(self._queue)
            act()
            if each is not None:
                each()
        self.now_s = end_s

    def said(self, node: str, peer: str) -> list[tuple[float, str]]:
        """When (true time) a node told what of a peer."""
        return [(at, change.what) for at, change in self.nodes[node].changes if change.peer == peer]

    def _tick(self, node: Node) -> None:
        if not node.is_up:
            return
        if self.now_s < node.frozen_until_s:
            self.at(node.frozen_until_s + 1e-4, lambda: self._tick(node))
            return
        # After a freeze either the timer or the sockets may come first.
        held, node.inbox = node.inbox, []
        if held and self.rng.random() < 0.5:
            self._read(node, held)
            held = []
        self._send(node, node.watch.tick(self.clock(node)))
        self._read(node, held)
        self._drain(node)
        tick_s = TICK_MS / 1e3
        self.at(self.now_s + tick_s * float(self.rng.uniform(0.98, 1.06)), lambda: self._tick(node))

    def _read(self, node: Node, held: list[tuple[str, bytes]]) -> None:
        for sender, body in held:
            self._send(node, node.watch.receive(sender, body, self.clock(node)))

    def _drain(self, node: Node) -> None:
        node.changes += [(self.now_s, change) for change in node.watch.changes()]

    def _send(self, node: Node, bodies: list[tuple[str, bytes]]) -> None:
        for to, body in bodies:
            node.num_bytes += len(body)
            node.num_bodies += 1
            link = self.links[node.name, to]
            if link.is_cut or self.rng.random() < link.loss:
                continue
            times = 2 if self.rng.random() < link.twice else 1
            for _ in range(times):
                late_ms = link.delay_ms + float(self.rng.uniform(-link.jitter_ms, link.jitter_ms))
                link.last_s = max(link.last_s, self.now_s + max(0.1, late_ms) / 1e3)
                self._deliver(node.name, self.nodes[to], body, link.last_s)

    def _deliver(self, sender: str, node: Node, body: bytes, when_s: float) -> None:
        def arrive() -> None:
            if not node.is_up or self.nodes[node.name] is not node:
                return
            if self.now_s < node.frozen_until_s:
                node.inbox.append((sender, body))
                return
            self._read(node, [(sender, body)])
            self._drain(node)

        self.at(when_s, arrive)
