"""Settings of the encoder: which model scores, how much of a text it reads, how long an item counts as read."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import check_bounds, setting
from htfi.domain.time import NS_PER_DAY

WEIGHTS = ("auto", "none")


MAX_TOKENS = 64  # of a text: headlines are shorter, bodies say the same again
MAX_RECENT = 512  # items that a new one is compared with
RECENT_HALF_LIFE_NS = 2 * NS_PER_DAY  # of the likeness to an earlier item


@dataclass(frozen=True, slots=True)
class EncodingConfig:
    """Which encoder scores the news."""

    model: str = setting("auto", "auto (the shipped encoder), none, or the folder of a BERT encoder")
    precision: str = setting("int8", "int8 or fp32")
    threads: Annotated[int, Meta(ge=0, le=64)] = setting(
        1, "threads that share a batch; 0 uses all cores", "threads"
    )

    def __post_init__(self) -> None:
        check_bounds("encoding", self)
        if not self.model:
            raise InvalidInput(f"encoding.model must be one of {', '.join(WEIGHTS)}, or a folder")
        if self.precision not in ("int8", "fp32"):
            raise InvalidInput(f"encoding.precision must be int8 or fp32, not '{self.precision}'")
