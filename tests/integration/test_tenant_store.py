"""The store of keys and usage: one contract on SQLite and PostgreSQL, and a service whose database restarts."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from htfi.adapters.sql.migrations import STEPS
from htfi.adapters.sql.tenant_store import SqlTenantStore, open_tenant_store
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.tenancy.accounts import UsageBatch
from htfi.tenancy.config import SERVICE_FILE
from htfi.tenancy.keys import StoredKey
from htfi.tenancy.quotas import Quota
from htfi.tenancy.scopes import ApiScope
from htfi.tenancy.usage import Usage, UsageKey, day_of
from htfi.wiring.service.tenants import open_store, read_service
from postgres_server import PostgresServer
from tenant_service import bearer, issue, record_run, serve_tenants, until

DAY = 20_000
KEY = StoredKey(
    "k" * 16, "acme", "Ann’s", b"\x01" * 32, frozenset({ApiScope.READ, ApiScope.ASK}), 5,
    expires_ns=2**62, person="ann", quota=Quota(requests_per_s=2.5, tokens_per_day=7),
)  # fmt: skip


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlTenantStore]:
    url = ""
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.url
        server.clear()
    with closing(open_tenant_store(url, tmp_path)) as opened:
        yield opened


def batch(number: int, *, requests: int = 1, size: int = 0) -> UsageBatch:
    amounts = {UsageKey("acme", KEY.id, DAY): Usage(requests, 2, 3, 4, 5)}
    return UsageBatch(number, amounts, {KEY.id: 77}, {("acme", DAY): size} if size else {})


def test_key_is_kept_as_it_was_given(store: SqlTenantStore) -> None:
    before = store.keys_version()
    store.add_key(KEY)
    assert store.keys() == [KEY]
    assert store.keys("beta") == []
    assert store.keys_version() > before


def test_key_is_revoked_once_and_by_its_tenant_alone(store: SqlTenantStore) -> None:
    store.add_key(KEY)
    assert not store.revoke_key("beta", KEY.id, 9)
    assert store.revoke_key("acme", KEY.id, 9)
    assert not store.revoke_key("acme", KEY.id, 10)
    assert store.keys()[0].revoked_ns == 9


def test_usage_of_servers_adds_up_and_a_batch_that_is_sent_again_does_not(store: SqlTenantStore) -> None:
    store.add_key(KEY)
    for server, one in (("a", batch(1)), ("a", batch(1)), ("b", batch(1)), ("a", batch(2)), ("a", batch(1))):
        store.add_usage(server, one)
    assert store.usage(DAY, DAY) == {UsageKey("acme", KEY.id, DAY): Usage(3, 6, 9, 12, 15)}
    assert store.usage(DAY + 1, DAY + 9) == {}
    assert store.usage(DAY, DAY, "beta") == {}
    assert store.keys()[0].used_ns == 77


def test_size_of_a_ledger_does_not_shrink(store: SqlTenantStore) -> None:
    for number, size in enumerate((5, 9, 7), 1):
        store.add_usage("a", batch(number, size=size))
    assert store.ledger_sizes() == {("acme", DAY): 9}
    assert store.ledger_sizes("beta") == {}


def test_store_is_opened_again_with_what_it_held(tmp_path: Path) -> None:
    with closing(open_tenant_store("", tmp_path)) as first:
        first.add_key(KEY)
    with closing(open_tenant_store("", tmp_path)) as second:
        assert second.keys() == [KEY]


def test_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    open_tenant_store("", tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "service.db")) as raw, raw:
        raw.execute("INSERT INTO schema_steps (num) VALUES (?)", (len(STEPS) + 1,))
    with pytest.raises(InvalidInput, match="newer version"):
        open_tenant_store("", tmp_path)


@pytest.mark.parametrize("text", ["mysql://h/d", "nothing", "postgresql+psycopg://h/d"])
def test_unknown_database_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match="postgresql://USER@HOST/NAME"):
        open_tenant_store(text, tmp_path)


def test_password_is_not_said_where_the_database_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(DependencyUnavailable) as failed:
        open_tenant_store("postgresql://u:secret@127.0.0.1:1/d", tmp_path)
    assert "secret" not in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.slow
def test_requests_go_on_while_the_database_restarts_and_each_is_counted_once(tmp_path: Path) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    record_run(folder / "acme", ("ACME",))
    with PostgresServer() as postgres:
        text = f'database = "{postgres.url}"\n[tenants.acme]\nrun = "acme"\nquota = {{}}\n'
        (folder / SERVICE_FILE).write_text(text, encoding="utf-8")
        key, key_id = issue(folder, "acme")
        today = day_of(time.time_ns())
        num = 0
        with serve_tenants(folder) as service:
            for is_killed in (False, True, False):
                if is_killed:
                    postgres.kill()
                end = time.monotonic() + 1.1
                while time.monotonic() < end:
                    assert service.client.get("/v1/series", headers=bearer(key)).status_code == 200
                    num += 1
                if is_killed:
                    postgres.start()
            until(lambda: usage_of(postgres.url, tmp_path, key_id, today) == num)
            assert service.end() == 0
        assert usage_of(postgres.url, tmp_path, key_id, today) == num


def usage_of(url: str, folder: Path, key: str, day: int) -> int:
    with closing(open_tenant_store(url, folder)) as store:
        return store.usage(day, day)[UsageKey("acme", key, day)].requests


def test_password_of_the_database_is_read_from_a_file_and_shown_in_no_message(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.add_user("keyed", "s3cret-word")
    (tmp_path / "service.toml").write_text(f'database = "{url}"\n[tenants.acme]\nrun = "acme"\n')
    service = read_service(tmp_path)
    secret = tmp_path / "password"
    monkeypatch.setenv("HTFI_DATABASE_PASSWORD_FILE", str(secret))
    with pytest.raises(InvalidInput, match="cannot be read"):
        open_store(service)
    secret.write_text("wrong-word\n")
    with pytest.raises(DependencyUnavailable, match="password authentication failed") as refused:
        open_store(service)
    assert "wrong-word" not in str(refused.value)
    secret.write_text("s3cret-word\n")
    with closing(open_store(service)) as store:
        assert store.keys() == []
