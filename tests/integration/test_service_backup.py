"""`htfi service backup` and `restore`, done to a service that is read, streamed and posted to while its run goes on."""

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

import forked
from htfi.apps.cli.main import cli
from htfi.domain.errors import HtfiError
from htfi.tenancy.config import SERVICE_FILE
from htfi.wiring.service.backup.manifest import MANIFEST
from live_run import LiveRun
from service_load import ServiceLoad
from tenant_service import bearer, issue, serve_tenants

SERVICE = """
[tenants.acme]
run = "acme"
quota = {requests_per_s = 10000, burst = 20000}
"""


class Backups(NamedTuple):
    """A service that was copied twice under load, and what its clients saw meanwhile."""

    folder: Path
    without_keys: Path
    with_keys: Path
    key: str
    said: tuple[Result, Result]
    num_answers: dict[str, int]
    failed: list[str]


def service(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["service", *map(str, words)])


@pytest.fixture(scope="module")
def backups(tmp_path_factory: pytest.TempPathFactory) -> Backups:
    place = tmp_path_factory.mktemp("backups")
    folder = place / "service"
    folder.mkdir()
    (folder / SERVICE_FILE).write_text(SERVICE, encoding="utf-8")
    key, _ = issue(folder, "acme")
    with LiveRun(folder / "acme") as run, serve_tenants(folder) as served:
        with ServiceLoad(served, key) as load:
            load.wait()
            first = service("backup", folder, place / "without")
            run.advance(20)
            second = service("backup", folder, place / "with", "--with-keys")
            load.wait()
        run.advance(5)
    return Backups(
        folder, place / "without", place / "with", key, (first, second), load.num_answers, load.failed
    )


def verify(run: Path) -> Result:
    return CliRunner().invoke(cli, ["ledger", "verify", str(run)])


def journal(run: Path) -> list[bytes]:
    return (run / "decisions.jsonl").read_bytes().splitlines()


def test_backup_under_load_verifies_and_no_client_is_refused(backups: Backups) -> None:
    assert [one.exit_code for one in backups.said] == [0, 0], [one.exception for one in backups.said]
    assert backups.failed == []
    assert min(backups.num_answers.values()) > 0
    assert backups.num_answers["stream"] <= len(journal(backups.folder / "acme"))  # each decision once
    for one in (backups.without_keys, backups.with_keys):
        manifest = json.loads((one / MANIFEST).read_bytes())
        assert manifest["num_rows"]["keys"] == 1
        assert manifest["remarks"] == []
        rights = {stat.S_IMODE(path.stat().st_mode) for path in one.rglob("*") if path.is_file()}
        assert rights == {0o600}


def test_private_keys_are_copied_only_where_asked_for(backups: Backups) -> None:
    assert not list(backups.without_keys.rglob("*.key"))
    assert "private keys are left out: acme/signing.key" in backups.said[0].stderr
    assert (backups.with_keys / "service/acme/signing.key").is_file()
    assert "holds private keys" in backups.said[1].stderr


def test_restored_service_knows_old_keys_and_streams_from_an_index(backups: Backups, tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    said = service("restore", backups.without_keys, restored)
    assert said.exit_code == 0, said.exception
    assert "keys are missing: acme/signing.key: runs can be read" in said.stderr
    assert (verify(restored / "acme").exit_code, stat.S_IMODE(restored.stat().st_mode)) == (0, 0o700)
    lines = journal(restored / "acme")
    assert lines == journal(backups.folder / "acme")[: len(lines)]
    with serve_tenants(restored) as served:
        events = served.events(len(lines) - 3, 3, bearer(backups.key))
        assert served.client.get("/v1/forecasts").status_code == 401
    assert [json.loads(text)["leaf_hash"] for _, text in events] == [
        json.loads(line)["leaf_hash"] for line in lines[-3:]
    ]


def test_restored_run_goes_on_with_its_key_and_is_refused_without(backups: Backups, tmp_path: Path) -> None:
    folders = [tmp_path / "with", tmp_path / "without"]
    for one, backup in zip(folders, (backups.with_keys, backups.without_keys), strict=True):
        assert service("restore", backup, one).exit_code == 0
    num_before = len(journal(folders[0] / "acme"))
    with LiveRun(folders[0] / "acme", num_days=90) as run:
        run.advance(5)
        run.end()
    assert len(journal(folders[0] / "acme")) > num_before
    assert verify(folders[0] / "acme").exit_code == 0
    command = [*forked.HTFI, "run", "--map", str(tmp_path / "with/live.toml")]
    refused = forked.run(
        [*command, "--out", str(folders[1] / "acme")], input="", capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert "signing.key is missing" in refused.stderr


def changed(backup: Path, change: Callable[[Path], object], to: Path) -> Path:
    copy = to / "changed"
    shutil.copytree(backup, copy)
    change(copy)
    return copy


def _manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def write(copy: Path) -> None:
        stated = json.loads((copy / MANIFEST).read_bytes())
        change(stated)
        (copy / MANIFEST).write_text(json.dumps(stated))

    return write


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _link(copy: Path) -> None:
    (copy / "service/service.toml").unlink()
    (copy / "service/service.toml").symlink_to("/etc/hostname")


def _outside(stated: dict[str, Any]) -> None:
    stated["files"].append({"path": "service/../../escaped", "num_bytes": 0, "sha256": ""})


ALTERED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bit of a ledger": (lambda copy: _flip(copy / "service/acme/ledger.db"), "was altered"),
    "a row of the database": (lambda copy: _flip(copy / "database.jsonl"), "was altered"),
    "a file that is missing": (lambda copy: (copy / "service/acme/settings.json").unlink(), "is missing"),
    "a file that was added": (lambda copy: (copy / "service/more").touch(), "is not in the manifest"),
    "a link": (_link, "is neither a file nor a folder"),
    "a path out of the folder": (_manifest(_outside), "is no name of a file in a backup"),
    "a newer format": (_manifest(lambda stated: stated.update(format=99)), "by a newer version"),
    "no manifest": (lambda copy: (copy / MANIFEST).unlink(), "is no backup of a service"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_backup_is_refused_and_leaves_nothing(backups: Backups, tmp_path: Path, name: str) -> None:
    change, words = ALTERED[name]
    said = service("restore", changed(backups.without_keys, change, tmp_path), tmp_path / "restored")
    assert said.exit_code != 0
    assert words in str(said.exception)
    assert isinstance(said.exception, HtfiError)
    assert [one.name for one in tmp_path.iterdir()] == ["changed"]


def test_folder_that_holds_something_is_refused(backups: Backups, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    for words in (("restore", backups.without_keys, tmp_path), ("backup", backups.folder, tmp_path)):
        said = service(*words)
        assert said.exit_code != 0
        assert "is there and not empty" in str(said.exception)
    inside = service("backup", backups.folder, backups.folder / "backup")
    assert inside.exit_code != 0
    assert "lies in the service's folder" in str(inside.exception)
