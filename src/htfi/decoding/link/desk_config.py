"""Settings of a cloud's desk: how much of anybody's it holds, and how long it waits for anybody."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


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
    num_in_flight: int = 8
    max_streams: int = 1024
    max_streams_each: int = 16  # of one edge
    max_requests_each: int = 512  # of one stream at once
    max_gathering_each: int = 64
    max_listeners: int = 8  # to one answer
    max_prompt_parts: int = 16
    parts_bytes: int = 64 * 2**20
    max_begun_parts: int = 64
    parts_ms: float = 5_000.0
    window_ms: float = 400.0
    kept_answers: int = 4096
    max_orphans: int = 256
    max_strikes: int = 16
    forgiving_ms: float = 10_000.0
    hello_ms: float = 5_000.0
    slow_ms: float = 10_000.0
    resend_ms: float = 2.0
    tell_ms: float = 2.0
    max_unsent: int = 1024
    budget_abuse: float = 4.0
    drain_retry_ms: int = 500
    prompt_share: float = 1.0
    prompt_ms: float = 20.0

    def __post_init__(self) -> None:
        for name in (
            "num_in_flight", "max_streams", "max_streams_each", "max_requests_each", "max_gathering_each",
            "max_listeners", "max_prompt_parts", "parts_bytes", "max_begun_parts", "max_strikes", "max_unsent",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise InvalidInput(f"desk.{name} must be ≥ 1")
        for name in ("kept_answers", "max_orphans", "drain_retry_ms"):
            if getattr(self, name) < 0:
                raise InvalidInput(f"desk.{name} must be ≥ 0")
        for name in (
            "parts_ms",
            "window_ms",
            "forgiving_ms",
            "hello_ms",
            "slow_ms",
            "resend_ms",
            "tell_ms",
            "prompt_ms",
        ):
            if not 0.0 < getattr(self, name) < 1e9:
                raise InvalidInput(f"desk.{name} must be above 0 ms")
        if not self.budget_abuse >= 1.0:
            raise InvalidInput("desk.budget_abuse must be ≥ 1")
        if not self.prompt_share >= 0.0:
            raise InvalidInput("desk.prompt_share must be ≥ 0")
