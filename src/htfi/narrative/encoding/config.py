"""Settings of the encoder: which model scores, how much of a text it reads, how long an item counts as read."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY

WEIGHTS = ("auto", "none")


@dataclass(frozen=True, slots=True)
class EncodingConfig:
    """`model` is 'auto' (the pinned package, where it is installed), 'none', or a folder that holds a BERT encoder.

    The encoder reads at most `max_tokens` of a text. `threads` share a batch, 0 for all cores; their number changes no
    bit.
    An item is compared with the last `max_recent` read; its likeness to one halves every `recent_half_life_ns`.
    """

    model: str = "auto"
    precision: str = "int8"
    max_tokens: int = 64
    threads: int = 1
    max_recent: int = 512
    recent_half_life_ns: int = 2 * NS_PER_DAY

    def __post_init__(self) -> None:
        if not self.model:
            raise InvalidInput(f"encoding.model must be one of {', '.join(WEIGHTS)}, or a folder")
        if self.precision not in ("int8", "fp32"):
            raise InvalidInput(f"encoding.precision must be int8 or fp32, not '{self.precision}'")
        if not 4 <= self.max_tokens <= 512:
            raise InvalidInput(f"encoding.max_tokens must lie in 4..512, not {self.max_tokens}")
        if not 0 <= self.threads <= 64:
            raise InvalidInput(f"encoding.threads must lie in 0..64, not {self.threads}")
        if not 1 <= self.max_recent <= 65_536:
            raise InvalidInput(f"encoding.max_recent must lie in 1..65536, not {self.max_recent}")
        if self.recent_half_life_ns < 1:
            raise InvalidInput(
                f"encoding.recent_half_life_ns must be at least 1, not {self.recent_half_life_ns}"
            )
