"""Settings of a cloud's turns: how many may wait, how long the patient are passed over, how wide a pass may be."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import (
    Count,
    Factor,
    Milliseconds,
    PositiveMilliseconds,
    PositiveShare,
    check_bounds,
)


@dataclass(frozen=True, slots=True)
class TurnsConfig:
    """`max_waiting` requests may wait in all, `max_waiting_each` of one tenant, and a pass has `max_rows` at most.

    Those whose slack is above `patience_ms`, or whose deadline has passed, count as if they had just that slack; each
    ms of waiting takes `aging` ms off, so that nobody waits for ever behind the urgent. Tenants whose use differs by
    less than `grace_ms` have equal rights. Who would finish later than its deadline over
    `safety` is not admitted: predictions do not know who comes next. A tenant under suspicion has `doubted_share` of
    another's, and comes in `doubted_ms` behind.
    """

    max_waiting: Count = 1024
    max_waiting_each: Count = 256
    max_rows: Count = 64
    patience_ms: PositiveMilliseconds = 2_000.0
    aging: Factor = 2.0
    grace_ms: Milliseconds = 5.0
    safety: Factor = 1.5
    doubted_share: PositiveShare = 0.25
    doubted_ms: Milliseconds = 50.0
    least_retry_ms: Milliseconds = 10.0
    most_retry_ms: Milliseconds = 5_000.0

    def __post_init__(self) -> None:
        check_bounds("turns", self)
        if not self.least_retry_ms <= self.most_retry_ms:
            raise InvalidInput("turns: need least_retry_ms ≤ most_retry_ms")
