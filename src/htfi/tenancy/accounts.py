"""The accounts of a service's process: who may ask now, and what was used that the store does not know yet.

All belongs to one thread. Amounts go to the store in batches with a number; one whose outcome is unknown is sent again
under the same number, and the store takes each number once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.tenancy.quotas import Quota, Rate
from htfi.tenancy.refusal_pace import next_read_ns
from htfi.tenancy.usage import MICROS, NANOS, NOTHING, Usage, UsageKey, UsagePrices, day_of


class Refusal(NamedTuple):
    """Why a request is over a quota, and when to ask again."""

    what: str
    retry_ns: int
    pause_ns: int  # not to read the connection meanwhile


class UsageBatch(NamedTuple):
    """Amounts that no other batch holds. `used_ns`: when each key was last used; `sizes`: entries of each ledger."""

    number: int
    amounts: Mapping[UsageKey, Usage]
    used_ns: Mapping[str, int]
    sizes: Mapping[tuple[str, int], int]  # of a tenant at the end of a day


@dataclass(slots=True)
class UsageAccount:
    """One tenant's or key's quota, and where it stands. `stored` is of `day`; `fresh` is not in it yet."""

    quota: Quota
    rate: Rate | None
    has_sums: bool
    all_sent_ns: int = 0
    day: int = 0
    stored: Usage = NOTHING
    fresh: Usage = NOTHING
    _paused_to_ns: int = 0  # the last of the connections that wait is read then

    @classmethod
    def of(cls, quota: Quota) -> "UsageAccount":
        sums = (quota.requests_per_day, quota.tokens_per_day, quota.cpu_s_per_day, quota.money_per_day)
        return cls(quota, Rate.of(quota), any(one is not None for one in sums))

    def refusal(self, now_ns: int) -> Refusal | None:
        if self.rate is not None:
            wait_ns = self.rate.wait_ns(self.all_sent_ns, now_ns)
            if wait_ns:
                return Refusal(
                    f"more than {self.quota.requests_per_s:g} requests a second",
                    wait_ns,
                    self._pause_ns(self.rate.interval_ns, now_ns),
                )
        if not self.has_sums:
            return None
        what = _spent(self.quota, self.stored.plus(self.fresh) if self.day == day_of(now_ns) else NOTHING)
        if not what:
            return None
        left_ns = NS_PER_DAY - now_ns % NS_PER_DAY
        return Refusal(f"{what} of today are used", left_ns, self._pause_ns(left_ns, now_ns))

    def _pause_ns(self, every_ns: int, now_ns: int) -> int:
        self._paused_to_ns = next_read_ns(self._paused_to_ns, every_ns, now_ns)
        return self._paused_to_ns - now_ns

    def take(self, now_ns: int) -> None:
        if self.rate is not None:
            self.all_sent_ns = self.rate.after(self.all_sent_ns, now_ns)

    def add(self, amount: Usage, day: int) -> None:
        if day != self.day:
            self.day, self.stored, self.fresh = day, NOTHING, NOTHING
        self.fresh = self.fresh.plus(amount)


def _spent(quota: Quota, used: Usage) -> str:
    if quota.requests_per_day is not None and used.requests >= quota.requests_per_day:
        return f"the {quota.requests_per_day:,} requests"
    if quota.tokens_per_day is not None and used.tokens >= quota.tokens_per_day:
        return f"the {quota.tokens_per_day:,} tokens"
    if quota.cpu_s_per_day is not None and used.cpu_us >= quota.cpu_s_per_day * MICROS:
        return f"the {quota.cpu_s_per_day:g} s of processor time"
    if quota.money_per_day is not None and used.money_nano >= quota.money_per_day * NANOS:
        return f"the {quota.money_per_day:g} of money"
    return ""


@dataclass(slots=True)
class UsageAccounts:
    """Every tenant's and key's account."""

    tenants: Mapping[str, UsageAccount]
    prices: UsagePrices
    keys: dict[str, UsageAccount] = field(default_factory=dict[str, UsageAccount])
    sizes: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    _amounts: dict[UsageKey, Usage] = field(default_factory=dict[UsageKey, Usage])
    _used_ns: dict[str, int] = field(default_factory=dict[str, int])
    _sent: UsageBatch | None = None
    _number: int = 0

    def account_of(self, key: str, quota: Quota) -> UsageAccount:
        """Of a key; its standing is kept when its quota changes."""
        found = self.keys.get(key)
        if found is None:
            found = self.keys[key] = UsageAccount.of(quota)
        elif found.quota != quota:
            fresh = UsageAccount.of(quota)
            fresh.all_sent_ns, fresh.day, fresh.stored, fresh.fresh = (
                found.all_sent_ns, found.day, found.stored, found.fresh,
            )  # fmt: skip
            found = self.keys[key] = fresh
        return found

    def admit(self, tenant: str, key: str, now_ns: int) -> Refusal | None:
        """Count a request, or say why it is over a quota."""
        refusal = self.refuse(tenant, key, now_ns)
        if refusal is not None:
            return refusal
        self.tenants[tenant].take(now_ns)
        self.keys[key].take(now_ns)
        self.use(tenant, key, now_ns, requests=1)
        self._used_ns[key] = now_ns
        return None

    def refuse(self, tenant: str, key: str, now_ns: int) -> Refusal | None:
        """Why a request is over a quota, which counts it as refused; None where it is not, which counts nothing."""
        refusal = self.tenants[tenant].refusal(now_ns) or self.keys[key].refusal(now_ns)
        if refusal is not None:
            self._add(UsageKey(tenant, key, day_of(now_ns)), Usage(refused=1))
        return refusal

    def use(
        self, tenant: str, key: str, now_ns: int, *, requests: int = 0, tokens: int = 0, cpu_us: int = 0
    ) -> None:
        """Count what an admitted request used."""
        day, money = day_of(now_ns), self.prices.money_nano(requests, tokens, cpu_us)
        amount = Usage(requests, 0, tokens, cpu_us, money)
        self._add(UsageKey(tenant, key, day), amount)
        self.tenants[tenant].add(amount, day)
        self.keys[key].add(amount, day)

    def _add(self, where: UsageKey, amount: Usage) -> None:
        before = self._amounts.get(where)
        self._amounts[where] = amount if before is None else before.plus(amount)

    def batch(self) -> UsageBatch | None:
        """What to store next: the batch that was not acknowledged, or all that came since; None for nothing."""
        if self._sent is None and (self._amounts or self.sizes):
            self._number += 1
            self._sent = UsageBatch(self._number, self._amounts, self._used_ns, dict(self.sizes))
            self._amounts, self._used_ns = {}, {}
            self.sizes.clear()
        return self._sent

    def acknowledge(self, totals: Mapping[UsageKey, Usage], day: int) -> None:
        """The batch is stored; `totals` are those of the store for this day, of all servers, with it."""
        self._sent = None
        unsent: dict[str, Usage] = {}
        unsent_of_tenants: dict[str, Usage] = {}
        for where, amount in self._amounts.items():
            if where.day == day:
                unsent[where.key] = amount
                _sum(unsent_of_tenants, where.tenant, amount)
        of_tenants: dict[str, Usage] = {}
        of_keys: dict[str, Usage] = {}
        for where, amount in totals.items():
            _sum(of_tenants, where.tenant, amount)
            _sum(of_keys, where.key, amount)
        for accounts, stored, fresh in (
            (self.tenants, of_tenants, unsent_of_tenants),
            (self.keys, of_keys, unsent),
        ):
            for name, account in accounts.items():
                account.day = day
                account.stored, account.fresh = stored.get(name, NOTHING), fresh.get(name, NOTHING)


def _sum(into: dict[str, Usage], name: str, amount: Usage) -> None:
    into[name] = into.get(name, NOTHING).plus(amount)


def retry_after_s(refusal: Refusal) -> int:
    """Whole seconds for the header Retry-After."""
    return -(-refusal.retry_ns // NS_PER_S)
