"""SIGKILL at any step of a backup, a restore, a migration or a deletion, and a full disk: the command is repeated."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from htfi.adapters.sql import tenant_store
from htfi.adapters.sql.tenant_store import SqlTenantStore, open_tenant_store
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.tenancy.accounts import UsageBatch
from htfi.tenancy.config import SERVICE_FILE
from htfi.tenancy.usage import Usage, UsageKey
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.service import retention
from htfi.wiring.service.backup import draft_folder, making, restoring
from htfi.wiring.service.backup.making import make_backup
from htfi.wiring.service.backup.restoring import restore_backup
from htfi.wiring.service.migration import migrate_service
from htfi.wiring.service.retention import apply_service_retention
from htfi.wiring.service.tenants import read_service
from tenant_service import record_run

NOW_NS = 30_000 * NS_PER_DAY
SERVICE = '[tenants.acme]\nrun = "acme"\n[retention]\nusage = 100\nclasses = {working-data = 1}\n'
# Where the process is killed: before the n-th call of a function.
BACKUP_STEPS = [(making, "_copy", 1), (making, "_copy", 4), (making, "_completed", 1), (making, "_write_new", 2),
                (draft_folder, "sync_folder", 1)]  # fmt: skip
RESTORE_STEPS = [(restoring, "_write", 2), (restoring, "_check_logs", 1), (restoring, "_load_rows", 1),
                 (draft_folder, "sync_folder", 1)]  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A service's folder with a run that has ended and usage of long ago."""
    found = tmp_path_factory.mktemp("killed") / "service"
    found.mkdir()
    (found / SERVICE_FILE).write_text(SERVICE, encoding="utf-8")
    record_run(found / "acme", ("ACME",), num_days=25)
    with closing(open_tenant_store("", found)) as store:
        store.add_usage(
            "server", UsageBatch(1, {UsageKey("acme", "k", day): Usage(1) for day in (5, 29_990)}, {}, {})
        )
    return found


@pytest.fixture
def copied(service: Path, tmp_path: Path) -> Path:
    return shutil.copytree(service, tmp_path / "service")


def killed(act: Callable[[], object], module: object, name: str, number: int) -> None:
    """Do it in a process that is killed before the call of that number."""
    child = os.fork()
    if not child:
        real, num_calls = getattr(module, name), 0

        def counted(*words: object, **named: object) -> object:
            nonlocal num_calls
            num_calls += 1
            if num_calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*words, **named)

        setattr(module, name, counted)
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the process was not killed: the step is not there"


@pytest.mark.parametrize(("module", "name", "number"), BACKUP_STEPS)
def test_killed_backup_leaves_no_folder_and_is_repeated(
    service: Path, tmp_path: Path, module: object, name: str, number: int
) -> None:
    place = tmp_path / "backup"
    killed(lambda: make_backup(service, place), module, name, number)
    assert not place.exists()
    with pytest.raises(InvalidInput, match="no backup"):
        restore_backup(place, tmp_path / "restored")
    assert make_backup(service, place).num_rows["usage"] == 2
    assert [one.name for one in tmp_path.iterdir()] == ["backup"]


@pytest.mark.parametrize(("module", "name", "number"), RESTORE_STEPS)
def test_killed_restore_leaves_no_folder_and_is_repeated(
    service: Path, tmp_path: Path, module: object, name: str, number: int
) -> None:
    backup, place = tmp_path / "backup", tmp_path / "restored"
    make_backup(service, backup, with_keys=True)
    killed(lambda: restore_backup(backup, place), module, name, number)
    assert not place.exists()
    restore_backup(backup, place)
    with closing(open_tenant_store("", place)) as store:
        assert len(store.usage(0, 100_000)) == 2
    assert sorted(one.name for one in tmp_path.iterdir()) == ["backup", "restored"]


@pytest.mark.parametrize("number", [1, 2])
def test_killed_migration_has_run_whole_steps_and_goes_on(copied: Path, number: int) -> None:
    (copied / "service.db").unlink()
    killed(lambda: migrate_service(read_service(copied)), tenant_store, "run_next_step", number)
    with closing(sqlite3.connect(copied / "service.db")) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert ("keys" in tables, "deletions" in tables) == (number > 1, False)
    migrate_service(read_service(copied))
    with closing(open_tenant_store("", copied)) as store:
        assert store.usage(0, 100_000) == {}


@pytest.mark.parametrize(
    ("module", "name"),
    [(SqlTenantStore, "delete_usage"), (retention, "_old_answers"), (retention, "apply_retention")],
)
def test_killed_retention_is_repeated_and_recorded_once(copied: Path, module: object, name: str) -> None:
    def apply() -> list[object]:
        return list(apply_service_retention(read_service(copied), NOW_NS, "Ann", "over"))

    killed(apply, module, name, 1)
    apply()
    assert len(apply()) == 1
    with closing(sqlite3.connect(copied / "service.db")) as database:
        assert database.execute("SELECT num_rows FROM deletions").fetchall() == [(1,)]
        assert database.execute("SELECT day FROM usage").fetchall() == [(29_990,)]
    with closing(open_ledger_readonly(copied / "acme")) as log:
        log.verify()


@pytest.mark.parametrize("act", ["backup", "restore"])
def test_full_disk_is_one_line_and_leaves_nothing(service: Path, tmp_path: Path, act: str) -> None:
    backup, place = tmp_path / "backup", tmp_path / "place"
    make_backup(service, backup)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, before[1]))
    try:
        with pytest.raises(DependencyUnavailable) as failed:
            make_backup(service, place) if act == "backup" else restore_backup(backup, place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert "\n" not in str(failed.value)
    assert [one.name for one in tmp_path.iterdir()] == ["backup"]


def test_second_backup_to_a_place_waits_for_nothing(service: Path, tmp_path: Path) -> None:
    place = tmp_path / "backup"
    with draft_folder.draft_folder(place) as draft:
        with pytest.raises(InvalidInput, match="is being written by another command"):
            make_backup(service, place)
        assert draft.is_dir()
    assert place.is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_backup_killed_at_any_instant_leaves_all_or_nothing(service: Path, tmp_path: Path, seed: int) -> None:
    place = tmp_path / "backup"
    child = os.fork()
    if not child:
        make_backup(service, place)
        os._exit(0)
    time.sleep(random.Random(seed).uniform(0.0, 0.2))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not place.exists():
        make_backup(service, place)
    assert restore_backup(place, tmp_path / "restored").num_rows["usage"] == 2
