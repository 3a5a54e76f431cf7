"""Settings of a cloud's turns: how many may wait, how long the patient are passed over, how wide a pass may be."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TurnsConfig:
    """`max_waiting` requests may wait in all, `max_waiting_each` of one tenant, and a pass has `max_rows` at most.

    Those whose slack is above `patience_ms`, or whose deadline has passed, count as if they had just that slack; each
    ms of waiting takes `aging` ms off, so that nobody waits for ever behind the urgent. Tenants whose use differs by
    less than `grace_ms` have equal rights. Who would finish later than its deadline over
    `safety` is not admitted: predictions do not know who comes next. A tenant under suspicion has `doubted_share` of
    another's, and comes in `doubted_ms` behind.
    """

    max_waiting: int = 1024
    max_waiting_each: int = 256
    max_rows: int = 64
    patience_ms: float = 2_000.0
    aging: float = 2.0
    grace_ms: float = 5.0
    safety: float = 1.5
    doubted_share: float = 0.25
    doubted_ms: float = 50.0
    least_retry_ms: float = 10.0
    most_retry_ms: float = 5_000.0

    def __post_init__(self) -> None:
        for name in ("max_waiting", "max_waiting_each", "max_rows"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"turns.{name} must be ≥ 1")
        for name in ("patience_ms", "aging", "safety"):
            if not 0.0 < getattr(self, name) < 1e9:
                raise InvalidInput(f"turns.{name} must be above 0")
        if not 0.0 < self.doubted_share <= 1.0 or not 0.0 <= self.doubted_ms < 1e9:
            raise InvalidInput("turns: doubted_share must lie in 0..1, above 0, and doubted_ms be ≥ 0")
        if not self.grace_ms >= 0.0:
            raise InvalidInput("turns.grace_ms must be ≥ 0")
        if not 0.0 <= self.least_retry_ms <= self.most_retry_ms:
            raise InvalidInput("turns: need 0 ≤ least_retry_ms ≤ most_retry_ms")
