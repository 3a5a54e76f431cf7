"""Settings of an edge's side of the link, checked once. wiring composes them; the linked author reads them."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import Count, CountOrNone, Milliseconds, PositiveMilliseconds, check_bounds


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

    margin_ms: Milliseconds = 3.0
    draft_ms: Milliseconds = 0.1
    patience_ms: Milliseconds = 150.0
    greeting_ms: Milliseconds = 500.0
    hedges: bool = True
    hedge_ms: Milliseconds = 0.0
    quiet_ms: PositiveMilliseconds = 1_000.0
    late_ms: PositiveMilliseconds = 60_000.0
    max_late: CountOrNone = 256
    budget_bytes: Annotated[int, Meta(ge=1 << 10, le=2**40)] = 1 << 20
    look_ms: PositiveMilliseconds = 20.0
    max_parts_known: Count = 4_096  # names that are remembered as sent, for each cloud

    def __post_init__(self) -> None:
        check_bounds("edge", self)
