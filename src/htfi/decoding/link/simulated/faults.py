"""What happens to whole frames between nodes in memory: values alone."""

import math
from dataclasses import dataclass, fields

from htfi.domain.errors import InvalidInput

_CHANCES = ("duplicates", "overtakes", "corrupts", "loses", "ends")


@dataclass(frozen=True, slots=True)
class FrameFaults:
    """One state of all links of a network; chances are per frame. Frames of different streams overtake by jitter alone.

    What a `Transport` promises (whole, in order, once) holds in the first group; the second breaks it, as a hostile
    peer or a fault beneath TCP would.
    """

    delay_ms: float = 0.0  # one way
    jitter_ms: float = 0.0  # mean of what comes on top, exponential
    ends: float = 0.0  # the stream ends instead: DOWN at both sides, and what was on its way is lost
    is_dark: bool = False  # nothing passes, and nobody notices
    redial_s: float = 0.1  # until a stream that ended is replaced
    takes_bytes: int = 1 << 20  # on the way on one stream; `send` refuses more

    corrupts: float = 0.0  # a bit flips: the seal is broken, the frame refused
    duplicates: float = 0.0  # it comes twice
    overtakes: float = 0.0  # it passes those sent before it on its own stream
    loses: float = 0.0  # it never comes

    def __post_init__(self) -> None:
        for name in ("delay_ms", "jitter_ms", "redial_s", "takes_bytes"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"frame faults: {name} is {getattr(self, name)}, not a number from 0 on")
        for name in _CHANCES:
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"frame faults: {name} is {getattr(self, name)}, not a chance from 0 to 1")

    def __str__(self) -> str:
        """What differs from a link without faults."""
        named = [
            f"{field.name}={value}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return " ".join(named) or "no faults"


NO_FAULTS = FrameFaults()
