"""Settings of an edge's side of the link, checked once. wiring composes them; the linked author reads them.

Settings of a cloud's desk: how much of anybody's it holds, and how long it waits for anybody.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import (
    Bytes,
    Count,
    Milliseconds,
    NonNegativeCount,
    NonNegativeFactor,
    PositiveMilliseconds,
    check_bounds,
)


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
    max_late: NonNegativeCount = 256
    budget_bytes: Annotated[int, Meta(ge=1 << 10, le=2**40)] = 1 << 20
    look_ms: PositiveMilliseconds = 20.0
    max_parts_known: Count = 4_096  # names that are remembered as sent, for each cloud

    def __post_init__(self) -> None:
        check_bounds("edge", self)


@dataclass(frozen=True, slots=True)
class VerificationServerConfig:
    """Bounds. `residency` are the tags of data that may come here. Times in ms.

    A request waits `parts_ms` for its parts. In lock-step an answer waits `window_ms` for its window, then goes on
    without until one fits. Answers are kept by name, `kept_answers` of them. `max_orphans` requests whose edge has
    gone are written to their end for its return. A stream is dropped at `max_strikes` malformed frames, of which one
    is forgiven every `forgiving_ms`, when it says nothing for `hello_ms`, or takes nothing for `slow_ms`.
    Tokens that a cloud writes alone are told every `tell_ms`. A request that sends `budget_abuse` times its budget is
    refused. `prompt_share`: how much of a round's time may go into reading prompts before the next round, at least
    one is read; one that takes longer than `prompt_ms` is read in several turns.
    """

    node: str = "cloud"
    residency: tuple[str, ...] = ()
    num_in_flight: Count = 8
    max_streams: Count = 1024
    max_streams_each: Count = 16  # of one edge
    max_requests_each: Count = 512  # of one stream at once
    max_gathering_each: Count = 64
    max_listeners: Count = 8  # to one answer
    max_prompt_parts: Count = 16
    parts_bytes: Bytes = 64 * 2**20
    max_begun_parts: Count = 64
    parts_ms: PositiveMilliseconds = 5_000.0
    window_ms: PositiveMilliseconds = 400.0
    kept_answers: NonNegativeCount = 4096
    max_orphans: NonNegativeCount = 256
    max_strikes: Count = 16
    forgiving_ms: PositiveMilliseconds = 10_000.0
    hello_ms: PositiveMilliseconds = 5_000.0
    slow_ms: PositiveMilliseconds = 10_000.0
    resend_ms: PositiveMilliseconds = 2.0
    tell_ms: PositiveMilliseconds = 2.0
    max_unsent: Count = 1024
    budget_abuse: Annotated[float, Meta(ge=1.0, le=1e6)] = 4.0
    drain_retry_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 500
    prompt_share: NonNegativeFactor = 1.0
    prompt_ms: PositiveMilliseconds = 20.0

    def __post_init__(self) -> None:
        check_bounds("desk", self)
