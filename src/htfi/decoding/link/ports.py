"""What both sides of the link need from outside: streams of frames, placement of requests, and a policy of turns.

Wiring connects them to adapters and scheduling.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from typing import NamedTuple, Protocol

from htfi.decoding.link.frames import DraftMode


class StreamEvent(Enum):
    """An event of a stream: it opened, it brought a frame, it ended."""

    UP = "up"
    FRAME = "frame"
    DOWN = "down"


class StreamArrival(NamedTuple):
    """`stream` names one connection and never another; `node` is the peer's name, from its certificate."""

    stream: str
    node: str
    event: StreamEvent
    body: bytes = b""  # of a frame, unsealed
    reason: str = ""  # why it ended


class Transport(Protocol):
    """Streams to peers. Frames arrive complete, in order and once, or the stream ends. For one thread.

    A damaged frame is refused to its sender (`RefusedFrame`, handle −1) and its stream ends, so that no frame is lost
    silently.
    """

    def receive(self, timeout_s: float) -> StreamArrival | None:
        """The next arrival within `timeout_s` (0: without waiting); None if there is none."""
        ...

    def send(self, stream: str, sealed: bytes) -> bool:
        """Send a sealed frame without waiting; False if the stream has ended or accepts no more now."""
        ...

    def drop(self, stream: str, reason: str) -> None:
        """End a stream."""
        ...


class PlacementQuery(NamedTuple):
    """A request for the planner. `num_tokens` bounds the answer, `num_prompt` tokens are to be read."""

    kind: str
    num_tokens: int
    num_prompt: int
    deadline_ms: float
    residency: frozenset[str]


class PlannedPlacement(NamedTuple):
    """Where a request runs: `cloud` names a node, '' the edge alone. `window` tokens per window, `in_flight` of them.

    `expected_ms` is the median; from `late_ms` on a second cloud is worth asking as well; `reason` says why.
    """

    cloud: str
    draft_mode: DraftMode
    window: int
    in_flight: int
    expected_ms: float
    late_ms: float
    reason: str


class PlacementResult(NamedTuple):
    """The outcome of a request at a cloud, for a planner that learns. Times in ms from its opening.

    `draft_ms` per token drafted at the edge, 0 if not measured. Not `is_whole`: the answer came from elsewhere, or from
    the edge alone, after `total_ms`, with `num_tokens` accepted here by then.
    """

    placed: PlannedPlacement
    kind: str
    num_tokens: int
    first_ms: float
    total_ms: float
    num_drafted: int
    num_accepted: int
    draft_ms: float
    is_whole: bool = True


class RequestPlacer(Protocol):
    """Plans where requests run, from what is known of links and nodes."""

    def place(self, wanted: PlacementQuery, clouds: Sequence[str]) -> PlannedPlacement:
        """The placement of a request among usable clouds (others may be named too)."""
        ...

    def learn(self, finished: PlacementResult) -> None: ...


class EngineSpeed(NamedTuple):
    """The engine's costs: a pass of r rows and t tokens each takes fixed_ms + row_ms · r + token_ms · t + cell_ms · r ·
    t, a prompt prompt_ms per token, a draft draft_ms per token.
    """

    fixed_ms: float
    row_ms: float
    token_ms: float
    cell_ms: float
    prompt_ms: float
    draft_ms: float

    def pass_ms(self, rows: int, tokens: float) -> float:
        return self.fixed_ms + self.row_ms * rows + (self.token_ms + self.cell_ms * rows) * tokens


class TurnRequest(NamedTuple):
    """A request that needs the engine. `num_tokens`: of its prompt, or new ones in its row of the coming pass.

    `slack_ms`: time to its deadline, less what it still takes if nothing joins.
    """

    key: int
    tenant: str
    slack_ms: float
    waited_ms: float
    num_tokens: int


class TurnPolicy(Protocol):
    """Decides which requests are admitted, join and share a pass, and remembers what each tenant used."""

    def retry_ms(
        self,
        own_ms: float,
        alone_ms: float,
        tenant: str,
        deadline_ms: float,
        backlog_ms: Mapping[str, float],
        num_waiting: Mapping[str, int],
    ) -> float | None:
        """None admits a request that needs `own_ms` of the engine and takes `alone_ms` if it never waits; else when to
        ask again. `backlog_ms` and `num_waiting` are what each tenant already has here.
        """
        ...

    def next_joining(
        self, waiting: Sequence[TurnRequest], writing: Sequence[TurnRequest], pace: EngineSpeed
    ) -> int | None:
        """The key of the request whose prompt is read next; None if writing on is better."""
        ...

    def passes(self, ready: Sequence[TurnRequest], pace: EngineSpeed) -> list[list[int]]:
        """The keys of all ready requests, grouped into passes, in order."""
        ...

    def reading_depth(self, num_rows: int, num_offered: int, acceptance: float, pace: EngineSpeed) -> int:
        """How many of a row's offered guesses to read in a pass of so many rows."""
        ...

    def suspect(self, suspicions: Mapping[str, float]) -> None:
        """Suspicion about the work of tenants from now on, 0–1; of all others 0."""
        ...

    def active(self, tenants: Set[str]) -> None:
        """The tenants with requests here now."""
        ...

    def spent(self, costs: Iterable[tuple[str, float]]) -> None:
        """What tenants used, in ms of the engine."""
        ...
