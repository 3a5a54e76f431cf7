"""One stream between two nodes of the simulated network, and one node's inbox: plain state."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from htfi.decoding.link.ports import StreamArrival

NodeStep = Callable[[], float | None]


class StreamWatcher(Protocol):
    """What monitors peers beside the requests, as a real transport calls it. A bad body raises InvalidInput."""

    def opened(self, stream: str, node: str, dialled: bool) -> None: ...

    def ended(self, stream: str, node: str, reason: str) -> None: ...

    def received(self, stream: str, node: str, body: bytes) -> None: ...

    def due(self) -> Sequence[tuple[str, bytes]]: ...


@dataclass(slots=True, eq=False)
class SimulatedNode:
    """`step` works when something arrived; without one, a caller outside waits in `receive`."""

    name: str
    step: NodeStep | None
    watch: StreamWatcher | None
    inbox: deque[StreamArrival] = field(default_factory=deque[StreamArrival])
    is_killed: bool = False
    busy_s: float = 0.0  # it computes until then
    frozen_s: float = 0.0  # and receives nothing until then
    held: deque[Callable[[], None]] = field(
        default_factory=deque[Callable[[], None]]
    )  # what it receives then
    wake_s: float | None = None  # when it is to be stepped next


@dataclass(slots=True, eq=False)
class ConnectionEnd:
    """One end of a connection: its stream's name there, and what travels towards it."""

    node: SimulatedNode
    stream: str
    is_up: bool = False
    last_s: float = 0.0  # the last that travels towards it arrives then
    num_bytes_coming: int = 0
    num_bad: int = 0


@dataclass(slots=True, eq=False)
class SimulatedConnection:
    """A connection from the node that dialled to another. Its name differs at its ends, and is never used again."""

    dialled: ConnectionEnd
    accepted: ConnectionEnd
    has_ended: bool = False

    @property
    def sides(self) -> tuple[ConnectionEnd, ConnectionEnd]:
        return self.dialled, self.accepted

    def at(self, node: SimulatedNode) -> ConnectionEnd:
        return self.dialled if self.dialled.node is node else self.accepted

    def beyond(self, side: ConnectionEnd) -> ConnectionEnd:
        return self.accepted if side is self.dialled else self.dialled

    def joins(self, one: str, other: str) -> bool:
        return {self.dialled.node.name, self.accepted.node.name} == {one, other}
