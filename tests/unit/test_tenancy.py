"""Keys, quotas and accounts of tenants: pure decisions."""

import os
from collections.abc import Mapping

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.tenancy.accounts import UsageAccount, UsageAccounts
from htfi.tenancy.config import parse_service
from htfi.tenancy.keys import StoredKey, is_same_key, make_key, parse_key
from htfi.tenancy.quotas import Quota
from htfi.tenancy.scopes import ApiScope, parse_scopes
from htfi.tenancy.usage import Usage, UsageKey, UsagePrices

DAY = 20_000
NOW = DAY * NS_PER_DAY + 3_600 * NS_PER_S


def accounts_of(quota: Quota, own: Quota | None = None, prices: UsagePrices | None = None) -> UsageAccounts:
    found = UsageAccounts({"acme": UsageAccount.of(quota)}, prices or UsagePrices())
    found.account_of("k1", own or Quota())
    found.account_of("k2", Quota())
    return found


def stored_of(text: str) -> StoredKey:
    parsed = parse_key(text)
    assert parsed is not None
    return StoredKey(parsed.id, "acme", "a", parsed.digest, frozenset({ApiScope.READ}), NOW)


def test_key_is_recognised_and_no_other_is() -> None:
    text = make_key(os.urandom)
    given = parse_key(text)
    changed = parse_key(text[:-1] + ("A" if text[-1] != "A" else "B"))
    assert given is not None
    assert changed is not None
    assert is_same_key(given, stored_of(text))
    assert not is_same_key(changed, stored_of(text))
    assert not is_same_key(given, None)


@pytest.mark.parametrize("text", ["", "htfi_", "htfi_a_b", "HTFI_" + "a" * 60, "x" * 10_000, "htfi_\x00"])
def test_text_of_another_form_is_no_key(text: str) -> None:
    assert parse_key(text) is None


def test_key_counts_until_it_expires_or_is_revoked() -> None:
    key = StoredKey("i", "acme", "a", b"", frozenset(), NOW, expires_ns=NOW + 10)
    gone = StoredKey("i", "acme", "a", b"", frozenset(), NOW, revoked_ns=NOW)
    assert [key.is_valid(NOW + 9), key.is_valid(NOW + 10), gone.is_valid(NOW)] == [True, False, False]


def test_rate_admits_a_burst_and_then_one_each_interval() -> None:
    accounts = accounts_of(Quota(requests_per_s=10.0, burst=3))
    at_ns = [0, 0, 0, 0, 99_999_999, 100_000_000, 100_000_000, 200_000_000]
    admitted = [accounts.admit("acme", "k1", NOW + at) is None for at in at_ns]
    assert admitted == [True, True, True, False, False, True, False, True]


def test_refused_request_says_when_the_next_is_admitted() -> None:
    accounts = accounts_of(Quota(requests_per_s=4.0, burst=1))
    assert accounts.admit("acme", "k1", NOW) is None
    refusal = accounts.admit("acme", "k2", NOW)
    assert refusal is not None
    assert refusal.retry_ns == 250_000_000
    assert accounts.admit("acme", "k2", NOW + refusal.retry_ns) is None


def test_quota_of_a_key_bounds_that_key_alone() -> None:
    accounts = accounts_of(Quota(), Quota(requests_per_day=2))
    assert [accounts.admit("acme", "k1", NOW) is None for _ in range(3)] == [True, True, False]
    assert accounts.admit("acme", "k2", NOW) is None
    assert accounts.admit("acme", "k1", NOW + NS_PER_DAY) is None


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (Quota(tokens_per_day=100), "the 100 tokens"),
        (Quota(cpu_s_per_day=2.0), "the 2 s of processor time"),
        (Quota(money_per_day=0.5), "the 0.5 of money"),
    ],
)
def test_sums_of_a_day_end_it_until_the_next(quota: Quota, words: str) -> None:
    accounts = accounts_of(quota, prices=UsagePrices(per_1000_tokens=5.0))
    assert accounts.admit("acme", "k1", NOW) is None
    accounts.use("acme", "k1", NOW, tokens=100, cpu_us=2_000_000)
    refusal = accounts.admit("acme", "k2", NOW)
    assert refusal is not None
    assert words in refusal.what
    assert refusal.retry_ns == 23 * 3_600 * NS_PER_S
    assert accounts.admit("acme", "k2", NOW + refusal.retry_ns) is None


def test_batches_hold_every_amount_once_whatever_is_sent_again() -> None:
    accounts = accounts_of(Quota(requests_per_day=5), prices=UsagePrices(per_request=0.25))
    stored: dict[UsageKey, Usage] = {}
    accounts.admit("acme", "k1", NOW)
    first = accounts.batch()
    accounts.admit("acme", "k1", NOW)
    again = accounts.batch()  # the outcome of the first is not known
    assert first is again
    assert first is not None
    stored.update(first.amounts)
    accounts.acknowledge(stored, DAY)
    second = accounts.batch()
    assert second is not None
    assert second.number == first.number + 1
    assert sum_of(first.amounts).plus(sum_of(second.amounts)) == Usage(2, 0, 0, 0, 500_000_000)


def test_what_other_servers_counted_counts_here_too() -> None:
    accounts = accounts_of(Quota(requests_per_day=5))
    accounts.admit("acme", "k1", NOW)
    accounts.batch()
    accounts.admit("acme", "k1", NOW)  # came after the batch
    accounts.acknowledge({UsageKey("acme", "k1", DAY): Usage(1), UsageKey("acme", "k9", DAY): Usage(2)}, DAY)
    admitted = [accounts.admit("acme", "k1", NOW) is None for _ in range(2)]
    assert admitted == [True, False]


def test_scopes_are_known_words() -> None:
    assert parse_scopes(["read", "ask"], "--scopes") == {ApiScope.READ, ApiScope.ASK}
    with pytest.raises(InvalidInput, match="'write' is no scope"):
        parse_scopes(["write"], "--scopes")
    with pytest.raises(InvalidInput, match="no scope is given"):
        parse_scopes([], "--scopes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "required field `tenants`"),
        ("[tenants]", "there is no tenant"),
        ("[tenants.'../b']\nrun = 'r'", "tenant '../b'"),
        ("[tenants.a]\nrun = 'r'\n[tenants.b]\nrun = 'r'", "the same run"),
        ("[tenants.a]\nrun = 'r'\nquotas = 1", "unknown field"),
        ("[tenants.a]\nrun = 'r'\nquota = {requests_per_s = 0}", "requests_per_s"),
        (
            "[tenants.a]\nrun='r'\n[[issuers]]\nissuer='i'\naudience='a'\nkeys='k'\nalgorithms=['HS256']",
            "must be asymmetric",
        ),
        (
            "[tenants.a]\nrun='r'\n[[issuers]]\nissuer='i'\naudience='a'\nkeys='k'\nalgorithms=['none']",
            "must be asymmetric",
        ),
        (
            "[tenants.a]\nrun='r'\n[[issuers]]\nissuer='i'\naudience='a'\nkeys='k'\ntenants={x='b'}",
            "there is no tenant 'b'",
        ),
        ("[tenants.a]\nrun='r'\n[[issuers]]\nissuer='i'\naudience=''\nkeys='k'", "name the audience"),
    ],
)
def test_faulty_service_file_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(text, "service.toml")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def sum_of(amounts: Mapping[UsageKey, Usage]) -> Usage:
    found = Usage()
    for one in amounts.values():
        found = found.plus(one)
    return found
