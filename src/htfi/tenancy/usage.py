"""What was used, in whole numbers, so that sums are exact whatever their order."""

from typing import NamedTuple

import msgspec

from htfi.domain.time import NS_PER_DAY

MICROS = 1_000_000
NANOS = 1_000_000_000


class Usage(NamedTuple):
    """Amounts. `refused`: requests over a quota, which are not among `requests`. Money in 10⁻⁹ of the currency."""

    requests: int = 0
    refused: int = 0
    tokens: int = 0
    cpu_us: int = 0
    money_nano: int = 0

    def plus(self, other: "Usage") -> "Usage":
        return Usage(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: "Usage") -> "Usage":
        return Usage(*(a - b for a, b in zip(self, other, strict=True)))


NOTHING = Usage()


class UsageKey(NamedTuple):
    """Whose usage of which day (days since 1970, UTC). The key's id is that of an API key, or `issuer:subject`."""

    tenant: str
    key: str
    day: int


class UsageRow(msgspec.Struct, frozen=True):
    """One key's day, or with an empty key the decisions that a tenant's run recorded that day.

    A day is one of UTC. `refused` requests were over a quota and are not among `requests`. Whole numbers, so that sums
    are exact: `cpu_us` 10⁻⁶ s of processor time, `money_nano` 10⁻⁹ of the currency.
    """

    day: str
    tenant: str
    key: str
    requests: int = 0
    refused: int = 0
    tokens: int = 0
    cpu_us: int = 0
    money_nano: int = 0
    currency: str = ""
    decisions: int = 0


class UsagePrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What usage costs, in `currency`."""

    currency: str = "USD"
    per_request: float = 0.0
    per_1000_tokens: float = 0.0
    per_cpu_s: float = 0.0

    def money_nano(self, requests: int, tokens: int, cpu_us: int) -> int:
        """Of one amount, rounded once."""
        money = (
            requests * self.per_request
            + tokens * self.per_1000_tokens / 1_000
            + cpu_us * self.per_cpu_s / MICROS
        )
        return round(money * NANOS)


def day_of(now_ns: int) -> int:
    """Days since 1970, UTC."""
    return now_ns // NS_PER_DAY
