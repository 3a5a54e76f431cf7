"""Settings of decoding, and of both sides of the link between edges and clouds. wiring composes them."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import (
    Bytes,
    Count,
    Milliseconds,
    NonNegativeCount,
    NonNegativeFactor,
    PositiveMilliseconds,
    check_bounds,
    setting,
)

LengthPlannerName = Literal["nominal", "measured", "bandit", "fixed"]
RuleName = Literal["coupled", "rejection", "entropy_aware"]

# Each is a module of `decoding/strategies`; docs/extend-a-strategy.md adds one.
STRATEGIES = ("plain", "chain", "tree", "lookup", "jacobi", "outcomes")
LENGTH_PLANNERS: tuple[LengthPlannerName, ...] = get_args(LengthPlannerName)
RULES: tuple[RuleName, ...] = get_args(RuleName)


MAX_FORKS = 256  # sequences that one answer may branch into


@dataclass(frozen=True, slots=True)
class DecodingConfig:
    """KV cache memory of one network, and how its answers are drafted and accepted.

    `batch_bytes` holds the sequences being written, `cache_bytes` prompts that were read before, at most
    `cache_tokens` tokens of them. A prompt is read in blocks of `block_tokens`, each computed alone: the unit of reuse.

    `strategy` names what drafts for a target, `draft_length` the planner of draft lengths: 'nominal' uses fixed costs
    and learns nothing, so that a replay drafts the same tokens; 'measured' and 'bandit' learn from the clock; 'fixed'
    always drafts `max_draft_length` tokens, the bound of the others. Batches of more than `plain_above` requests are
    decoded plainly. `rule` accepts drafted tokens: 'coupled' by the shared noise, so that no strategy changes an
    answer; 'rejection' keeps the target's distribution, but the answer of a seed depends on the drafts;
    'entropy_aware' changes the distribution.
    """

    batch_bytes: Bytes = setting(512 * 2**20, "memory for keys and values of the requests being decoded")
    cache_bytes: Annotated[int, Meta(ge=0, le=2**40)] = setting(
        256 * 2**20, "memory for keys and values of prompts that may come again"
    )
    block_tokens: Annotated[int, Meta(ge=1, le=4096)] = setting(
        32, "unit in which prompts are read and reused; replays need the recorded value"
    )
    max_batch: Annotated[int, Meta(ge=1, le=4096)] = setting(16, "requests decoded together", "requests")
    strategy: str = setting(
        "chain", "what drafts ahead of the target: chain, tree, lookup, jacobi, outcomes or plain (nothing)"
    )
    draft_length: LengthPlannerName = setting(
        "nominal", "how the draft length is chosen: nominal, measured, bandit or fixed"
    )
    max_draft_length: Annotated[int, Meta(ge=0, le=64)] = setting(12, "longest draft of one round", "tokens")
    plain_above: NonNegativeCount | None = setting(
        None, "batches larger than this are decoded without speculation; empty: never", "requests"
    )
    cache_tokens: Annotated[int, Meta(ge=0, le=2**30)] = setting(
        1024, "tokens of prompts kept for reuse, at most"
    )
    rule: RuleName = setting("coupled", "how draft tokens are accepted: coupled, rejection or entropy_aware")

    def __post_init__(self) -> None:
        check_bounds("decoding", self)
        _require(self.strategy in STRATEGIES, "strategy", f"must be one of {', '.join(STRATEGIES)}")
        _require(
            self.draft_length in LENGTH_PLANNERS,
            "draft_length",
            f"must be one of {', '.join(LENGTH_PLANNERS)}",
        )
        _require(self.rule in RULES, "rule", f"must be one of {', '.join(RULES)}")


def _require(holds: bool, key: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"decoding.{key} {what}")


FIRST_DRAFT_MS = 0.1  # expected for a drafted token until it is measured
POLL_MS = 20.0  # between looks at which clouds are usable
MAX_PARTS_KNOWN = 4_096  # prompt parts remembered as sent, for each cloud


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """When an edge answers locally, asks a second cloud, and gives up."""

    margin_ms: Milliseconds = setting(3.0, "time before its deadline at which a request is finished locally")
    reconnect_wait_ms: Milliseconds = setting(150.0, "how long a request waits for a cloud that it lost")
    hedges: bool = setting(True, "whether a second cloud gets the request when the first is late")
    hedge_ms: Milliseconds = setting(0.0, "delay before the second cloud gets it; 0 uses the planned time")
    late_answer_timeout_ms: PositiveMilliseconds = setting(
        60_000.0, "how long a late answer of the target is waited for"
    )
    max_late: NonNegativeCount = setting(256, "late answers waited for at once, at most", "requests")
    budget_bytes: Annotated[int, Meta(ge=1 << 10, le=2**40)] = setting(
        1 << 20, "traffic of one request, at most"
    )
    # varied by tests only
    hello_timeout_ms: PositiveMilliseconds = (
        500.0  # for a cloud to greet; after four times as long it is dialled again
    )
    quiet_ms: PositiveMilliseconds = (
        1_000.0  # of silence, after which a request is repeated: a frame may be lost
    )

    def __post_init__(self) -> None:
        check_bounds("edge", self)


MAX_GATHERING_EACH = 64  # requests of a stream that wait for their parts
MAX_PROMPT_PARTS = 16  # of one request
PARTS_BYTES = 64 * 2**20  # memory of prompt parts
MAX_BEGUN_PARTS = 64  # parts that have begun to arrive
STRIKE_MS = 10_000.0  # after which one of them is forgiven
HELLO_MS = 5_000.0  # in which a stream must say who it is
REPORT_MS = 2.0  # between reports of tokens that a cloud writes alone
MAX_UNSENT = 1024  # frames that wait for a slow stream
BUDGET_ABUSE = 4.0  # times its budget that a request may send before it is refused


@dataclass(frozen=True, slots=True)
class VerificationServerConfig:
    """How much of anybody's work a cloud holds. `node` and `residency` come from the cluster's table."""

    node: str = setting("cloud", "")
    residency: tuple[str, ...] = setting((), "")
    num_in_flight: Count = setting(8, "draft windows of a request in flight", "windows")
    max_streams: Count = setting(1024, "streams open at once", "streams")
    max_streams_each: Count = setting(16, "streams open at once, for one edge", "streams")
    max_requests_each: Count = setting(512, "requests open at once, for one stream", "requests")
    kept_answers: NonNegativeCount = setting(4096, "answers kept for edges that reconnect", "answers")
    max_orphans: NonNegativeCount = setting(
        256, "requests finished for an edge that has disconnected", "requests"
    )
    prompt_share: NonNegativeFactor = setting(
        1.0, "share of a pass's time for reading prompts", "of the pass"
    )
    # varied by tests only
    max_strikes: Count = 16  # malformed frames after which a stream is dropped
    parts_ms: PositiveMilliseconds = 5_000.0  # that a request waits for its parts
    window_ms: PositiveMilliseconds = (
        400.0  # that an answer in lock-step waits for a draft window before it continues without
    )
    drain_retry_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = (
        500  # after which an edge that was sent away tries another cloud
    )
    resend_ms: PositiveMilliseconds = 2.0  # before a frame that was not taken is offered again
    slow_reader_ms: PositiveMilliseconds = 10_000.0  # in which a stream must take what is sent
    prompt_ms: PositiveMilliseconds = 20.0  # a prompt that takes longer is read in several turns
    max_listeners: Count = 8  # edges that wait for one answer

    def __post_init__(self) -> None:
        check_bounds("server", self)
