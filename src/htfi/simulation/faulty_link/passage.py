"""Streams of the memory world: how they open and end, and what the weather does to each frame on its way."""

import math
from collections.abc import Callable

from htfi.decoding.link import frames
from htfi.decoding.link.frames import Channel, Refused, Why
from htfi.decoding.link.ports import Arrival, Happening
from htfi.domain.errors import InvalidInput
from htfi.simulation.dice import Dice
from htfi.simulation.faulty_link.frame_weather import FrameWeather
from htfi.simulation.faulty_link.line import Line, Node, Side
from htfi.simulation.faulty_link.virtual_time import VirtualTime

NUM_BAD_FRAMES = 16  # on one side of a stream, before it is dropped
_DIAL_TRIPS = 4  # one way each: TCP, then TLS
_MS = 1e-3


class Passage:
    """All lines. `tell` gets what a node is to receive."""

    def __init__(
        self,
        time: VirtualTime,
        nodes: dict[str, Node],
        seed: int,
        weather: FrameWeather,
        tell: Callable[[Node, Arrival], None],
    ) -> None:
        self._time, self._nodes, self._tell = time, nodes, tell
        self.weather = weather
        self._dice = Dice(seed)
        self.lines: dict[tuple[str, str], Line] = {}  # by node and its name for the stream
        self._joins: set[tuple[str, str]] = set()  # who dials whom
        self._num_lines = 0

    def lines_of(self, name: str) -> list[Line]:
        return [line for (node, _), line in list(self.lines.items()) if node == name]

    def join(self, dialler: str, accepter: str) -> None:
        self._joins.add((dialler, accepter))
        self._time.at(self._time.now_s, lambda: self._dial(dialler, accepter))

    def part(self, dialler: str, accepter: str) -> None:
        self._joins.discard((dialler, accepter))

    def started(self, name: str) -> None:
        for dialler, accepter in sorted(self._joins):
            if name in (dialler, accepter):
                self.join(dialler, accepter)

    def end(self, line: Line, words: str, by: Side | None = None) -> None:
        """`by` hears of it at once, who is beyond after the way there, or never in the dark."""
        if line.has_ended:
            return
        line.has_ended = True
        now_s = self._time.now_s
        self._time.note(f"{line.dialled.stream} of {line.dialled.node.name} ends: {words}")
        for side in line.sides:
            if side.node.is_dead:
                del self.lines[side.node.name, side.stream]
            elif side is by:
                self._reach(side.node, now_s, lambda side=side: self._down(side, words))
            elif not self.weather.is_dark:
                self._reach(side.node, now_s + self._delay_s(), lambda side=side: self._down(side, words))
        dialler, accepter = line.dialled.node.name, line.accepted.node.name
        self._time.at(now_s + self.weather.redial_s, lambda: self._dial(dialler, accepter))

    def send(self, line: Line, side: Side, sealed: bytes) -> bool:
        far = line.beyond(side)
        if not side.is_up or far.num_bytes_coming + len(sealed) > self.weather.takes_bytes:
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
        if one.is_dead or other.is_dead:
            return  # dialled again when it starts
        if any(line.joins(dialler, accepter) and not line.has_ended for line in self.lines_of(dialler)):
            return
        now_s = self._time.now_s
        if self.weather.is_dark:
            self._time.at(now_s + self.weather.redial_s, lambda: self._dial(dialler, accepter))
            return
        self._num_lines += 1
        line = Line(Side(one, f"{accepter}#{self._num_lines}"), Side(other, f"{dialler}#{self._num_lines}"))
        for side in line.sides:
            self.lines[side.node.name, side.stream] = line
        up_s = now_s + _DIAL_TRIPS * self._delay_s()
        for side in line.sides:
            side.last_s = up_s
            self._reach(side.node, up_s, lambda side=side: self._up(line, side))

    def _up(self, line: Line, side: Side) -> None:
        if line.has_ended:
            return
        peer = line.beyond(side).node.name
        for old in self.lines_of(side.node.name):  # one may have ended in the dark, unheard
            if old is not line and old.joins(side.node.name, peer):
                self._down(old.at(side.node), f"{peer} opened a newer stream")
        side.is_up = True
        self._time.note(f"{side.stream} of {side.node.name} is up")
        self._tell(side.node, Arrival(side.stream, peer, Happening.UP))
        if side.node.watch is not None:
            side.node.watch.opened(side.stream, peer, side is line.dialled)

    def _down(self, side: Side, words: str) -> None:
        line = self.lines.pop((side.node.name, side.stream), None)
        if line is None or not side.is_up:
            return
        side.is_up = False
        peer = line.beyond(side).node.name
        self._tell(side.node, Arrival(side.stream, peer, Happening.DOWN, words=words))
        if side.node.watch is not None:
            side.node.watch.ended(side.stream, peer, words)

    def _depart(self, line: Line, far: Side, sealed: bytes) -> None:
        weather, dice = self.weather, self._dice
        if line.has_ended or weather.is_dark:
            far.num_bytes_coming -= len(sealed)
            return
        if weather.ends > 0 and dice.chance(weather.ends):
            self.end(line, "the connection was reset")
            return
        if weather.loses > 0 and dice.chance(weather.loses):
            far.num_bytes_coming -= len(sealed)
            self._time.note(f"a frame to {far.node.name} is lost")
            return
        if weather.corrupts > 0 and dice.chance(weather.corrupts):
            place, bit = dice.below(len(sealed)), dice.below(8)
            sealed = sealed[:place] + bytes((sealed[place] ^ 1 << bit,)) + sealed[place + 1 :]
            self._time.note(f"bit {bit} of byte {place} of a frame to {far.node.name} flips")
        arrives_s = self._time.now_s + self._delay_s()
        if weather.overtakes > 0 and dice.chance(weather.overtakes):
            self._time.note(f"a frame to {far.node.name} overtakes")
        else:
            arrives_s = far.last_s = max(far.last_s, arrives_s)
        num = 1
        if weather.duplicates > 0 and dice.chance(weather.duplicates):
            num = 2
            far.num_bytes_coming += len(sealed)
            self._time.note(f"a frame to {far.node.name} comes twice")
        for _ in range(num):
            self._reach(far.node, arrives_s, lambda: self._arrive(line, far, sealed))

    def _reach(self, node: Node, at_s: float, action: Callable[[], None]) -> None:
        """Do it to a node, then; a frozen one feels it when it thaws, a dead one or its successor never."""
        self._time.at(at_s, lambda: self._felt(node, action))

    def _felt(self, node: Node, action: Callable[[], None]) -> None:
        if node.is_dead:
            return
        if node.held:
            node.held.append(action)
        elif node.frozen_s > self._time.now_s:
            node.held.append(action)
            self._time.at(node.frozen_s, lambda: self._thaw(node))
        else:
            action()

    def _thaw(self, node: Node) -> None:
        if node.frozen_s > self._time.now_s:
            self._time.at(node.frozen_s, lambda: self._thaw(node))
            return
        while node.held and not node.is_dead:
            node.held.popleft()()

    def _arrive(self, line: Line, side: Side, sealed: bytes) -> None:
        side.num_bytes_coming -= len(sealed)
        if not side.is_up:
            return
        node, peer = side.node, line.beyond(side).node.name
        try:
            channel, body = frames.unseal(sealed)
            if channel is Channel.LINK:
                self._tell(node, Arrival(side.stream, peer, Happening.FRAME, body))
            elif node.watch is not None:
                node.watch.heard(side.stream, peer, body)
        except InvalidInput as error:
            side.num_bad += 1
            if side.num_bad >= NUM_BAD_FRAMES:
                self.end(line, f"{side.num_bad} frames that cannot be read, the last: {error}", side)
            else:
                self.send(line, side, frames.encode(Refused(-1, 0, Why.MALFORMED, -1, str(error))))

    def _delay_s(self) -> float:
        weather = self.weather
        delay_ms = weather.delay_ms
        if weather.jitter_ms > 0:
            delay_ms -= weather.jitter_ms * math.log(1.0 - self._dice.unit())
        return delay_ms * _MS
