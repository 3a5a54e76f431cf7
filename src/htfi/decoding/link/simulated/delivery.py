"""Streams of the simulated network: how they open and end, and what faults do to each frame on its way."""

import math
from collections.abc import Callable

import numpy as np

from htfi.decoding.link import frames
from htfi.decoding.link.frames import FrameChannel, RefusalReason, RefusedFrame
from htfi.decoding.link.ports import StreamArrival, StreamEvent
from htfi.decoding.link.simulated.connections import ConnectionEnd, SimulatedConnection, SimulatedNode
from htfi.decoding.link.simulated.faults import FrameFaults
from htfi.decoding.link.simulated.scheduler import EventScheduler
from htfi.domain.errors import InvalidInput

NUM_BAD_FRAMES = 16  # on one side of a stream, before it is dropped
_DIAL_TRIPS = 4  # one way each: TCP, then TLS
_MS = 1e-3


class FrameDelivery:
    """All connections. `deliver` gets what a node is to receive."""

    def __init__(
        self,
        time: EventScheduler,
        nodes: dict[str, SimulatedNode],
        seed: int,
        faults: FrameFaults,
        deliver: Callable[[SimulatedNode, StreamArrival], None],
    ) -> None:
        self._time, self._nodes, self._deliver = time, nodes, deliver
        self.frame_faults = faults
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self.lines: dict[tuple[str, str], SimulatedConnection] = {}  # by node and its name for the stream
        self._joins: set[tuple[str, str]] = set()  # who dials whom
        self._num_lines = 0

    def lines_of(self, name: str) -> list[SimulatedConnection]:
        return [line for (node, _), line in list(self.lines.items()) if node == name]

    def connect(self, dialler: str, accepter: str) -> None:
        self._joins.add((dialler, accepter))
        self._time.at(self._time.now_s, lambda: self._dial(dialler, accepter))

    def disconnect(self, dialler: str, accepter: str) -> None:
        self._joins.discard((dialler, accepter))

    def started(self, name: str) -> None:
        for dialler, accepter in sorted(self._joins):
            if name in (dialler, accepter):
                self.connect(dialler, accepter)

    def end(self, line: SimulatedConnection, reason: str, by: ConnectionEnd | None = None) -> None:
        """The end `by` notices at once, the other after the way there, or never in the dark."""
        if line.has_ended:
            return
        line.has_ended = True
        now_s = self._time.now_s
        self._time.note(f"{line.dialled.stream} of {line.dialled.node.name} ends: {reason}")
        for side in line.sides:
            if side.node.is_killed:
                del self.lines[side.node.name, side.stream]
            elif side is by:
                self._reach(side.node, now_s, lambda side=side: self._down(side, reason))
            elif not self.frame_faults.is_dark:
                self._reach(side.node, now_s + self._delay_s(), lambda side=side: self._down(side, reason))
        dialler, accepter = line.dialled.node.name, line.accepted.node.name
        self._time.at(now_s + self.frame_faults.redial_s, lambda: self._dial(dialler, accepter))

    def send(self, line: SimulatedConnection, side: ConnectionEnd, sealed: bytes) -> bool:
        far = line.beyond(side)
        if not side.is_up or far.num_bytes_coming + len(sealed) > self.frame_faults.takes_bytes:
            return False
        far.num_bytes_coming += len(sealed)
        if self._time.is_held:  # what the step has spent is not over yet
            self._time.at(self._time.now_s, lambda: self._depart(line, far, sealed))
        else:
            self._depart(line, far, sealed)
        return True

    def _dial(self, dialler: str, accepter: str) -> None:
        one, other = self._nodes.get(dialler), self._nodes.get(accepter)
        if (dialler, accepter) not in self._joins or one is None or other is None:
            return
        if one.is_killed or other.is_killed:
            return  # dialled again when it starts
        if any(line.joins(dialler, accepter) and not line.has_ended for line in self.lines_of(dialler)):
            return
        now_s = self._time.now_s
        if self.frame_faults.is_dark:
            self._time.at(now_s + self.frame_faults.redial_s, lambda: self._dial(dialler, accepter))
            return
        self._num_lines += 1
        line = SimulatedConnection(
            ConnectionEnd(one, f"{accepter}#{self._num_lines}"),
            ConnectionEnd(other, f"{dialler}#{self._num_lines}"),
        )
        for side in line.sides:
            self.lines[side.node.name, side.stream] = line
        up_s = now_s + _DIAL_TRIPS * self._delay_s()
        for side in line.sides:
            side.last_s = up_s
            self._reach(side.node, up_s, lambda side=side: self._up(line, side))

    def _up(self, line: SimulatedConnection, side: ConnectionEnd) -> None:
        if line.has_ended:
            return
        peer = line.beyond(side).node.name
        for old in self.lines_of(side.node.name):  # one may have ended in the dark, unnoticed
            if old is not line and old.joins(side.node.name, peer):
                self._down(old.at(side.node), f"{peer} opened a newer stream")
        side.is_up = True
        self._time.note(f"{side.stream} of {side.node.name} is up")
        self._deliver(side.node, StreamArrival(side.stream, peer, StreamEvent.UP))
        if side.node.watch is not None:
            side.node.watch.opened(side.stream, peer, side is line.dialled)

    def _down(self, side: ConnectionEnd, reason: str) -> None:
        line = self.lines.pop((side.node.name, side.stream), None)
        if line is None or not side.is_up:
            return
        side.is_up = False
        peer = line.beyond(side).node.name
        self._deliver(side.node, StreamArrival(side.stream, peer, StreamEvent.DOWN, reason=reason))
        if side.node.watch is not None:
            side.node.watch.ended(side.stream, peer, reason)

    def _depart(self, line: SimulatedConnection, far: ConnectionEnd, sealed: bytes) -> None:
        faults, rng = self.frame_faults, self._rng
        if line.has_ended or faults.is_dark:
            far.num_bytes_coming -= len(sealed)
            return
        if faults.ends > 0 and rng.random() < faults.ends:
            self.end(line, "the connection was reset")
            return
        if faults.loses > 0 and rng.random() < faults.loses:
            far.num_bytes_coming -= len(sealed)
            self._time.note(f"a frame to {far.node.name} is lost")
            return
        if faults.corrupts > 0 and rng.random() < faults.corrupts:
            place, bit = int(rng.integers(len(sealed))), int(rng.integers(8))
            sealed = sealed[:place] + bytes((sealed[place] ^ 1 << bit,)) + sealed[place + 1 :]
            self._time.note(f"bit {bit} of byte {place} of a frame to {far.node.name} flips")
        arrives_s = self._time.now_s + self._delay_s()
        if faults.overtakes > 0 and rng.random() < faults.overtakes:
            self._time.note(f"a frame to {far.node.name} overtakes")
        else:
            arrives_s = far.last_s = max(far.last_s, arrives_s)
        num = 1
        if faults.duplicates > 0 and rng.random() < faults.duplicates:
            num = 2
            far.num_bytes_coming += len(sealed)
            self._time.note(f"a frame to {far.node.name} comes twice")
        for _ in range(num):
            self._reach(far.node, arrives_s, lambda: self._arrive(line, far, sealed))

    def _reach(self, node: SimulatedNode, at_s: float, action: Callable[[], None]) -> None:
        """Do it to a node then; to a paused one when it goes on, to a killed one or its successor never."""
        self._time.at(at_s, lambda: self._apply_to_node(node, action))

    def _apply_to_node(self, node: SimulatedNode, action: Callable[[], None]) -> None:
        if node.is_killed:
            return
        if node.held:
            node.held.append(action)
        elif node.frozen_s > self._time.now_s:
            node.held.append(action)
            self._time.at(node.frozen_s, lambda: self._resume_node(node))
        else:
            action()

    def _resume_node(self, node: SimulatedNode) -> None:
        if node.frozen_s > self._time.now_s:
            self._time.at(node.frozen_s, lambda: self._resume_node(node))
            return
        while node.held and not node.is_killed:
            node.held.popleft()()

    def _arrive(self, line: SimulatedConnection, side: ConnectionEnd, sealed: bytes) -> None:
        side.num_bytes_coming -= len(sealed)
        if not side.is_up:
            return
        node, peer = side.node, line.beyond(side).node.name
        try:
            channel, body = frames.unseal(sealed)
            if channel is FrameChannel.LINK:
                self._deliver(node, StreamArrival(side.stream, peer, StreamEvent.FRAME, body))
            elif node.watch is not None:
                node.watch.received(side.stream, peer, body)
        except InvalidInput as error:
            side.num_bad += 1
            if side.num_bad >= NUM_BAD_FRAMES:
                self.end(line, f"{side.num_bad} frames that cannot be read, the last: {error}", side)
            else:
                self.send(
                    line, side, frames.encode(RefusedFrame(-1, 0, RefusalReason.MALFORMED, -1, str(error)))
                )

    def _delay_s(self) -> float:
        faults = self.frame_faults
        delay_ms = faults.delay_ms
        if faults.jitter_ms > 0:
            delay_ms -= faults.jitter_ms * math.log(1.0 - float(self._rng.random()))
        return delay_ms * _MS
