"""A cloud's desk with a tiny network and edges that are moved by hand, on a clock that passes do not read."""

from collections.abc import Sequence

from htfi.decoding.config import DecodingConfig, VerificationServerConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner
from htfi.decoding.engine import DecodingEngine
from htfi.decoding.link import frames
from htfi.decoding.link.frames import (
    AcceptedFrame,
    DraftMode,
    DraftWindowFrame,
    Frame,
    HelloFrame,
    NeedFrame,
    OpenFrame,
    PartFrame,
    RefusedFrame,
    WelcomeFrame,
)
from htfi.decoding.link.parts import encode_grammar, part_name, request_name
from htfi.decoding.link.ports import StreamArrival, StreamEvent
from htfi.decoding.link.server.remote_drafts import RoutedStrategy
from htfi.decoding.link.server.server import VerificationServer
from htfi.decoding.ports import Network
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import Completion, GenerationRequest
from htfi.scheduling.config import TurnsConfig
from htfi.scheduling.turns.fair_share import FairScheduler
from outcome_pair import TOKENIZER, author, chain, network, written

LATE = 10**9  # ms: a deadline that is never missed


class Time:
    """Seconds that pass when they are told to, and a little with every look."""

    def __init__(self, per_look_s: float = 1e-5) -> None:
        self.now_s = 100.0
        self.per_look_s = per_look_s

    def __call__(self) -> float:
        self.now_s += self.per_look_s
        return self.now_s


def desk(
    config: VerificationServerConfig | None = None,
    turns: TurnsConfig | None = None,
    decoding: DecodingConfig | None = None,
    has_draft: bool = False,
    time: Time | None = None,
    target: Network | None = None,
) -> VerificationServer:
    clock = time or Time()
    routed = RoutedStrategy(chain() if has_draft else None, clock)
    rounds = DecodingEngine(
        target or network(),
        TOKENIZER,
        "tiny",
        decoding or DecodingConfig(batch_bytes=2**22, cache_bytes=2**18),
        strategy=routed,
        length_planner=FixedLengthPlanner(4),
        clock=clock,
    )
    return VerificationServer(rounds, routed, FairScheduler(turns), clock, config, incarnation=7)


def truth(request: GenerationRequest) -> Completion:
    """What an embedded author says."""
    return written(author(None).write([request]))[0]


class Edge:
    """One stream: says what it is told to, and keeps what it hears."""

    def __init__(
        self,
        desk: VerificationServer,
        stream: str = "s1",
        node: str = "edge1",
        greets: bool = True,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.desk, self.stream, self.node = desk, stream, node
        self.vocabulary = vocabulary or Vocabulary(TOKENIZER)
        self.heard: list[Frame] = []
        self.texts: dict[tuple[int, int], list[int]] = {}  # by handle and epoch
        self.done: dict[int, list[int]] = {}
        self.dropped = ""
        self.parts: dict[bytes, bytes] = {}
        desk.receive(StreamArrival(stream, node, StreamEvent.UP))
        if greets:
            self.say(self.hello())

    def hello(self, **changes: object) -> HelloFrame:
        told: dict[str, object] = {
            "version": frames.PROTOCOL, "node": self.node, "target": "", "tokenizer": self.vocabulary.tokenizer.digest
        }  # fmt: skip
        return HelloFrame(**(told | changes))  # type: ignore[arg-type]

    def say(self, *said: Frame) -> None:
        for frame in said:
            _, body = frames.unseal(frames.encode(frame))
            self.raw(body)

    def raw(self, body: bytes) -> None:
        self.desk.receive(StreamArrival(self.stream, self.node, StreamEvent.FRAME, body))

    def down(self) -> None:
        self.desk.receive(StreamArrival(self.stream, self.node, StreamEvent.DOWN))

    def hear(self, frame: Frame) -> None:
        self.heard.append(frame)
        if isinstance(frame, AcceptedFrame):
            text = self.texts.setdefault((frame.handle, frame.epoch), [])
            assert frame.at == len(text), "a gap, or told twice"
            text += frames.unpack(frame.ids)
            assert frame.prefix == frames.prefix_hash(text)
            if frame.is_done:
                self.done[frame.handle] = text
        elif isinstance(frame, NeedFrame):
            data = self.parts.get(frame.name)
            if data is not None:
                self.say(PartFrame(frame.name, frame.offset, len(data), data[frame.offset :]))

    def refused(self) -> list[RefusedFrame]:
        return [frame for frame in self.heard if isinstance(frame, RefusedFrame)]

    @property
    def welcome(self) -> WelcomeFrame:
        return next(frame for frame in self.heard if isinstance(frame, WelcomeFrame))

    def opening(
        self,
        request: GenerationRequest,
        handle: int = 1,
        lead: DraftMode = DraftMode.PLAIN,
        epoch: int = 0,
        deadline_ms: int = LATE,
        budget_bytes: int = 0,
        guesses: Sequence[int] = (),
        residency: tuple[str, ...] = (),
    ) -> OpenFrame:
        """The frame that asks it; its parts are remembered, not sent."""
        ids = self.vocabulary.encode(request.prompt)
        prompt = [frames.pack(ids[:2]), frames.pack(ids[2:])]
        form = encode_grammar(request.form)
        for data in (*prompt, form):
            self.parts[part_name(data)] = data
        names = tuple(map(part_name, prompt))
        sampling = SamplingParams(request.temperature, request.top_k, request.top_p)
        return OpenFrame(
            handle,
            request_name(names, part_name(form), request.seed, sampling),
            epoch,
            names,
            part_name(form),
            request.seed,
            request.temperature,
            request.top_k,
            request.top_p,
            request.kind,
            deadline_ms,
            lead,
            budget_bytes,
            residency,
            frames.pack(guesses),
        )

    def window(
        self, handle: int, at: int, text: Sequence[int], length: int, epoch: int = 0
    ) -> DraftWindowFrame:
        """Guesses as one that takes `text` for the answer has them."""
        return DraftWindowFrame(
            handle, epoch, at, frames.prefix_hash(text[:at]), frames.pack(text[at : at + length])
        )


def deliver(desk: VerificationServer, *edges: Edge) -> None:
    """What the desk has said so far reaches its edges."""
    for _ in range(10):
        out = desk.outgoing()
        for stream, sealed in out:
            for edge in edges:
                if edge.stream == stream:
                    edge.hear(frames.decode(frames.unseal(sealed)[1]))
        for stream, words in desk.drops():
            for edge in edges:
                if edge.stream == stream:
                    edge.dropped = words
        if not out:
            return


def run(desk: VerificationServer, *edges: Edge, num_steps: int = 2_000) -> int:
    """Until the engine has nothing to do; how many steps that took."""
    deliver(desk, *edges)
    for num in range(num_steps):
        if not desk.step():
            deliver(desk, *edges)
            if not desk.step():
                return num
        deliver(desk, *edges)
    raise AssertionError("the desk does not come to rest")
