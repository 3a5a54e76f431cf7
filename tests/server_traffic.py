"""A desk and its edges in simulated time, at the shipped pair's pace: for tests of how fast and how even they are."""

import heapq
import itertools
from dataclasses import dataclass, field

from htfi.decoding.config import DecodingConfig
from htfi.decoding.link import frames
from htfi.decoding.link.frames import DraftMode, PartFrame
from htfi.decoding.link.server.server import VerificationServer
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.domain.generation import ControlToken, GenerationRequest, PlainText
from outcome_pair import PATH, TOKENIZER
from server_world import LATE, Edge, Time, desk, truth
from tiny_network import TinyNetwork

FIXED_MS, ROW_MS, CELL_MS = 0.3, 0.03, 0.054  # a pass of the shipped target on one core
DRAFT_MS = 0.03  # a token
ONE_WAY_S = 0.010


class Paced(TinyNetwork):
    """Takes as long as the shipped target, on a clock of its own."""

    def __init__(self, time: Time) -> None:
        super().__init__(TOKENIZER.vocab_size, sharpness=0.5)
        self._time = time

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        rows, tokens = ids.shape
        self._time.now_s += (FIXED_MS + ROW_MS * rows + CELL_MS * rows * tokens) / 1e3
        return super().forward(ids, positions, mask, keys, values)


def asked(stream: int, turn: int) -> GenerationRequest:
    """A prompt of some 90 tokens, 40 of them alike for all."""
    own = f"{stream * 100 + turn:05d}" * 9
    return GenerationRequest(
        (ControlToken("s"), PlainText("rose and fell" * 5 + own), ControlToken("path")),
        PATH,
        stream * 100 + turn,
        1.0,
        kind="path",
    )


@dataclass
class World:
    """Frames on their way, and what happens when they arrive. Edges ask anew when they are answered."""

    num_edges: int
    num_turns: int
    lead: DraftMode
    time: Time = field(default_factory=lambda: Time(per_look_s=2e-6))
    events: list[tuple[float, int, Edge, bytes, bool]] = field(default_factory=list)
    waits_ms: dict[str, list[float]] = field(default_factory=dict)
    num_tokens: int = 0

    def __post_init__(self) -> None:
        self.order = itertools.count()
        config = DecodingConfig(batch_bytes=2**23, cache_bytes=2**20, max_batch=64)
        self.desk: VerificationServer = desk(decoding=config, time=self.time, target=Paced(self.time))
        self.edges = [Edge(self.desk, f"s{i}", f"edge{i}") for i in range(self.num_edges)]
        self.began_s: dict[str, float] = {}
        self.turns = dict.fromkeys((edge.stream for edge in self.edges), 0)
        for edge in self.edges:
            self.ask(edge)

    def ask(self, edge: Edge) -> None:
        turn = self.turns[edge.stream]
        request = asked(self.edges.index(edge), turn)
        opening = edge.opening(request, turn, self.lead, deadline_ms=LATE)
        self.began_s[edge.stream] = self.time.now_s
        new = [
            PartFrame(name, 0, len(data), data)
            for name, data in edge.parts.items()
            if name in opening.prompt or not turn
        ]
        self.post(edge, *new, opening, after_s=0.0)
        if self.lead is DraftMode.PIPELINED:
            text = list(truth(request).tokens)
            for at in range(0, len(text), 8):
                self.post(edge, edge.window(turn, at, text, 8), after_s=DRAFT_MS / 1e3 * (at + 8))

    def post(self, edge: Edge, *said: frames.Frame, after_s: float) -> None:
        for frame in said:
            _, body = frames.unseal(frames.encode(frame))
            heapq.heappush(
                self.events, (self.time.now_s + after_s + ONE_WAY_S, next(self.order), edge, body, True)
            )

    def run(self) -> float:
        """Tokens a second."""
        began_s = self.time.now_s
        while any(turn < self.num_turns for turn in self.turns.values()):
            is_busy = self.desk.step()
            for stream, sealed in self.desk.outgoing():
                edge = next(edge for edge in self.edges if edge.stream == stream)
                arrives_s = self.time.now_s + ONE_WAY_S
                heapq.heappush(self.events, (arrives_s, next(self.order), edge, sealed, False))
            if not is_busy:
                self.time.now_s = max(self.time.now_s, self.events[0][0])
            while self.events and self.events[0][0] <= self.time.now_s:
                _, _, edge, data, is_for_cloud = heapq.heappop(self.events)
                if is_for_cloud:
                    edge.raw(data)
                else:
                    self.hear(edge, data)
        return self.num_tokens / (self.time.now_s - began_s)

    def hear(self, edge: Edge, sealed: bytes) -> None:
        edge.hear(frames.decode(frames.unseal(sealed)[1]))
        assert not edge.refused()
        turn = self.turns[edge.stream]
        if turn in edge.done:
            took_ms = 1e3 * (self.time.now_s - self.began_s[edge.stream])
            self.waits_ms.setdefault(edge.stream, []).append(took_ms)
            self.num_tokens += len(edge.done[turn])
            self.turns[edge.stream] = turn + 1
            if turn + 1 < self.num_turns:
                self.ask(edge)
