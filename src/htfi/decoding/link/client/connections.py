"""The clouds as an edge knows them: a stream to each, its welcome, the parts sent there, and unsent frames.

Whether a cloud is usable is not judged here but by health monitoring.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from htfi.decoding.link.frames import (
    PART_BYTES,
    PROTOCOL,
    AcceptedFrame,
    DraftWindowFrame,
    Frame,
    HelloFrame,
    NeedFrame,
    PartFrame,
    WelcomeFrame,
    encode,
)
from htfi.decoding.link.ports import Transport

_MAX_WAITING_FRAMES = 4_096  # frames for one cloud that accepts none now
_HANDLE_REUSE_S = 10.0  # after which no frame names a finished handle
_SEALED_BYTES = 5  # checksum and channel, which an arrival's body lacks


@dataclass(slots=True)
class LinkTraffic:
    """Frames and bytes both attempts since the start, sealed but without the transport's overhead.

    `id_bytes` are those of token ids in windows and outcomes, which must travel; `num_rounds` counts outcomes.
    """

    num_sent: int = 0
    sent_bytes: int = 0
    num_received: int = 0
    received_bytes: int = 0
    window_bytes: int = 0
    accepted_bytes: int = 0
    id_bytes: int = 0
    num_windows: int = 0
    num_rounds: int = 0
    num_stale: int = 0  # frames of another epoch or of a finished request

    @property
    def overhead_bytes_per_round(self) -> float:
        """Bytes of windows and outcomes besides their ids, per outcome."""
        beside = self.window_bytes + self.accepted_bytes - self.id_bytes
        return beside / self.num_rounds if self.num_rounds else 0.0

    def record_sent(self, frame: Frame, num_bytes: int) -> None:
        self.num_sent += 1
        self.sent_bytes += num_bytes
        if isinstance(frame, DraftWindowFrame):
            self.num_windows += 1
            self.window_bytes += num_bytes
            self.id_bytes += len(frame.ids)

    def record_received(self, frame: Frame, num_body_bytes: int) -> None:
        self.num_received += 1
        self.received_bytes += num_body_bytes + _SEALED_BYTES
        if isinstance(frame, AcceptedFrame):
            self.num_rounds += 1
            self.accepted_bytes += num_body_bytes + _SEALED_BYTES
            self.id_bytes += len(frame.ids)


@dataclass(slots=True, eq=False)
class CloudConnection:
    """One stream to a cloud. `refused` says why it is not used; `waiting` are sealed frames to send."""

    node: str
    stream: str
    connected_s: float
    welcome: WelcomeFrame | None = None
    refused: str = ""
    is_draining: bool = False
    num_handles: int = 0
    freed: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    waiting: deque[bytes] = field(default_factory=deque[bytes])

    @property
    def is_open(self) -> bool:
        return self.welcome is not None and not self.refused

    @property
    def awaits_welcome(self) -> bool:
        return self.welcome is None and not self.refused

    def next_handle(self, now_s: float) -> int:
        """A handle that no frame on its attempt can name; small ones are reused, since they take one byte."""
        if self.freed and now_s - self.freed[0][0] > _HANDLE_REUSE_S:
            return self.freed.popleft()[1]
        self.num_handles += 1
        return self.num_handles

    def free(self, handle: int, now_s: float) -> None:
        self.freed.append((now_s, handle))


class CloudConnections:
    """Streams by name; of several to one node the newest counts. `target` is the digest (or its beginning) that clouds
    must have, empty for any; `tokenizer` the edge's own.
    """

    def __init__(
        self, transport: Transport, node: str, target: str, tokenizer: str, max_parts_known: int
    ) -> None:
        self.traffic = LinkTraffic()
        self._transport = transport
        self._node, self._target, self._tokenizer = node, target, tokenizer
        self._max_parts_known = max_parts_known
        self._streams: dict[str, CloudConnection] = {}
        self._known: dict[
            str, tuple[int, OrderedDict[bytes, None]]
        ] = {}  # by node: its incarnation, names sent to it
        self._rejected: dict[str, int] = {}  # nodes that contradicted accepted tokens, with their incarnation

    def __iter__(self) -> Iterator[CloudConnection]:
        return iter(self._streams.values())

    def by_stream(self, stream: str) -> CloudConnection | None:
        return self._streams.get(stream)

    def by_node(self, node: str) -> CloudConnection | None:
        """The newest usable stream to a node."""
        found = [cloud for cloud in self._streams.values() if cloud.node == node and cloud.is_open]
        return found[-1] if found else None

    def admits(self, node: str, tags: frozenset[str]) -> bool:
        """Whether data with these tags may go to a node."""
        cloud = self.by_node(node)
        return cloud is not None and cloud.welcome is not None and tags <= set(cloud.welcome.residency)

    def has_full(self, node: str) -> bool:
        """Whether a node also has the target in full precision."""
        cloud = self.by_node(node)
        return cloud is not None and cloud.welcome is not None and cloud.welcome.in_full

    def connected(self, stream: str, node: str, now_s: float) -> CloudConnection:
        cloud = self._streams[stream] = CloudConnection(node, stream, now_s)
        self.send(cloud, HelloFrame(PROTOCOL, self._node, self._target, self._tokenizer))
        return cloud

    def disconnected(self, stream: str) -> CloudConnection | None:
        return self._streams.pop(stream, None)

    def accept_welcome(self, cloud: CloudConnection, welcome: WelcomeFrame) -> str:
        """Check a cloud's welcome; why it cannot be used, or ''."""
        if welcome.version != PROTOCOL:
            cloud.refused = f"it speaks protocol {welcome.version}, this edge {PROTOCOL}"
        elif welcome.node != cloud.node:
            cloud.refused = f"its name {welcome.node[:64]!r} is not its certificate's"
        elif self._target and not welcome.target.startswith(self._target):
            cloud.refused = f"its target is {welcome.target[:12]!r}, expected is {self._target[:12]!r}"
        elif welcome.tokenizer != self._tokenizer:
            cloud.refused = (
                f"its tokenizer is {welcome.tokenizer[:12]!r}, expected is {self._tokenizer[:12]!r}"
            )
        elif self._rejected.get(cloud.node) == welcome.incarnation:
            cloud.refused = "it contradicted accepted tokens before"
        else:
            cloud.welcome = welcome
            if self._known.get(cloud.node, (welcome.incarnation,))[0] != welcome.incarnation:
                del self._known[cloud.node]
            self._known.setdefault(cloud.node, (welcome.incarnation, OrderedDict()))
        return cloud.refused

    def reject(self, cloud: CloudConnection, reason: str) -> None:
        """End the stream of a cloud that contradicts itself; it is not used again in this incarnation."""
        if cloud.welcome is not None:
            self._rejected[cloud.node] = cloud.welcome.incarnation
        cloud.refused = reason
        self._transport.drop(cloud.stream, reason)

    def drop(self, cloud: CloudConnection, reason: str) -> None:
        cloud.refused = reason
        self._transport.drop(cloud.stream, reason)

    def send(self, cloud: CloudConnection, frame: Frame) -> None:
        """Send a frame after the waiting ones; `flush` retries what the stream does not accept now."""
        sealed = encode(frame)
        self.traffic.record_sent(frame, len(sealed))
        cloud.waiting.append(sealed)
        self._flush(cloud)
        if len(cloud.waiting) > _MAX_WAITING_FRAMES:
            cloud.waiting.clear()
            self.drop(cloud, "it accepts no frames")  # its end arrives like any other

    def send_parts(self, cloud: CloudConnection, parts: dict[bytes, bytes], names: Sequence[bytes]) -> None:
        """Send the parts that the cloud has not been sent in this incarnation."""
        known = self._known[cloud.node][1]
        for name in names:
            if name in known:
                known.move_to_end(name)
                continue
            known[name] = None
            if len(known) > self._max_parts_known:
                known.popitem(last=False)
            self._send_from(cloud, name, parts[name], 0)

    def forget_parts(self, cloud: CloudConnection, names: Iterable[bytes]) -> None:
        """Send them again when they are next needed."""
        for name in names:
            self._known[cloud.node][1].pop(name, None)

    def send_again(self, cloud: CloudConnection, need: NeedFrame, data: bytes) -> None:
        """Send the missing bytes of a part."""
        if 0 <= need.offset < len(data):
            self._send_from(cloud, need.name, data, need.offset)

    def overdue(self, before_s: float) -> list[CloudConnection]:
        """Connections that came up before `before_s` and sent no welcome."""
        return [cloud for cloud in self if cloud.awaits_welcome and cloud.connected_s < before_s]

    def flush(self) -> None:
        for cloud in self._streams.values():
            self._flush(cloud)

    def _flush(self, cloud: CloudConnection) -> None:
        while cloud.waiting and self._transport.send(cloud.stream, cloud.waiting[0]):
            cloud.waiting.popleft()

    def _send_from(self, cloud: CloudConnection, name: bytes, data: bytes, offset: int) -> None:
        for begin in range(offset, len(data), PART_BYTES):
            self.send(cloud, PartFrame(name, begin, len(data), data[begin : begin + PART_BYTES]))
