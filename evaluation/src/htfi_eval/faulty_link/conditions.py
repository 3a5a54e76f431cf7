"""What a link does to the bytes that pass it: values alone. The proxy obeys them, tests and benchmarks choose them."""

import math
from dataclasses import dataclass, fields
from enum import Enum

from htfi.domain.errors import InvalidInput


class Direction(Enum):
    """A direction, seen from the side that opened the connection."""

    UP = "up"  # to the target
    DOWN = "down"  # back


class Jitter(Enum):
    """How delays spread around half the round trip."""

    NORMAL = "normal"  # `jitter_ms` is the standard deviation; never sooner than at once
    EXPONENTIAL = "exponential"  # `jitter_ms` is the mean of what comes on top


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """One state of a link. Order within a connection is kept, as TCP keeps it; every delay is per direction.

    Bytes and chances are those of one direction of one connection, counted from the moment this conditions came.
    """

    rtt_ms: float = (
        0.0  # half of it each way; a new connection pays one and a half before its first byte arrives
    )
    jitter_ms: float = 0.0
    jitter: Jitter = Jitter.EXPONENTIAL
    skew_ms: float = (
        0.0  # each connection draws up to so much more each way: reorders streams against each other
    )
    bytes_per_s: float = math.inf  # each way, shared by all connections
    burst_bytes: int = 16_384  # that pass at once before `bytes_per_s` binds
    is_stalled: bool = False  # no byte passes, those on their way included; the next conditions lets all go
    is_dark: bool = False  # swallows bytes and endings without a word; what lost bytes stays dark for ever
    refuses: bool = False  # no process listens: new connections are refused
    max_connections: int = 1 << 16  # those beyond are reset as they come
    resets_after_bytes: int = -1  # both ways together; 0: at once, those open included; −1: never
    corrupt_rate: float = 0.0  # chance of a byte that one of its bits flips
    corrupts_at_byte: int = -1  # this very byte as well (from 0 on)
    duplicate_rate: float = 0.0  # chance of a chunk, as it was read, that it comes twice
    only: Direction | None = None  # darkness, corruption and duplicates in one direction alone

    def __post_init__(self) -> None:
        for name in ("rtt_ms", "jitter_ms", "skew_ms", "burst_bytes", "max_connections"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"conditions: {name} is {getattr(self, name)}, not a number from 0 on")
        for name in ("corrupt_rate", "duplicate_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"conditions: {name} is {getattr(self, name)}, not a chance from 0 to 1")
        if not self.bytes_per_s > 0:
            raise InvalidInput(
                f"conditions: bytes_per_s is {self.bytes_per_s}, not above 0: is_stalled stops all"
            )

    def affects(self, way: Direction) -> bool:
        return self.only is None or self.only is way

    def __str__(self) -> str:
        """What differs from a clear sky."""
        parts = [
            f"{field.name}={value.value if isinstance(value, Enum) else value}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return " ".join(parts) or "clear"


CLEAR = LinkConditions()
LinkSchedule = tuple[tuple[float, LinkConditions], ...]  # seconds from its start on, and what comes then
