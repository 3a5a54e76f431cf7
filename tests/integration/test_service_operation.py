"""`htfi service migrate` and `retention`, done to a service that answers, and the move to PostgreSQL."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from htfi.adapters.sql.migrations import STEPS
from htfi.adapters.sql.tenant_store import open_tenant_store
from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.tenancy.accounts import UsageBatch
from htfi.tenancy.config import SERVICE_FILE
from htfi.tenancy.usage import Usage, UsageKey
from postgres_server import PostgresServer
from service_load import ServiceLoad
from tenant_service import bearer, issue, record_run, serve_tenants

SERVICE = """
[tenants.acme]
run = "acme"
quota = {requests_per_s = 10000, burst = 20000}
[retention]
usage = 100
classes = {decision = 36500, working-data = 1}
"""
USED = {UsageKey("acme", "old", day): Usage(requests=2, tokens=day) for day in (1, 2, 20_000, 30_000)}


def service(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["service", *map(str, words)])


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A service's folder with usage of long ago and of the far future."""
    found = tmp_path / "service"
    found.mkdir()
    (found / SERVICE_FILE).write_text(SERVICE, encoding="utf-8")
    record_run(found / "acme", ("ACME",), num_days=30)
    with closing(open_tenant_store("", found)) as store:
        store.add_usage("server-1", UsageBatch(1, USED, {}, {}))
    return found


def rows(folder: Path, question: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "service.db")) as database:
        return database.execute(question).fetchall()


def as_version_1(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "service.db")) as database, database:
        database.execute("DROP TABLE deletions")
        database.execute("DELETE FROM schema_steps WHERE num > 1")


def test_migration_is_said_first_and_run_once(folder: Path) -> None:
    as_version_1(folder)
    said = [service("migrate", folder, *words) for words in (("--check",), (), ("--check",), ())]
    assert [one.exit_code for one in said] == [1, 0, 0, 0]
    assert f"{len(STEPS) - 1} missing" in said[0].stdout
    assert "1 step run" in said[1].stdout
    assert "0 steps run" in said[3].stdout
    assert rows(folder, "SELECT num FROM schema_steps ORDER BY num") == [
        (one + 1,) for one in range(len(STEPS))
    ]
    assert rows(folder, "SELECT sum(requests) FROM usage") == [(8,)]


@pytest.mark.parametrize("words", [("migrate",), ("migrate", "--check"), ("retention",)])
def test_database_of_a_newer_version_is_left_alone(folder: Path, words: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(folder / "service.db")) as database, database:
        database.execute("INSERT INTO schema_steps VALUES (99)")
    said = service(words[0], folder, *words[1:])
    assert isinstance(said.exception, InvalidInput)
    assert "newer version" in str(said.exception)


def test_retention_of_a_service_that_answers_deletes_what_is_listed_and_records_it(folder: Path) -> None:
    key, _ = issue(folder, "acme")
    as_version_1(folder)
    with serve_tenants(folder) as served, ServiceLoad(served, key, posts=False) as load:
        load.wait()
        plan = service("retention", folder)
        done = service("retention", folder, "--apply", "--by", "Ann Lee", "--why", "term is over")
        again = service("retention", folder)
        load.wait()
        unnamed = service("retention", folder, "--apply")
    assert load.failed == []
    assert "due: 3 rows of usage" in plan.stdout
    assert "deleted: 3 rows of usage" in done.stdout, done.exception
    assert "due: 0 rows of usage" in again.stdout
    assert "--by: a name is required" in str(unnamed.exception)
    assert rows(folder, "SELECT tenant, what, num_rows, ordered_by, why FROM deletions") == [
        ("acme", "usage", 3, "Ann Lee", "term is over")
    ]
    assert rows(folder, "SELECT day FROM usage WHERE key_id = 'old'") == [(30_000,)]
    assert not (folder / "acme/state.bin").exists()
    verified = CliRunner().invoke(cli, ["ledger", "verify", str(folder / "acme")])
    assert verified.exit_code == 0, verified.exception


def test_unknown_class_of_retention_is_named_with_its_file(folder: Path) -> None:
    text = (folder / SERVICE_FILE).read_text(encoding="utf-8").replace("working-data", "nothing")
    (folder / SERVICE_FILE).write_text(text, encoding="utf-8")
    said = service("retention", folder)
    assert "service.toml: retention.classes: there is no retention class 'nothing'" in str(said.exception)


@pytest.mark.slow
def test_move_to_postgresql_copies_every_row_once_and_the_key_goes_on(
    folder: Path, postgres: PostgresServer, tmp_path: Path
) -> None:
    postgres.clear()
    key, _ = issue(folder, "acme")
    with serve_tenants(folder) as served:
        with ServiceLoad(served, key, posts=False) as load:
            load.wait()
            first = service("migrate", folder, "--to", postgres.url)
            load.wait()
        served.end()
    num_before = rows(folder, "SELECT sum(requests), sum(tokens) FROM usage")[0]
    second, third = (service("migrate", folder, "--to", postgres.url) for _ in range(2))
    assert [one.exit_code for one in (first, second, third)] == [0, 0, 0], first.exception
    assert "copied" in second.stdout
    assert "already" in third.stdout
    (folder / SERVICE_FILE).write_text(f'database = "{postgres.url}"\n{SERVICE}', encoding="utf-8")
    with closing(open_tenant_store(postgres.url, folder)) as store:
        used = store.usage(0, 100_000).values()
    assert (sum(one.requests for one in used), sum(one.tokens for one in used)) == num_before
    (folder / "service.db").unlink()
    with serve_tenants(folder) as served:
        assert served.client.get("/v1/forecasts", headers=bearer(key)).status_code == 200
        assert service("backup", folder, tmp_path / "backup").exit_code == 0
    with closing(open_tenant_store(postgres.url, folder)) as store:
        store.add_usage("server-2", UsageBatch(1, USED, {}, {}))
    refused = service("restore", tmp_path / "backup", tmp_path / "trial")
    assert "--database sqlite" in str(refused.exception)
    in_use = service("restore", tmp_path / "backup", tmp_path / "trial", "--database", postgres.url)
    assert "is in use by another service" in str(in_use.exception)
    said = service("restore", tmp_path / "backup", tmp_path / "trial", "--database", "sqlite")
    assert said.exit_code == 0, said.exception
    manifest = json.loads((tmp_path / "backup/manifest.json").read_bytes())
    assert rows(tmp_path / "trial", "SELECT count(*) FROM usage") == [(manifest["num_rows"]["usage"],)]


def test_move_to_a_database_that_another_service_uses_is_refused(
    folder: Path, postgres: PostgresServer
) -> None:
    postgres.clear()
    with closing(open_tenant_store(postgres.url, folder)) as other:
        other.add_usage("server-of-another", UsageBatch(1, USED, {}, {}))
    said = service("migrate", folder, "--to", postgres.url)
    assert "is in use by another service" in str(said.exception)
    with closing(open_tenant_store(postgres.url, folder)) as other:
        assert other.usage(0, 100_000) == USED
