"""Promotion follows a passed verdict on exactly what is promoted, and can be taken back."""

import shutil
from pathlib import Path

import pytest

from htfi import models
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.governance.bundles.bundle import BundleHead, BundleKind, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.sandbox.entries import SHIPPED
from htfi.wiring.governance_log import open_governance_log
from htfi.wiring.sandbox.promotion import PromotedModels, promote, promoted_models, read_candidates, roll_back
from sandbox_verdicts import record_verdict, settings_file

WHO = {"by": "Ann Lee", "why": "a test", "now_ns": 5}


def test_nothing_is_promoted_in_a_folder_without_a_log(tmp_path: Path):
    assert promoted_models(tmp_path / "G") == PromotedModels()
    assert promoted_models(tmp_path / "G").digest == SHIPPED
    assert not (tmp_path / "G").exists()


def test_candidate_that_passed_serves_and_is_taken_back(tmp_path: Path):
    governance, file = tmp_path / "G", settings_file(tmp_path / "a.toml", 0.95)
    record_verdict(file, governance)
    entry = promote(file, governance, **WHO)
    found = promoted_models(governance)
    assert found.tables == {"forecasting": {"ewma_decay": 0.95}}
    assert found.digests == {"settings": (entry.digest,)}
    file.write_text("[forecasting]\newma_decay = 0.5\n")  # what serves is what was tried
    assert promoted_models(governance) == found
    assert roll_back("settings", governance, **WHO).to == SHIPPED
    assert promoted_models(governance).digest == SHIPPED


def test_second_promotion_builds_on_the_first_and_roll_back_returns_to_it(tmp_path: Path):
    governance = tmp_path / "G"
    first = settings_file(tmp_path / "a.toml", 0.95)
    second = tmp_path / "b.toml"
    second.write_text("[forecasting]\nhistory_bars = 30\n")
    record_verdict(first, governance)
    promote(first, governance, **WHO)
    serving = promoted_models(governance)
    record_verdict(second, governance, champion=serving.digest)
    promote(second, governance, **WHO)
    assert promoted_models(governance).tables == {"forecasting": {"ewma_decay": 0.95, "history_bars": 30}}
    assert roll_back("settings", governance, **WHO).to == serving.digests["settings"][0]
    assert promoted_models(governance) == serving


def test_model_folder_serves_in_its_role(tmp_path: Path):
    governance, folder = tmp_path / "G", tmp_path / "my-draft"
    shutil.copytree(models.DRAFT, folder)
    record_verdict(folder, governance)
    promote(folder, governance, **WHO)
    assert promoted_models(governance).folders == {"draft": folder}
    (folder / "card.json").write_text('{"tokens": 1}')
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    with pytest.raises(IntegrityError, match="is not what was promoted"):
        promoted_models(governance)
    shutil.rmtree(folder)
    with pytest.raises(IntegrityError, match="cannot be opened"):
        promoted_models(governance)
    roll_back("models", governance, **WHO)
    assert promoted_models(governance).folders == {}


def test_nothing_is_promoted_without_a_verdict(tmp_path: Path):
    governance, file = tmp_path / "G", settings_file(tmp_path / "a.toml", 0.95)
    with pytest.raises(InvalidInput, match="was never tried as it is now"):
        promote(file, governance, **WHO)
    record_verdict(file, governance)
    settings_file(file, 0.96)
    with pytest.raises(InvalidInput, match="was never tried as it is now"):
        promote(file, governance, **WHO)


def test_rejected_candidate_is_not_promoted(tmp_path: Path):
    governance, file = tmp_path / "G", settings_file(tmp_path / "a.toml", 0.95)
    record_verdict(file, governance)
    record_verdict(file, governance, passed=False)  # the newest counts
    with pytest.raises(InvalidInput, match="did not pass the sandbox"):
        promote(file, governance, **WHO)


def test_verdict_against_another_champion_does_not_count(tmp_path: Path):
    governance = tmp_path / "G"
    first, second = settings_file(tmp_path / "a.toml", 0.95), settings_file(tmp_path / "b.toml", 0.96)
    record_verdict(first, governance)
    record_verdict(second, governance)
    promote(first, governance, **WHO)
    with pytest.raises(InvalidInput, match="try it again"):
        promote(second, governance, **WHO)
    with pytest.raises(InvalidInput, match="serves already"):
        promote(first, governance, **WHO)


def test_code_and_bundles_are_promoted_elsewhere(tmp_path: Path):
    expert, bundle = tmp_path / "a.py", tmp_path / "b.toml"
    expert.write_text("class E: pass\n")
    head = BundleHead(1, "", BundleKind.QUORUM, "Ann", 1_700_000_000 * 10**9)
    bundle.write_text(write_bundle(head, BundleTables()))
    with pytest.raises(InvalidInput, match="is code"):
        promote(expert, tmp_path / "G", **WHO)
    with pytest.raises(InvalidInput, match="htfi policy propose"):
        promote(bundle, tmp_path / "G", **WHO)


def test_person_and_reason_are_needed(tmp_path: Path):
    file = settings_file(tmp_path / "a.toml", 0.95)
    with pytest.raises(InvalidInput, match="--by NAME --why TEXT"):
        promote(file, tmp_path / "G", by=" ", why="x", now_ns=1)
    with pytest.raises(InvalidInput, match="nothing of 'settings' is promoted"):
        roll_back("settings", tmp_path / "G", **WHO)


def test_log_names_who_decided_and_verifies(tmp_path: Path):
    governance, file = tmp_path / "G", settings_file(tmp_path / "a.toml", 0.95)
    record_verdict(file, governance)
    promote(file, governance, **WHO)
    log = open_governance_log(governance)
    try:
        assert log.verify().size == 2
        entries = read_candidates(log).entries
    finally:
        log.close()
    assert (entries[-1][1].by, entries[-1][1].why, entries[-1][1].verdict) == ("Ann Lee", "a test", 0)
