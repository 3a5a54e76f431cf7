"""An edge and its clouds in virtual time: a transport with delays and faults, and clouds that hold the target.

The cloud here is written against docs of the frames alone, not with the desk: it knows whole answers beforehand and
lets them out as a target's passes would.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from htfi.decoding.config import DecodingConfig, EdgeConfig
from htfi.decoding.link.client.generator import ExpectedTarget, LinkedGenerator
from htfi.decoding.link.frames import (
    PROTOCOL,
    AcceptedFrame,
    CancelFrame,
    DraftMode,
    DraftWindowFrame,
    Frame,
    HelloFrame,
    NeedFrame,
    OpenFrame,
    PartFrame,
    RefusedFrame,
    WelcomeFrame,
    decode,
    encode,
    pack,
    prefix_hash,
    unpack,
    unseal,
)
from htfi.decoding.link.parts import decode_grammar, part_name
from htfi.decoding.link.ports import (
    PlacementQuery,
    PlacementResult,
    PlannedPlacement,
    StreamArrival,
    StreamEvent,
)
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
)
from tiny_network import TinyNetwork, TinyTokenizer

TOKENIZER = TinyTokenizer()
VOCAB = TOKENIZER.vocab_size
PATH: OutputGrammar = tuple(
    ChoiceField(f"s{i}", tuple((ControlToken(f"p{k}"),) for k in range(9))) for i in range(24)
)
VIEW: OutputGrammar = (
    ChoiceField("direction", ((ControlToken("up"),), (ControlToken("flat"),), (ControlToken("down"),))),
    FreeTextField("why", 12, ControlToken("end")),
    ChoiceField("size", tuple((ControlToken("size"), ControlToken(f"p{k}")) for k in range(9))),
)


def local(seed: int = 0, sharpness: float = 3.0, name: str = "tiny") -> LocalGenerator:
    network = TinyNetwork(VOCAB, seed, sharpness=sharpness)
    return LocalGenerator(network, TOKENIZER, name, DecodingConfig(batch_bytes=2**22))


class Blend:
    """A draft that says much of what its target says: the target's logits, some noise of another network added."""

    def __init__(self, share: float, seed: int = 7) -> None:
        self._target, self._other, self._share = TinyNetwork(VOCAB), TinyNetwork(VOCAB, seed), share
        own = self._target.shape
        self.shape = replace(own, num_layers=2 * own.num_layers)  # keys and values of both
        self.digest = f"{share}".encode().hex()

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        num = self._target.shape.num_layers
        said = self._target.forward(ids, positions, mask, keys[:num], values[:num])
        other = self._other.forward(ids, positions, mask, keys[num:], values[num:])
        logits = said.logits * (1 - self._share) + other.logits * self._share
        return ForwardOutput(
            logits, np.concatenate([said.keys, other.keys]), np.concatenate([said.values, other.values])
        )


def draft_author(share: float = 0.2) -> LocalGenerator:
    return LocalGenerator(Blend(share), TOKENIZER, "draft", DecodingConfig(batch_bytes=2**22))


def question(
    seed: int, form: OutputGrammar = PATH, deadline_ms: float = 1e4, **more: object
) -> GenerationRequest:
    return GenerationRequest(
        (PlainText("abc up"), PlainText(f" the {seed}")),
        form,
        seed,
        1.0,
        deadline_ms,
        1,
        "path",
        id=f"q{seed}",
        **more,
    )


class World:
    """Virtual seconds, and what happens when."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def clock(self) -> float:
        return self.now_s

    def at(self, at_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(at_s, self.now_s), next(self._numbers), act))

    def after(self, delay_ms: float, act: Callable[[], None]) -> None:
        self.at(self.now_s + delay_ms / 1e3, act)

    def run_until(self, until_s: float, stop: Callable[[], bool]) -> None:
        """Let things happen in order, until the time has come or `stop` says so."""
        while not stop() and self._events and self._events[0][0] <= until_s:
            at_s, _, act = heapq.heappop(self._events)
            self.now_s = max(self.now_s, at_s)
            act()
        if not stop():
            self.now_s = max(self.now_s, until_s)


class WorldTransport:
    """The edge's end of streams to fake clouds; frames take half of `rtt_ms` each way."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.arrived: deque[StreamArrival] = deque()
        self.clouds: dict[str, FakeCloud] = {}
        self.streams: dict[str, FakeCloud] = {}
        self.refuses_every = 0  # every n-th send is not taken
        self.twice = False  # each frame is delivered twice
        self._numbers = count()
        self._sends = 0
        self.frames: list[Frame] = []

    def connect(self, cloud: "FakeCloud") -> str:
        stream = f"{cloud.node}#{next(self._numbers)}"
        self.streams[stream] = cloud
        self.clouds[cloud.node] = cloud
        cloud.transport = self
        self.arrived.append(StreamArrival(stream, cloud.node, StreamEvent.UP))
        return stream

    def cut(self, node: str, words: str = "reset") -> None:
        for stream, cloud in list(self.streams.items()):
            if cloud.node == node:
                del self.streams[stream]
                cloud.gone(stream)
                self.arrived.append(StreamArrival(stream, node, StreamEvent.DOWN, reason=words))

    def receive(self, timeout_s: float) -> StreamArrival | None:
        self.world.run_until(self.world.now_s + max(timeout_s, 0.0), lambda: bool(self.arrived))
        return self.arrived.popleft() if self.arrived else None

    def send(self, stream: str, sealed: bytes) -> bool:
        self._sends += 1
        if self.refuses_every and self._sends % self.refuses_every == 0:
            return False
        cloud = self.streams.get(stream)
        if cloud is None:
            return False
        frame = decode(unseal(sealed)[1])
        self.frames.append(frame)
        for _ in range(2 if self.twice else 1):
            self.world.after(cloud.delay_ms(), lambda: stream in self.streams and cloud.take(stream, frame))
        return True

    def deliver(self, stream: str, frame: Frame) -> None:
        cloud = self.streams.get(stream)
        if cloud is None:
            return
        body = unseal(encode(frame))[1]

        def arrive() -> None:
            if stream in self.streams:
                for _ in range(2 if self.twice else 1):
                    self.arrived.append(StreamArrival(stream, cloud.node, StreamEvent.FRAME, body))

        self.world.after(cloud.delay_ms(), arrive)

    def drop(self, stream: str, words: str) -> None:
        cloud = self.streams.pop(stream, None)
        if cloud is not None:
            cloud.gone(stream)
            self.arrived.append(StreamArrival(stream, cloud.node, StreamEvent.DOWN, reason=words))


@dataclass(eq=False)
class _Ask:
    stream: str
    open: OpenFrame
    answer: tuple[int, ...] = ()
    num: int = 0
    guesses: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    is_running: bool = False


class FakeCloud:
    """Settles one pass after another: with guesses as many tokens as stand and one more, else one."""

    def __init__(
        self, world: World, node: str, target: LocalGenerator, rtt_ms: float = 20.0, pass_ms: float = 5.0
    ) -> None:
        self.world, self.node, self.target = world, node, target
        self.rtt_ms, self.pass_ms, self.prompt_ms = rtt_ms, pass_ms, pass_ms
        self.life, self.has_draft, self.residency = 1, True, ()
        self.welcome_as: dict[str, object] = {}
        self.transport: WorldTransport
        self.parts: dict[bytes, bytearray] = {}
        self.totals: dict[bytes, int] = {}
        self.asks: dict[tuple[str, int], _Ask] = {}
        self.waiting: list[_Ask] = []
        self.refuses: RefusedFrame | None = None  # what every Open gets
        self.is_silent = False
        self.num_passes = 0
        self.num_idle = 0  # passes without a fitting window, of requests that the edge leads
        self._due_ms = 0.0

    def delay_ms(self) -> float:
        """Half the round trip; never so that a frame passes another."""
        due = max(self.world.now_s * 1e3 + self.rtt_ms / 2, self._due_ms)
        self._due_ms = due
        return due - self.world.now_s * 1e3

    def restart(self) -> None:
        self.life += 1
        self.parts.clear()
        self.asks.clear()
        self.waiting.clear()

    def gone(self, stream: str) -> None:
        self.asks = {key: ask for key, ask in self.asks.items() if key[0] != stream}
        self.waiting = [ask for ask in self.waiting if ask.stream != stream]

    def take(self, stream: str, frame: Frame) -> None:
        if self.is_silent:
            return
        match frame:
            case HelloFrame():
                told = dict(  # noqa: C408 the names of the fields
                    version=PROTOCOL,
                    node=self.node,
                    target=self.target.sessions.network.digest,
                    tokenizer=TOKENIZER.digest,
                    incarnation=self.life,
                    has_draft=self.has_draft,
                    residency=tuple(self.residency),
                    num_in_flight=8,
                )
                self.transport.deliver(stream, WelcomeFrame(**(told | self.welcome_as)))  # type: ignore[arg-type]
            case PartFrame():
                held = self.parts.setdefault(frame.name, bytearray())
                if frame.offset == len(held):
                    held += frame.data
                self.totals[frame.name] = frame.total
                for ask in list(self.waiting):
                    self._begin(ask)
            case OpenFrame():
                self._open(stream, frame)
            case DraftWindowFrame():
                ask = self.asks.get((stream, frame.handle))
                if ask is not None and ask.open.epoch == frame.epoch:
                    ask.guesses[frame.at] = (frame.prefix, unpack(frame.ids))
                    self._run(ask)
            case CancelFrame():
                self.asks.pop((stream, frame.handle), None)
            case _:
                raise AssertionError(f"an edge sends no {frame}")

    def _open(self, stream: str, frame: OpenFrame) -> None:
        if self.refuses is not None:
            self.transport.deliver(
                stream,
                RefusedFrame(
                    frame.handle,
                    frame.epoch,
                    self.refuses.reason,
                    self.refuses.retry_ms,
                    self.refuses.message,
                ),
            )
            return
        known = self.asks.get((stream, frame.handle))
        if known is not None and known.open.epoch >= frame.epoch:
            return
        if known is not None:
            known.open = frame
            known.num = 0  # what went out in another epoch does not count
            self._guess(known)
            self._run(known)
            return
        ask = self.asks[stream, frame.handle] = _Ask(stream, frame)
        self.waiting.append(ask)
        for name in (*frame.prompt, frame.grammar):
            held = self.parts.get(name, b"")
            if len(held) < self.totals.get(name, 1) or not held:
                self.transport.deliver(stream, NeedFrame(name, len(held)))
        self._begin(ask)

    def _begin(self, ask: _Ask) -> None:
        frame = ask.open
        names = (*frame.prompt, frame.grammar)
        if any(not self.parts.get(name) or len(self.parts[name]) < self.totals[name] for name in names):
            return
        for name in names:
            assert part_name(bytes(self.parts[name])) == name
        self.waiting.remove(ask)
        prompt = [token for name in frame.prompt for token in unpack(bytes(self.parts[name]))]
        form = decode_grammar(bytes(self.parts[frame.grammar]))
        request = GenerationRequest((), form, frame.seed, frame.temperature, kind=frame.kind)
        answer = self.target.regenerate(prompt, request)
        assert isinstance(answer, Completion)
        ask.answer = answer.tokens
        self._guess(ask)
        ask.is_running = True
        self.world.after(self.prompt_ms, lambda: self._pass(ask, is_first=True))

    def _guess(self, ask: _Ask) -> None:
        ask.guesses.clear()
        if ask.open.guesses:
            ask.guesses[0] = (0, unpack(ask.open.guesses))

    def _fitting(self, ask: _Ask) -> list[int]:
        """Guesses that follow what is settled."""
        for at, (prefix, ids) in ask.guesses.items():
            settled = list(ask.answer[: ask.num])
            if at <= ask.num and prefix_hash(settled[:at]) == prefix:
                behind = ask.num - at
                if len(ids) > behind and ids[:behind] == settled[at:]:
                    return ids[behind:]
        return []

    def _run(self, ask: _Ask) -> None:
        if ask.is_running or not ask.answer:
            return
        if ask.open.draft_mode == DraftMode.LOCKSTEP and not self._fitting(ask):
            return
        ask.is_running = True
        self.world.after(self.pass_ms, lambda: self._pass(ask))

    def _pass(self, ask: _Ask, is_first: bool = False) -> None:
        ask.is_running = False
        if self.asks.get((ask.stream, ask.open.handle)) is not ask or ask.num >= len(ask.answer):
            return
        self.num_passes += 1
        guesses = [] if is_first else self._fitting(ask)
        if not guesses and ask.open.draft_mode in (DraftMode.LOCKSTEP, DraftMode.PIPELINED) and not is_first:
            self.num_idle += 1
        stood = 0
        left = ask.answer[ask.num :]
        while stood < min(len(guesses), len(left)) and guesses[stood] == left[stood]:
            stood += 1
        new = left[: stood + 1]
        at, ask.num = ask.num, ask.num + len(new)
        form = self.target.tokenize(
            GenerationRequest((PlainText("a"),), decode_grammar(bytes(self.parts[ask.open.grammar])))
        )
        state = 0
        for token in ask.answer[: ask.num]:
            state = form.grammar.advance(state, token)  # type: ignore[union-attr]
        forced, _ = form.grammar.forced(state) if state != form.grammar.done else ([], state)  # type: ignore[union-attr]
        ask.num += len(forced)
        whole = ask.answer[: ask.num]
        is_done = ask.num == len(ask.answer)
        if is_done:
            del self.asks[ask.stream, ask.open.handle]
        self.transport.deliver(
            ask.stream,
            AcceptedFrame(
                ask.open.handle,
                ask.open.epoch,
                at,
                prefix_hash(whole),
                stood if guesses else -1,
                is_done,
                pack(whole[at:]),
            ),
        )
        self._run(ask)


class Plan:
    """A placer that always says the same, and remembers what it was told."""

    def __init__(
        self, lead: DraftMode, cloud: str = "", window: int = 6, in_flight: int = 4, late_ms: float = 1e6
    ):
        self.placed = PlannedPlacement(cloud, lead, window, in_flight, 50.0, late_ms, "as told")
        self.is_alone = False
        self.learnt: list[PlacementResult] = []

    def place(self, wanted: PlacementQuery, clouds: Sequence[str]) -> PlannedPlacement:
        if self.is_alone:
            return self.placed._replace(cloud="", reason="the plan says so")
        return self.placed._replace(cloud=self.placed.cloud if self.placed.cloud in clouds else clouds[0])

    def learn(self, finished: PlacementResult) -> None:
        self.learnt.append(finished)


class Scene:
    """An edge with a draft, and clouds with the target, all connected."""

    def __init__(
        self,
        lead: DraftMode = DraftMode.PIPELINED,
        num_clouds: int = 1,
        rtt_ms: float = 20.0,
        draft: LocalGenerator | None = None,
        config: EdgeConfig | None = None,
        target: LocalGenerator | None = None,
    ) -> None:
        self.world = World()
        self.transport = WorldTransport(self.world)
        self.target = target or local()
        self.clouds = [FakeCloud(self.world, f"cloud{i + 1}", self.target, rtt_ms) for i in range(num_clouds)]
        for cloud in self.clouds:
            self.transport.connect(cloud)
        self.plan = Plan(lead)
        self.usable = [cloud.node for cloud in self.clouds]
        self.reports: list[tuple[str, str, str]] = []
        self.draft = draft or draft_author()
        self.author = LinkedGenerator(
            self.draft,
            ExpectedTarget("tiny@1", self.target.sessions.network.digest[:12]),
            "edge1",
            self.transport,
            self.plan,
            lambda: self.usable,
            self.world.clock,
            lambda *line: self.reports.append(line),
            config,
        )
        self.author.wait_ready(1.0)

    def pass_time(self, ms: float) -> None:
        """Let time go by in which nobody calls the author."""
        self.world.run_until(self.world.now_s + ms / 1e3, lambda: False)

    def late(self, ms: float = 5_000.0) -> dict[str, object]:
        """What comes late within a time."""
        found: dict[str, object] = {}
        until_s = self.world.now_s + ms / 1e3
        while self.world.now_s < until_s:
            found.update(self.author.take_late_completions())
            self.pass_time(10.0)
        return found
