"""Settings of a cloud's fair scheduler: how many requests may wait, patience, width of a pass."""

from dataclasses import dataclass

from htfi.domain.settings import (
    Count,
    PositiveMilliseconds,
    check_bounds,
    setting,
)

AGING = 2.0  # ms of slack lost for each ms of waiting: nothing waits for ever behind the urgent
GRACE_MS = 5.0  # of use between tenants that still have equal rights
SAFETY = 1.5  # a request is admitted if it would end within its deadline over this: predictions miss what comes next
SUSPECTED_SHARE = 0.25  # of another tenant's share, for a tenant under suspicion
SUSPECTED_DELAY_MS = 50.0  # that it comes in behind
MIN_RETRY_MS = 10.0  # earliest advice to come again
MAX_RETRY_MS = 5_000.0  # latest advice to come again


@dataclass(frozen=True, slots=True)
class TurnsConfig:
    """How many requests wait for a cloud, and how many it decodes together."""

    max_waiting: Count = setting(1024, "requests that may wait", "requests")
    max_waiting_each: Count = setting(256, "requests of one tenant that may wait", "requests")
    max_rows: Count = setting(64, "requests decoded in one pass", "requests")
    patience_ms: PositiveMilliseconds = setting(2_000.0, "slack beyond which requests are equally urgent")

    def __post_init__(self) -> None:
        check_bounds("turns", self)
