"""How much a tenant or a key may use: a rate of requests, and sums of a day. Pure: the time comes in.

The rate is the generic cell rate algorithm (ITU-T I.371): its state is one instant, by which everything so far would
have been sent at the rate. A bucket of `burst` tokens that fills at the rate decides the same.
"""

from typing import Annotated, NamedTuple

import msgspec

from htfi.domain.time import NS_PER_S

Positive = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
Whole = Annotated[int, msgspec.Meta(ge=1, le=10**15)]
DEFAULT_REQUESTS_PER_S, DEFAULT_BURST = 100.0, 200


class Quota(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds; None: no bound of its own. Days are of UTC, money in the service's currency."""

    requests_per_s: Positive | None = None
    burst: Whole | None = None
    requests_per_day: Whole | None = None
    tokens_per_day: Whole | None = None
    cpu_s_per_day: Positive | None = None
    money_per_day: Positive | None = None


class Rate(NamedTuple):
    """A rate as the algorithm reads it."""

    interval_ns: int  # between two requests at the rate
    burst: int

    @classmethod
    def of(cls, quota: Quota) -> "Rate | None":
        if quota.requests_per_s is None:
            return None
        return cls(
            max(round(NS_PER_S / quota.requests_per_s), 1),
            quota.burst or max(round(2 * quota.requests_per_s), 1),
        )

    def wait_ns(self, all_sent_ns: int, now_ns: int) -> int:
        """Until a request more may be sent; 0 for now."""
        return max(max(all_sent_ns, now_ns) - now_ns - self.interval_ns * (self.burst - 1), 0)

    def after(self, all_sent_ns: int, now_ns: int) -> int:
        """The state after one request more."""
        return max(all_sent_ns, now_ns) + self.interval_ns

    def remaining(self, all_sent_ns: int, now_ns: int) -> int:
        """How many requests could be sent now."""
        return max(self.burst - -(-max(all_sent_ns - now_ns, 0) // self.interval_ns), 0)
