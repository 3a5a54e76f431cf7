"""Settings of the encoder: which model scores, how much of a text it reads, how long an item counts for novelty."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import SpanNs, check_bounds
from htfi.domain.time import NS_PER_DAY

WEIGHTS = ("auto", "none")


@dataclass(frozen=True, slots=True)
class EncodingConfig:
    """`model` is 'auto' (the pinned package, if installed), 'none', or a folder that holds a BERT encoder.

    The encoder reads at most `max_tokens` of a text. `threads` share a batch, 0 for all cores; their number changes no
    bit. An item is compared with the last `max_recent` items; its likeness to one halves every `recent_half_life_ns`.
    """

    model: str = "auto"
    precision: str = "int8"
    max_tokens: Annotated[int, Meta(ge=4, le=512)] = 64
    threads: Annotated[int, Meta(ge=0, le=64)] = 1
    max_recent: Annotated[int, Meta(ge=1, le=65_536)] = 512
    recent_half_life_ns: SpanNs = 2 * NS_PER_DAY

    def __post_init__(self) -> None:
        check_bounds("encoding", self)
        if not self.model:
            raise InvalidInput(f"encoding.model must be one of {', '.join(WEIGHTS)}, or a folder")
        if self.precision not in ("int8", "fp32"):
            raise InvalidInput(f"encoding.precision must be int8 or fp32, not '{self.precision}'")
