"""Settings of decoding, checked once. wiring composes them; sessions and authors read them."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Bytes, NonNegativeCount, check_bounds

STRATEGIES = ("plain", "chain", "tree", "lookup", "jacobi", "outcomes")
LENGTH_PLANNERS = ("nominal", "measured", "bandit", "fixed")


@dataclass(frozen=True, slots=True)
class DecodingConfig:
    """How much memory one network's keys and values may take, and how reading is cut.

    `batch_bytes` holds the sequences being written, `cache_bytes` what was read before and may be asked again, at most
    `cache_tokens`: what the questions of a moment share, since later ones begin with later news.
    A prompt is read in blocks of `block_tokens`: the unit of reuse, and of bits, since a block is always
    computed alone and in the same way.

    `strategy` says who guesses ahead of a target (`STRATEGIES`), `lookahead` how far (`LOOKAHEADS`): 'nominal' plans
    by fixed costs and learns nothing, so that a recorded run drafts the same again; 'measured' and 'bandit' learn
    from the clock; 'fixed' always drafts `max_draft` tokens, which bounds the others too. Batches of more than
    `plain_above` requests are not speculated for. No setting of speculation changes an answer.
    """

    batch_bytes: Bytes = 512 * 2**20
    cache_bytes: Annotated[int, Meta(ge=0, le=2**40)] = 256 * 2**20
    block_tokens: Annotated[int, Meta(ge=1, le=4096)] = 32
    max_batch: Annotated[int, Meta(ge=1, le=4096)] = 16
    max_forks: Annotated[int, Meta(ge=1, le=65536)] = 256
    strategy: str = "chain"
    lookahead: str = "nominal"
    max_draft: Annotated[int, Meta(ge=0, le=64)] = 12
    plain_above: NonNegativeCount | None = None
    cache_tokens: Annotated[int, Meta(ge=0, le=2**30)] = 1024

    def __post_init__(self) -> None:
        check_bounds("decoding", self)
        _require(self.strategy in STRATEGIES, "strategy", f"must be one of {', '.join(STRATEGIES)}")
        _require(
            self.lookahead in LENGTH_PLANNERS, "lookahead", f"must be one of {', '.join(LENGTH_PLANNERS)}"
        )


def _require(holds: bool, key: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"decoding.{key} {what}")
