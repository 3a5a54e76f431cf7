"""Settings of a cloud's desk: how much of anybody's it holds, and how long it waits for anybody."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import Bytes, Count, CountOrNone, FactorOrNone, PositiveMilliseconds, check_bounds


@dataclass(frozen=True, slots=True)
class DeskConfig:
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
    kept_answers: CountOrNone = 4096
    max_orphans: CountOrNone = 256
    max_strikes: Count = 16
    forgiving_ms: PositiveMilliseconds = 10_000.0
    hello_ms: PositiveMilliseconds = 5_000.0
    slow_ms: PositiveMilliseconds = 10_000.0
    resend_ms: PositiveMilliseconds = 2.0
    tell_ms: PositiveMilliseconds = 2.0
    max_unsent: Count = 1024
    budget_abuse: Annotated[float, Meta(ge=1.0, le=1e6)] = 4.0
    drain_retry_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 500
    prompt_share: FactorOrNone = 1.0
    prompt_ms: PositiveMilliseconds = 20.0

    def __post_init__(self) -> None:
        check_bounds("desk", self)
