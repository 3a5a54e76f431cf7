"""Who may read which tenant's record, and who did: the rules decide, and the governance folder's log says so."""

import json
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from htfi.adapters.keys.ed25519 import create_key, verify_signature
from htfi.apps.cli.main import cli
from htfi.domain.errors import AccessDenied, HtfiError, LedgerUnavailable
from htfi.governance.authorisation import AccessAction
from htfi.governance.people import identify, parse_people
from htfi.governance.reading import RecordRead, readings_in
from htfi.wiring import reading
from htfi.wiring.authorisation import run_key
from htfi.wiring.governance_log import open_governance_log, read_governance_log
from htfi.wiring.ledger import open_ledger
from htfi.wiring.settings import encode_settings, load_settings, override

pytest.importorskip("cedarpy")
PEOPLE = [
    ("ann", "auditor", "alpha", ""),
    ("bo", "operator", "alpha", ""),
    ("cy", "auditor", "beta", ""),
    ("di", "approver", "alpha", "rates"),
    ("ed", "approver", "alpha", "fx"),
]


@pytest.fixture
def governance(tmp_path: Path) -> Path:
    folder = tmp_path / "G"
    lines: list[str] = []
    for name, role, tenant, desk in PEOPLE:
        key = create_key(tmp_path / f"{name}.key", f"example.com/{name}")
        lines.append(
            f'[[people]]\nname = "{name}"\nkey = "{key.verifier_key}"\nroles = ["{role}"]\ntenant = "{tenant}"\n'
            f"desks = {[desk] if desk else []}\n"
        )
    lines.append('[[nodes]]\nname = "edge1"\ncertificate = "edge1"\nroles = ["edge"]\n')
    open_governance_log(folder).close()
    (folder / "people.toml").write_text("\n".join(lines))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    open_ledger(folder, origin="htfi.run").close()
    settings = override(load_settings(environment={}), "record", tenant="alpha", desks=["rates"])
    (folder / "settings.json").write_bytes(encode_settings(settings))
    return folder


def htfi(*words: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


def read(run: Path, governance: Path, who: str, *more: object) -> Result:
    key = governance.parent / f"{who}.key"
    return htfi(
        "ledger", "show", run, *more, "--governance", governance, "--reader", key, "--why", "complaint 7"
    )


def logged(run: Path, governance: Path) -> list[RecordRead]:
    log = read_governance_log(governance)
    assert log is not None
    try:
        return readings_in(log.entries(), run_key(run))
    finally:
        log.close()


def test_a_reading_is_logged_with_the_note_of_who_made_it(run: Path, governance: Path) -> None:
    done = read(run, governance, "ann")
    assert done.exit_code == 0, done.output
    assert run_key(run).partition("+")[0] in done.output
    (entry,) = logged(run, governance)
    assert (entry.by, entry.tenant, entry.what, entry.why, entry.refusal) == (
        "ann", "alpha", "show", "complaint 7", "",
    )  # fmt: skip
    directory = parse_people((governance / "people.toml").read_text(), "people.toml")
    principal, statement = identify(entry.signed, directory, verify_signature)
    assert (principal.id, statement.action, statement.run, statement.why, statement.at_ns) == (
        "ann", AccessAction.READ_RECORD, run_key(run), "complaint 7", entry.at_ns,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("who", "why"),
    [("cy", "other-tenant"), ("bo", "no rule allows it"), ("ed", "no rule allows it")],
)
def test_what_is_denied_is_not_shown_and_logged_all_the_same(
    run: Path, governance: Path, who: str, why: str
) -> None:
    done = read(run, governance, who, 0)
    assert done.exit_code == 1
    assert isinstance(done.exception, AccessDenied)
    assert f"{who} may not read the record of tenant alpha" in str(done.exception)
    assert why in str(done.exception)
    assert done.output == ""
    (entry,) = logged(run, governance)
    assert (entry.by, entry.what) == (who, "show 0")
    assert why in entry.refusal


def test_a_key_of_nobody_is_denied_and_logged_by_its_own_name(
    run: Path, governance: Path, tmp_path: Path
) -> None:
    create_key(tmp_path / "eve.key", "example.com/eve")
    done = read(run, governance, "eve")
    assert done.exit_code == 1
    (entry,) = logged(run, governance)
    assert (entry.by, entry.signed) == ("example.com/eve", "")
    assert "no key in people.toml verifies it" in entry.refusal


def test_readers_lists_who_may_and_who_did(run: Path, governance: Path) -> None:
    assert read(run, governance, "di").exit_code == 0
    assert read(run, governance, "cy").exit_code == 1
    done = htfi("ledger", "readers", run, "--governance", governance, "--json")
    assert done.exit_code == 0, done.output
    body = json.loads(done.output)
    assert (body["tenant"], body["desks"]) == ("alpha", ["rates"])
    assert {one["name"]: one["is_allowed"] for one in body["may_read"]} == {
        "ann": True, "bo": False, "cy": False, "di": True, "ed": False, "edge1": False,
    }  # fmt: skip
    assert [(one["by"], bool(one["refusal"])) for one in body["did_read"]] == [("di", False), ("cy", True)]
    text = htfi("ledger", "readers", run, "--governance", governance).output
    assert "the record is of tenant alpha, desks rates" in text
    assert "denied: forbidden by other-tenant" in text


def test_no_log_of_readings_no_reading(run: Path, governance: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "open_governance_log", partial(open_governance_log, wait_s=0.05))
    writer = open_governance_log(governance)  # another process that does not let go
    try:
        done = read(run, governance, "ann")
    finally:
        writer.close()
    assert isinstance(done.exception, LedgerUnavailable)
    assert done.output == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--governance", "G"),
        ("--governance", "G", "--reader", "ann.key"),
        ("--governance", "G", "--reader", "ann.key", "--why", " "),
        ("--reader", "ann.key"),
    ],
)
def test_a_reading_needs_a_key_and_a_reason(run: Path, governance: Path, words: tuple[str, ...]) -> None:
    done = htfi("ledger", "show", run, *words)
    assert done.exit_code == 2
    assert "--reader" in done.output
    assert logged(run, governance) == []


@pytest.mark.parametrize("damage", ["gone", "of another run"])
def test_whose_record_it_is_must_be_known(run: Path, governance: Path, damage: str) -> None:
    if damage == "gone":
        (run / "settings.json").unlink()
    else:
        (run / "settings.json").write_bytes(b"{}x")
    done = read(run, governance, "ann")
    assert isinstance(done.exception, HtfiError)
    assert str(run / "settings.json") in str(done.exception)
    assert done.output == ""
    assert logged(run, governance) == []
