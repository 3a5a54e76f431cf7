"""Connections under a quota that is spent are read again one after another, as often as it lets a request through."""

from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.tenancy.accounts import Refusal, UsageAccount, UsageAccounts
from htfi.tenancy.quotas import Quota
from htfi.tenancy.refusal_pace import MAX_PAUSE_NS, MIN_PAUSE_NS, next_read_ns
from htfi.tenancy.usage import UsagePrices

EVERY_NS = 10 * NS_PER_MS
NOW_NS = 1_700_000_000 * NS_PER_S


def test_each_is_read_after_the_one_before_it() -> None:
    assert next_read_ns(0, EVERY_NS, NOW_NS) == NOW_NS + EVERY_NS
    assert next_read_ns(NOW_NS + EVERY_NS, EVERY_NS, NOW_NS) == NOW_NS + 2 * EVERY_NS
    assert next_read_ns(NOW_NS - EVERY_NS, EVERY_NS, NOW_NS) == NOW_NS + EVERY_NS


def test_none_waits_longer_than_a_second_and_each_waits_a_little() -> None:
    assert next_read_ns(NOW_NS + MAX_PAUSE_NS, EVERY_NS, NOW_NS) == NOW_NS + MAX_PAUSE_NS
    assert next_read_ns(0, 3_600 * NS_PER_S, NOW_NS) == NOW_NS + MAX_PAUSE_NS
    assert next_read_ns(0, 1, NOW_NS) == NOW_NS + MIN_PAUSE_NS


def accounts(of_tenant: Quota, of_key: Quota) -> UsageAccounts:
    made = UsageAccounts({"acme": UsageAccount.of(of_tenant)}, UsagePrices())
    made.account_of("key", of_key)
    made.account_of("other", Quota())
    return made


def refused(found: Refusal | None) -> Refusal:
    assert found is not None
    return found


def test_a_slow_key_holds_up_no_connection_of_another_key() -> None:
    made = accounts(Quota(requests_per_s=100, burst=1), Quota(requests_per_day=1))
    made.use("acme", "key", NOW_NS, requests=1)
    assert refused(made.admit("acme", "key", NOW_NS)).pause_ns == MAX_PAUSE_NS
    assert made.admit("acme", "other", NOW_NS) is None
    assert refused(made.admit("acme", "other", NOW_NS)).pause_ns == EVERY_NS


def test_of_a_flood_little_more_is_read_than_the_quota_lets_through() -> None:
    """80 connections that ask on at once: each request that is admitted is followed by one that is refused."""
    made = accounts(Quota(requests_per_s=100, burst=1), Quota())
    due_ns, end_ns, num_read, num_admitted = [NOW_NS] * 80, NOW_NS + 10 * NS_PER_S, 0, 0
    while (now_ns := min(due_ns)) < end_ns:
        refusal = made.admit("acme", "key", now_ns)
        num_read, num_admitted = num_read + 1, num_admitted + (refusal is None)
        due_ns[due_ns.index(now_ns)] = now_ns + (NS_PER_MS if refusal is None else refusal.pause_ns)
    assert 900 < num_admitted <= 1_001
    assert num_read <= 2 * num_admitted + len(due_ns)
