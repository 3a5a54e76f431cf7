"""Settings of decoding. wiring composes them."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Bytes, NonNegativeCount, check_bounds, setting

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

    `strategy` names what drafts for a target, `lookahead` the planner of draft lengths: 'nominal' uses fixed costs and
    learns nothing, so that a replay drafts the same tokens; 'measured' and 'bandit' learn from the clock; 'fixed'
    always drafts `max_draft` tokens, the bound of the others. Batches of more than `plain_above` requests are decoded
    plainly. `rule` accepts drafted tokens: 'coupled' by the shared noise, so that no strategy changes an answer;
    'rejection' keeps the target's distribution, but the answer of a seed depends on the drafts; 'entropy_aware'
    changes the distribution.
    """

    batch_bytes: Bytes = setting(512 * 2**20, "memory for keys and values of the requests being decoded")
    cache_bytes: Annotated[int, Meta(ge=0, le=2**40)] = setting(
        256 * 2**20, "memory for keys and values of prompts that may be asked again"
    )
    block_tokens: Annotated[int, Meta(ge=1, le=4096)] = setting(
        32, "unit in which prompts are read and reused; replays need the recorded value"
    )
    max_batch: Annotated[int, Meta(ge=1, le=4096)] = setting(16, "requests decoded together", "requests")
    strategy: str = setting(
        "chain", "what drafts ahead of the target: chain, tree, lookup, jacobi, outcomes or plain (nothing)"
    )
    lookahead: LengthPlannerName = setting(
        "nominal", "how the draft length is chosen: nominal, measured, bandit or fixed"
    )
    max_draft: Annotated[int, Meta(ge=0, le=64)] = setting(12, "longest draft of one round", "tokens")
    plain_above: NonNegativeCount | None = setting(
        None, "batches larger than this are decoded without speculation; empty: never", "requests"
    )
    cache_tokens: Annotated[int, Meta(ge=0, le=2**30)] = setting(
        1024, "most tokens of prompts kept for reuse"
    )
    rule: RuleName = setting("coupled", "how draft tokens are accepted: coupled, rejection or entropy_aware")

    def __post_init__(self) -> None:
        check_bounds("decoding", self)
        _require(self.strategy in STRATEGIES, "strategy", f"must be one of {', '.join(STRATEGIES)}")
        _require(
            self.lookahead in LENGTH_PLANNERS, "lookahead", f"must be one of {', '.join(LENGTH_PLANNERS)}"
        )
        _require(self.rule in RULES, "rule", f"must be one of {', '.join(RULES)}")


def _require(holds: bool, key: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"decoding.{key} {what}")
