"""Settings of an edge's side of the link, checked once. wiring composes them; the linked author reads them."""

import math
from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """When an edge goes on alone, asks a second cloud, and gives up. Times in ms.

    A request goes on alone `margin_ms` before its deadline, less what its draft is expected to take: at first
    `draft_ms` a token. One that lost its cloud, where no other is usable, waits `patience_ms` for one to come back;
    one that finds a cloud in its greeting waits `greeting_ms`. A cloud that takes four times as long is dialled anew.
    A second cloud is asked after `hedge_ms`; 0 takes the time that the plan calls late, `hedges` = false asks none.
    A cloud that has said nothing of a request for `quiet_ms` is asked again, and again after twice as long: a frame
    that was spoilt on its way may have been lost.
    The target's answer to a request that was finished alone is awaited for `late_ms`, for `max_late` requests at once.
    `budget_bytes` is what one request may take on the wire at a cloud. Usable clouds are looked at every `look_ms`.
    """

    margin_ms: float = 3.0
    draft_ms: float = 0.1
    patience_ms: float = 150.0
    greeting_ms: float = 500.0
    hedges: bool = True
    hedge_ms: float = 0.0
    quiet_ms: float = 1_000.0
    late_ms: float = 60_000.0
    max_late: int = 256
    budget_bytes: int = 1 << 20
    look_ms: float = 20.0
    max_parts_known: int = 4_096  # names that are remembered as sent, for each cloud

    def __post_init__(self) -> None:
        for name in ("margin_ms", "draft_ms", "patience_ms", "greeting_ms", "hedge_ms"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= 0.0, name, "must be a number ≥ 0")
        for name in ("late_ms", "look_ms", "quiet_ms"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value > 0.0, name, "must be a number > 0")
        _require(self.late_ms < 2**31, "late_ms", "must be below 2^31")
        _require(self.max_late >= 0, "max_late", "must be ≥ 0")
        _require(self.budget_bytes >= 1 << 10, "budget_bytes", "must be at least 1,024")
        _require(self.max_parts_known >= 1, "max_parts_known", "must be ≥ 1")


def _require(holds: bool, key: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"edge.{key} {what}")
