"""Nodes and streams in memory: edge and cloud run against each other in one thread, seeded, in virtual time.

One side may block, as a generator does: its `receive(timeout_s)` moves time on, and steps all others meanwhile. The
others are steps: called when a frame arrived or their time has come, they do what can be done now, and return in how
many seconds they want to be called although nothing arrives (None: not before). Whoever computes says so by
`consume_time`: inside a step this lets the step last so long, outside it moves time on.

    network = SimulatedNetwork(seed, FrameFaults(delay_ms=20, ends=0.01))
    cloud = network.node("cloud1")
    network.attach("cloud1", step)     # reads cloud.receive(0.0), calls cloud.send(stream, sealed)
    edge = network.node("edge1")
    network.connect("edge1", "cloud1")
    ...                                # a generator with `edge` for its transport and `network.clock` for its clock
"""

import math

from htfi.decoding.link.ports import StreamArrival
from htfi.decoding.link.simulated.connections import (
    NodeStep,
    SimulatedConnection,
    SimulatedNode,
    StreamWatcher,
)
from htfi.decoding.link.simulated.delivery import FrameDelivery
from htfi.decoding.link.simulated.faults import NO_FAULTS, FrameFaults
from htfi.decoding.link.simulated.scheduler import EventScheduler
from htfi.domain.errors import InvalidInput

TICK_S = 0.025  # of a watch


class SimulatedNetwork:
    """Everything that happens, in its order. The same seed and the same calls give the same events."""

    def __init__(self, seed: int = 0, faults: FrameFaults = NO_FAULTS) -> None:
        self.seed = seed
        self._time = EventScheduler()
        self._nodes: dict[str, SimulatedNode] = {}
        self._deliveries = FrameDelivery(self._time, self._nodes, seed, faults, self._deliver)

    @property
    def frame_faults(self) -> FrameFaults:
        return self._deliveries.frame_faults

    @frame_faults.setter
    def frame_faults(self, faults: FrameFaults) -> None:
        """For frames that are sent from now on."""
        self._time.note(f"faults: {faults}")
        self._deliveries.frame_faults = faults

    @property
    def now_s(self) -> float:
        return self._time.now_s

    def clock(self) -> float:
        """Seconds since it began."""
        return self._time.now_s

    def node(
        self, name: str, step: NodeStep | None = None, watch: StreamWatcher | None = None
    ) -> "MemoryTransport":
        """A node that starts now; one that was killed may start again, and is dialled again by those that did."""
        old = self._nodes.get(name)
        if old is not None and not old.is_killed:
            raise InvalidInput(f"simulated network: there is a node {name} already")
        node = self._nodes[name] = SimulatedNode(name, None, None)
        if step is not None:
            self.attach(name, step, watch)
        elif watch is not None:
            self._attach_watcher(node, watch)
        self._deliveries.started(name)
        return MemoryTransport(self, node)

    def attach(self, name: str, step: NodeStep, watch: StreamWatcher | None = None) -> None:
        """The step of a node that was made without, and its watch."""
        node = self._nodes[name]
        node.step = step
        if watch is not None:
            self._attach_watcher(node, watch)
        self._wake(node, self.now_s)

    def connect(self, dialler: str, accepter: str) -> None:
        """From now on there is a stream between them, or the dialler tries to open one."""
        self._deliveries.connect(dialler, accepter)

    def disconnect(self, dialler: str, accepter: str) -> None:
        """The dialler tries no more, once the stream that stands has ended."""
        self._deliveries.disconnect(dialler, accepter)

    def cut(self, one: str, other: str, reason: str = "the connection was reset") -> None:
        """End the stream between two nodes; it is dialled again."""
        for line in self._deliveries.lines_of(one):
            if line.joins(one, other):
                self._deliveries.end(line, reason)

    def kill(self, name: str) -> None:
        """The node ends without a frame of its own; its peers notice that its streams ended."""
        node = self._nodes[name]
        node.is_killed, node.step, node.watch = True, None, None
        node.inbox.clear()
        self._time.note(f"{name} was killed")
        for line in self._deliveries.lines_of(name):
            self._deliveries.end(line, f"{name} is gone")

    def pause_node(self, name: str, for_s: float) -> None:
        """The node does and receives nothing for so long; its streams stay up."""
        node = self._nodes[name]
        node.frozen_s = max(node.frozen_s, self.now_s) + for_s
        self._time.note(f"{name} is paused for {for_s:g} s")

    def consume_time(self, seconds: float) -> None:
        """Whoever runs now computes for so long."""
        self._time.consume_time(seconds)

    def advance(self, until_s: float) -> None:
        """Everything that happens until then. Not from within a step."""
        self._time.advance(until_s)

    def describe(self, num_notes: int = 60) -> str:
        """Seed, faults, the last events, for messages."""
        head = f"simulated network, seed {self.seed}: {self.frame_faults}, now {self.now_s:.4f} s"
        notes = list(self._time.notes)[-num_notes:]
        return "\n".join([head, *(f"  {at_s:9.4f} s  {words}" for at_s, words in notes)])

    def receive(self, node: SimulatedNode, timeout_s: float) -> StreamArrival | None:
        """For the node's transport."""
        if not self._time.is_held and not node.inbox and not node.is_killed:
            until_s = self.now_s + max(timeout_s, 0.0)
            while not node.inbox and not node.is_killed and self._time.next_by(until_s):
                pass
            if not node.inbox:
                if math.isinf(until_s):
                    raise InvalidInput(f"simulated network: {node.name} waits for ever\n{self.describe()}")
                self._time.advance(until_s)
        return node.inbox.popleft() if node.inbox else None

    def line(self, node: SimulatedNode, stream: str) -> SimulatedConnection | None:
        """For the node's transport."""
        return None if node.is_killed else self._deliveries.lines.get((node.name, stream))

    def send(self, node: SimulatedNode, stream: str, sealed: bytes) -> bool:
        line = self.line(node, stream)
        return line is not None and self._deliveries.send(line, line.at(node), sealed)

    def drop(self, node: SimulatedNode, stream: str, reason: str) -> None:
        line = self.line(node, stream)
        if line is not None:
            self._deliveries.end(line, reason, line.at(node))

    def _deliver(self, node: SimulatedNode, arrival: StreamArrival) -> None:
        node.inbox.append(arrival)
        self._wake(node, self.now_s)

    def _wake(self, node: SimulatedNode, at_s: float) -> None:
        at_s = max(at_s, node.busy_s, node.frozen_s)
        if node.step is not None and (node.wake_s is None or at_s < node.wake_s):
            node.wake_s = at_s
            self._time.at(at_s, lambda: self._run(node, at_s))

    def _run(self, node: SimulatedNode, at_s: float) -> None:
        if node.step is None or node.wake_s != at_s:
            return  # killed, or woken sooner meanwhile
        node.wake_s = None
        if node.frozen_s > at_s:
            self._wake(node, at_s)
            return
        spent_s, wants_s = self._time.hold(node.step)
        node.busy_s = self.now_s + spent_s
        if node.inbox:
            self._wake(node, node.busy_s)
        elif wants_s is not None:
            self._wake(node, node.busy_s + wants_s)

    def _attach_watcher(self, node: SimulatedNode, watch: StreamWatcher) -> None:
        node.watch = watch
        self._time.at(self.now_s + TICK_S, lambda: self._tick(node))

    def _tick(self, node: SimulatedNode) -> None:
        if node.watch is None:
            return
        if node.frozen_s <= self.now_s:
            for stream, sealed in node.watch.due():
                self.send(node, stream, sealed)
        self._time.at(self.now_s + TICK_S, lambda: self._tick(node))


class MemoryTransport:
    """One node's streams. Implements decoding's `Transport`."""

    def __init__(self, network: SimulatedNetwork, node: SimulatedNode) -> None:
        self._network, self._node = network, node

    def receive(self, timeout_s: float) -> StreamArrival | None:
        """Moves time on until something arrives, for at most so long; within a step it never waits."""
        return self._network.receive(self._node, timeout_s)

    def send(self, stream: str, sealed: bytes) -> bool:
        return self._network.send(self._node, stream, sealed)

    def drop(self, stream: str, reason: str) -> None:
        self._network.drop(self._node, stream, reason)


def network_of_two(
    seed: int = 0, faults: FrameFaults = NO_FAULTS
) -> tuple[SimulatedNetwork, MemoryTransport, MemoryTransport]:
    """A network of two nodes: `edge`, which dials, and `cloud`, to which a step is to be attached."""
    network = SimulatedNetwork(seed, faults)
    cloud, edge = network.node("cloud"), network.node("edge")
    network.connect("edge", "cloud")
    return network, edge, cloud
