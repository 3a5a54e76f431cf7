"""A tenant's run with a governance folder: who may read its record by Cedar's rules may read it over HTTP."""

from pathlib import Path

import pytest

from htfi.adapters.keys.ed25519 import create_key, load_key
from htfi.tenancy.config import SERVICE_FILE
from htfi.wiring.governance_log import open_governance_log
from htfi.wiring.ledger import open_ledger
from htfi.wiring.service.reading_rights import ReadingRights
from htfi.wiring.service.run_process import RunPlace
from htfi.wiring.settings import encode_settings, load_settings, override
from tenant_service import bearer, issue, serve_tenants, until

PEOPLE = [("ann", "auditor", "alpha"), ("bo", "operator", "alpha"), ("cy", "auditor", "beta")]


def write_people(governance: Path, people: list[tuple[str, str, str]]) -> None:
    lines: list[str] = []
    for name, role, tenant in people:
        path = governance / f"{name}.key"
        key = load_key(path) if path.exists() else create_key(path, f"example.com/{name}")
        lines.append(
            f'[[people]]\nname = "{name}"\nkey = "{key.verifier_key}"\n'
            f'roles = ["{role}"]\ntenant = "{tenant}"\n'
        )
    (governance / "people.toml").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> RunPlace:
    governance, run = tmp_path / "G", tmp_path / "run"
    open_governance_log(governance).close()
    write_people(governance, PEOPLE)
    open_ledger(run, origin="htfi.run").close()
    settings = override(load_settings(environment={}), "record", tenant="alpha", desks=["rates"])
    (run / "settings.json").write_bytes(encode_settings(settings))
    return RunPlace(run, governance)


@pytest.mark.parametrize(
    ("person", "words"),
    [
        ("ann", ""),
        ("bo", "no rule allows"),
        ("cy", "other-tenant"),
        ("eve", "has no person"),
        ("", "stands for no person"),
    ],
)
def test_rules_decide_who_reads(place: RunPlace, person: str, words: str) -> None:
    refusal = ReadingRights(place).refusal(person)
    assert bool(refusal) == bool(words)
    assert words in refusal


def test_run_without_people_is_read_by_whoever_has_a_key(place: RunPlace) -> None:
    assert place.governance is not None
    (place.governance / "people.toml").unlink()
    assert ReadingRights(place).refusal("") == ""
    assert ReadingRights(RunPlace(place.folder)).refusal("") == ""


def test_rules_that_cannot_be_read_let_nobody_in(place: RunPlace) -> None:
    assert place.governance is not None
    (place.governance / "people.toml").write_text("[[people]]\nname = 3", encoding="utf-8")
    assert "is no directory of people" in ReadingRights(place).refusal("ann")


@pytest.mark.slow
def test_right_that_is_withdrawn_ends_over_http(place: RunPlace, tmp_path: Path) -> None:
    assert place.governance is not None
    text = '[tenants.acme]\nrun = "run"\ngovernance = "G"\n'
    (tmp_path / SERVICE_FILE).write_text(text, encoding="utf-8")
    ann, _ = issue(tmp_path, "acme", "ann's", "read,ask", "--person", "ann")
    bo, _ = issue(tmp_path, "acme", "bo's", "read,ask", "--person", "bo")
    with serve_tenants(tmp_path) as service:

        def status(key: str, path: str = "/v1/series") -> int:
            return service.client.get(path, headers=bearer(key)).status_code

        assert (status(ann), status(bo), status(ann, "/v1/session")) == (200, 403, 200)
        answer = service.client.get("/v1/series", headers=bearer(bo))
        assert "has not the scope 'read': " in answer.json()["detail"]
        write_people(place.governance, [("ann", "operator", "alpha"), *PEOPLE[1:]])
        until(lambda: status(ann) == 403, 5.0)
