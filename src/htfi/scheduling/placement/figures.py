"""The values that placement reads and returns. Wiring converts them from and to those of the link."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Placement(Enum):
    """Who generates an answer, and who drafts for it. In this order where prices are equal."""

    CLOUD_PLAIN = "cloud plain"
    CLOUD_SPECULATIVE = "cloud speculative"
    PIPELINED = "edge and cloud, windows in flight"
    LOCKSTEP = "edge and cloud, in lock-step"
    EDGE_ONLY = "edge alone"


class PassCostModel(NamedTuple):
    """ms of a pass = fixed + per_row · rows + (per_token + per_cell · rows) · tokens, tokens per row."""

    fixed: float
    per_row: float
    per_token: float
    per_row_token: float

    def ms(self, rows: float, tokens: float) -> float:
        return self.fixed + self.per_row * rows + (self.per_token + self.per_row_token * rows) * tokens


class LinkFigures(NamedTuple):
    """A link now. `loss` is the share of frames that need sending again."""

    rtt_ms: float
    rtt_late_ms: float  # at a high quantile
    bytes_per_s: float | None = None
    loss: float = 0.0
    is_suspect: bool = False


class CloudFigures(NamedTuple):
    """A cloud now. `rows_busy` are others' rows in a pass; `draft_ms` a token, None where there is no draft.

    `residency`: tags of data that may lie there; a request's tags must all be among them.
    """

    pass_costs: PassCostModel
    prompt_ms: float  # a token
    queue_ms: float = 0.0
    queue_late_ms: float = 0.0
    rows_busy: float = 0.0
    draft_ms: float | None = None
    watts: float = 0.0
    residency: frozenset[str] = frozenset()
    num_in_flight: int = 32
    is_degraded: bool = False


class EdgeFigures(NamedTuple):
    """This machine now. `throttle` is the share of its clock that it lacks, `load` of its cores in use."""

    draft_ms: float  # a token
    prompt_ms: float  # a token
    throttle: float = 0.0
    temperature_c: float | None = None
    load: float = 0.0
    watts: float = 0.0


class PlacementRequest(NamedTuple):
    """A request to place. `num_tokens` the answer has at most; `num_known` of its prompt a cloud has read already.

    `curve` holds a_1 … a_n, the chance that the first j guesses are all accepted; empty: what the planner has learnt.
    `num_expected` tokens the answer will have; 0: what the planner has learnt.
    """

    kind: str
    num_tokens: int
    num_prompt: int
    deadline_ms: float
    residency: frozenset[str] = frozenset()
    curve: tuple[float, ...] = ()
    num_expected: int = 0
    num_known: Mapping[str, int] = {}


class PricedOption(NamedTuple):
    """One placement at one cloud. `price_ms` is what is compared: the median time, energy and strain.

    Where `is_allowed` is false, `reason` says what forbids it; times may then be infinite. `compute_ms` of
    `expected_ms` are not of round trips.
    """

    cloud: str
    placement: Placement
    window: int
    in_flight: int
    expected_ms: float
    late_ms: float
    price_ms: float
    compute_ms: float
    is_allowed: bool
    reason: str


class PlacementDecision(NamedTuple):
    """`choice` among `options`, the cheapest first. `hedge`: the best placement at another cloud; `reason`: why."""

    choice: PricedOption
    options: tuple[PricedOption, ...]
    hedge: PricedOption | None
    reason: str


class PlacementOutcome(NamedTuple):
    """The outcome of a choice. `num_drafted` guesses were verified by a target and `num_accepted` of them accepted.

    `is_whole`: the answer came; else it was given up after `total_ms`.
    """

    cloud: str
    placement: Placement
    window: int
    in_flight: int
    expected_ms: float  # of the choice, by which it is known again
    kind: str
    num_tokens: int
    total_ms: float
    num_drafted: int = 0
    num_accepted: int = 0
    is_whole: bool = True
