"""What the two sides of the link need from outside: streams that carry frames, and a plan of where work runs.

What the desk needs from outside: whose turn it is. Wiring introduces scheduling's; the desk tells it what runs.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from typing import NamedTuple, Protocol

from htfi.decoding.link.frames import DraftLead


class StreamEvent(Enum):
    """What comes of a stream: it opened, it brought a frame, it ended."""

    UP = "up"
    FRAME = "frame"
    DOWN = "down"


class StreamArrival(NamedTuple):
    """`stream` names one connection and never another; `node` who is at its other end, by its certificate."""

    stream: str
    node: str
    event: StreamEvent
    body: bytes = b""  # of a frame, unsealed
    words: str = ""  # why it ended


class Transport(Protocol):
    """Streams to peers. Frames arrive whole, in order and once, or the stream ends. For one thread at a time.

    One that comes damaged is refused by name to its sender (`Refused`, handle −1), and its stream ends: a frame that
    is lost without a word would have to be missed by whoever waits for it.
    """

    def receive(self, timeout_s: float) -> StreamArrival | None:
        """The next arrival, waiting at most so long (0: not at all); None where there is none."""
        ...

    def send(self, stream: str, sealed: bytes) -> bool:
        """Hand a sealed frame over without waiting; False where the stream has ended or takes no more now."""
        ...

    def drop(self, stream: str, words: str) -> None:
        """End a stream that misbehaves."""
        ...


class PlacementQuery(NamedTuple):
    """A request as the planner sees it. `num_tokens` the answer has at most, `num_prompt` are to be read."""

    kind: str
    num_tokens: int
    num_prompt: int
    deadline_ms: float
    residency: frozenset[str]


class PlannedPlacement(NamedTuple):
    """Where a request runs: `cloud` names a node, '' the edge alone. `window` tokens a window, `in_flight` of them.

    `expected_ms` at the median; from `late_ms` on a second cloud is worth asking as well; `words` say why.
    """

    cloud: str
    lead: DraftLead
    window: int
    in_flight: int
    expected_ms: float
    late_ms: float
    words: str


class PlacementResult(NamedTuple):
    """What came of a request at a cloud: for a plan that learns. Times in ms from its opening.

    `draft_ms` is a token drafted at the edge, 0 where that was not measured. Not `is_whole`: the answer came
    from elsewhere, or from the edge alone, after `total_ms`, with `num_tokens` settled here by then.
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
    """Plans where requests run, from what is known of links and nodes. Wiring introduces scheduling's."""

    def place(self, wanted: PlacementQuery, clouds: Sequence[str]) -> PlannedPlacement:
        """The place for a request among clouds that are connected and not given up (others may be named as well)."""
        ...

    def learn(self, finished: PlacementResult) -> None: ...


class EngineSpeed(NamedTuple):
    """What the engine takes: a pass of r rows and t tokens each fixed_ms + row_ms · r + token_ms · t + cell_ms · r · t,
    a prompt prompt_ms a token, a draft draft_ms a token."""

    fixed_ms: float
    row_ms: float
    token_ms: float
    cell_ms: float
    prompt_ms: float
    draft_ms: float

    def pass_ms(self, rows: int, tokens: float) -> float:
        return self.fixed_ms + self.row_ms * rows + (self.token_ms + self.cell_ms * rows) * tokens


class TurnRequest(NamedTuple):
    """A request that wants the engine. `num_tokens`: of its prompt, or new ones in its row of the coming pass.

    `slack_ms`: until its deadline, less what it still takes if nobody joins.
    """

    key: int
    tenant: str
    slack_ms: float
    waited_ms: float
    num_tokens: int


class TurnPolicy(Protocol):
    """Decides who is admitted, who joins and who goes together, and remembers what each tenant used."""

    def retry_ms(
        self,
        own_ms: float,
        alone_ms: float,
        tenant: str,
        deadline_ms: float,
        backlog_ms: Mapping[str, float],
        num_waiting: Mapping[str, int],
    ) -> float | None:
        """None admits a request that needs `own_ms` of the engine and takes `alone_ms` if it never waits; else when
        to ask again. `backlog_ms` and `num_waiting` are what tenants have here already."""
        ...

    def next_joining(
        self, waiting: Sequence[TurnRequest], writing: Sequence[TurnRequest], pace: EngineSpeed
    ) -> int | None:
        """The key of the request whose prompt is read next; None where it is better to write on first."""
        ...

    def passes(self, ready: Sequence[TurnRequest], pace: EngineSpeed) -> list[list[int]]:
        """All that are ready, by key, in the passes in which they go, in order."""
        ...

    def reading_depth(self, num_rows: int, num_offered: int, acceptance: float, pace: EngineSpeed) -> int:
        """How many of the guesses offered for a row to read in a pass of so many rows."""
        ...

    def suspect(self, doubts: Mapping[str, float]) -> None:
        """How far the work of tenants is in doubt from now on, 0–1; that of others is not."""
        ...

    def active(self, tenants: Set[str]) -> None:
        """Who has requests here now."""
        ...

    def spent(self, costs: Iterable[tuple[str, float]]) -> None:
        """What tenants used, in ms of the engine."""
        ...
