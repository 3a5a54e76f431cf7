"""A run's tenant: its own people act on it, those of another tenant do not, by commands and before the run alike."""

import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from test_approvals_command import DECISION, asked, folder_with

from htfi.adapters.keys.ed25519 import create_key
from htfi.adapters.stores.control_folder import CONTROL_FOLDER, read_requests
from htfi.apps.cli.main import cli
from htfi.domain.errors import AccessDenied
from htfi.governance.checkpoints.answers import judge_answer
from htfi.governance.control.reenabling import why_not_reenabled
from htfi.governance.control.requests import ReenableRequest
from htfi.wiring.approvals import read_approvals, waiting_answers
from htfi.wiring.authorisation import Requester, answer_rights
from htfi.wiring.governance_log import open_governance_log
from htfi.wiring.settings import encode_settings, load_settings, override
from htfi.wiring.suspicion import request_reset

pytest.importorskip("cedarpy")


@pytest.fixture
def governance(tmp_path: Path) -> Path:
    folder = tmp_path / "G"
    lines: list[str] = []
    for name, tenant in (("ann", "alpha"), ("bo", "beta"), ("cy", "")):
        key = create_key(tmp_path / f"{name}.key", f"example.com/{name}")
        lines.append(
            f'[[people]]\nname = "{name}"\nkey = "{key.verifier_key}"\nroles = ["chief_risk_officer"]\n'
            f'tenant = "{tenant}"\n'
        )
    open_governance_log(folder).close()
    (folder / "people.toml").write_text("\n".join(lines))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = folder_with(asked(), tmp_path / "run")
    settings = override(load_settings(environment={}), "record", tenant="alpha")
    (folder / "settings.json").write_bytes(encode_settings(settings))
    return folder


def htfi(governance: Path, who: str, *words: object) -> Result:
    signed = ("--governance", governance, "--key", governance.parent / f"{who}.key", "--why", "looked at")
    return CliRunner().invoke(cli, list(map(str, (*words, *signed))))


def approve(run: Path, governance: Path, who: str) -> Result:
    seen = read_approvals(run)[DECISION].state.question.digest
    return htfi(governance, who, "approvals", "approve", run, 1, "--seen", seen)


def test_its_own_people_approve_and_the_run_agrees(run: Path, governance: Path) -> None:
    done = approve(run, governance, "ann")
    assert done.exit_code == 0, done.output
    (answer,) = waiting_answers(run)
    rights, state = answer_rights(run, governance), read_approvals(run)[DECISION].state
    assert judge_answer(answer, state, rights, time.time_ns()).refusal == ""
    elsewhere = rights._replace(tenant="beta")
    assert "other-tenant" in judge_answer(answer, state, elsewhere, time.time_ns()).refusal


@pytest.mark.parametrize("who", ["bo", "cy"])
def test_people_of_another_tenant_act_on_nothing_of_it(run: Path, governance: Path, who: str) -> None:
    denied = [approve(run, governance, who).exception, htfi(governance, who, "reenable", run).exception]
    with pytest.raises(AccessDenied) as caught:
        request_reset(run, Requester("", governance, governance.parent / f"{who}.key"), "looked at")
    denied.append(caught.value)
    assert [type(one) for one in denied] == [AccessDenied] * 3
    assert all("forbidden by other-tenant" in str(one) for one in denied)


def test_its_own_people_re_enable_it_and_the_installations_own_all_runs_together(
    run: Path, governance: Path
) -> None:
    assert htfi(governance, "ann", "reenable", run).exit_code == 0
    assert htfi(governance, "cy", "reenable").exit_code == 0
    rights = answer_rights(run, governance)
    for folder, by in ((run, "ann"), (governance, "cy")):
        (request,) = [
            one for one in read_requests(folder / CONTROL_FOLDER)[0] if isinstance(one, ReenableRequest)
        ]
        assert request.by == by
        assert why_not_reenabled(request, rights, (), time.time_ns()) == ""
    assert isinstance(htfi(governance, "ann", "reenable").exception, AccessDenied)
