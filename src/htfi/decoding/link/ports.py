"""What the two sides of the link need from outside: streams that carry frames, and a plan of where work runs."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from htfi.decoding.link.frames import Lead


class Happening(Enum):
    """What comes of a stream: it opened, it brought a frame, it ended."""

    UP = "up"
    FRAME = "frame"
    DOWN = "down"


class Arrival(NamedTuple):
    """`stream` names one connection and never another; `node` who is at its other end, by its certificate."""

    stream: str
    node: str
    happening: Happening
    body: bytes = b""  # of a frame, unsealed
    words: str = ""  # why it ended


class Transport(Protocol):
    """Streams to peers. Frames arrive whole, in order and once, or the stream ends. For one thread at a time.

    One that comes damaged is refused by name to its sender (`Refused`, handle −1), and its stream ends: a frame that
    is lost without a word would have to be missed by whoever waits for it.
    """

    def receive(self, timeout_s: float) -> Arrival | None:
        """The next arrival, waiting at most so long (0: not at all); None where there is none."""
        ...

    def send(self, stream: str, sealed: bytes) -> bool:
        """Hand a sealed frame over without waiting; False where the stream has ended or takes no more now."""
        ...

    def drop(self, stream: str, words: str) -> None:
        """End a stream that misbehaves."""
        ...


class Wanted(NamedTuple):
    """A request as the planner sees it. `num_tokens` the answer has at most, `num_prompt` are to be read."""

    kind: str
    num_tokens: int
    num_prompt: int
    deadline_ms: float
    residency: frozenset[str]


class Placed(NamedTuple):
    """Where a request runs: `cloud` names a node, '' the edge alone. `window` tokens a window, `in_flight` of them.

    `expected_ms` at the median; from `late_ms` on a second cloud is worth asking as well; `words` say why.
    """

    cloud: str
    lead: Lead
    window: int
    in_flight: int
    expected_ms: float
    late_ms: float
    words: str


class Finished(NamedTuple):
    """What came of a request at a cloud: for a plan that learns. Times in ms from its opening.

    `draft_ms` is a token drafted at the edge, 0 where that was not measured. Not `is_whole`: the answer came
    from elsewhere, or from the edge alone, after `total_ms`, with `num_tokens` settled here by then.
    """

    placed: Placed
    kind: str
    num_tokens: int
    first_ms: float
    total_ms: float
    num_drafted: int
    num_stood: int
    draft_ms: float
    is_whole: bool = True


class Placer(Protocol):
    """Plans where requests run, from what is known of links and nodes. Wiring introduces scheduling's."""

    def place(self, wanted: Wanted, clouds: Sequence[str]) -> Placed:
        """The place for a request among clouds that are connected and not given up (others may be named as well)."""
        ...

    def learn(self, finished: Finished) -> None: ...
