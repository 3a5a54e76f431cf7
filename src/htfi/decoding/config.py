"""Settings of decoding, checked once. wiring composes them; sessions and authors read them."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput

STRATEGIES = ("plain", "chain", "tree", "lookup", "jacobi", "outcomes")
LOOKAHEADS = ("nominal", "measured", "bandit", "fixed")


@dataclass(frozen=True, slots=True)
class DecodingConfig:
    """How much memory one network's keys and values may take, and how reading is cut.

    `batch_bytes` holds the sequences being written, `cache_bytes` what was read before and may be asked again.
    A prompt is read in blocks of `block_tokens`: the unit of reuse, and of bits, since a block is always
    computed alone and in the same way.

    `strategy` says who guesses ahead of a target (`STRATEGIES`), `lookahead` how far (`LOOKAHEADS`): 'nominal' plans
    by fixed costs and learns nothing, so that a recorded run drafts the same again; 'measured' and 'bandit' learn
    from the clock; 'fixed' always drafts `max_draft` tokens, which bounds the others too. Batches of more than
    `plain_above` requests are not speculated for. No setting of speculation changes an answer.
    """

    batch_bytes: int = 512 * 2**20
    cache_bytes: int = 256 * 2**20
    block_tokens: int = 32
    max_batch: int = 16
    max_forks: int = 256
    strategy: str = "chain"
    lookahead: str = "nominal"
    max_draft: int = 12
    plain_above: int | None = None

    def __post_init__(self) -> None:
        _require(self.batch_bytes >= 1, "batch_bytes", "must be ≥ 1")
        _require(self.cache_bytes >= 0, "cache_bytes", "must be ≥ 0; 0 keeps nothing between requests")
        _require(1 <= self.block_tokens <= 4096, "block_tokens", "must lie between 1 and 4096")
        _require(self.max_batch >= 1, "max_batch", "must be ≥ 1")
        _require(self.max_forks >= 1, "max_forks", "must be ≥ 1")
        _require(self.strategy in STRATEGIES, "strategy", f"must be one of {', '.join(STRATEGIES)}")
        _require(self.lookahead in LOOKAHEADS, "lookahead", f"must be one of {', '.join(LOOKAHEADS)}")
        _require(0 <= self.max_draft <= 64, "max_draft", "must lie between 0 and 64")
        _require(self.plain_above is None or self.plain_above >= 0, "plain_above", "must be ≥ 0")


def _require(holds: bool, key: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"decoding.{key} {what}")
