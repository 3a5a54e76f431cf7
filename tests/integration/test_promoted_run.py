"""Runs, edges and clouds with a governance folder: what was promoted serves, is recorded, and can be taken back."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import forked
from htfi import models
from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision
from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.sandbox.candidates import open_candidate
from htfi.wiring.sandbox.promotion import promote, promoted_models, roll_back
from htfi.wiring.sandbox.serving import serve_promoted
from random_pair import write_random_pair
from sandbox_verdicts import record_verdict, settings_file

NUM_DAYS = 40
ENVIRONMENT = {"HTFI_PIPELINE__DEADLINE_MS": "100000", "HTFI_ENCODING__MODEL": "heads"}
WHO = {"by": "Ann Lee", "why": "a test", "now_ns": 5}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("inputs")
    with (folder / "prices.csv").open("w") as rows, (folder / "news.jsonl").open("w") as items:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(NUM_DAYS):
            date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + 86_400 * day))
            rows.write(f"{date}T21:00:00Z,AAA,100,103,97,{100 + day % 5},9\n")
            if day % 15 == 10:
                text = f"Item {day}: the outlook was cut, the price fell"
                item = {"ts": f"{date}T15:00:00Z", "id": f"n{day}", "headline": text, "symbols": ["AAA"]}
                items.write(json.dumps(item) + "\n")
    return [str(folder / "prices.csv"), str(folder / "news.jsonl")]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    write_random_pair(folder)
    return folder


@pytest.fixture
def pair(written: Path, tmp_path: Path) -> Path:
    """A pair of this test's own."""
    return Path(shutil.copytree(written, tmp_path / "pair"))


def promoted_in(governance: Path, place: Path) -> str:
    """Promote what lies at `place`; its digest."""
    record_verdict(place, governance, champion=promoted_models(governance).digest)
    return promote(place, governance, **WHO).digest


def invoke(inputs: list[str], out: Path, *options: str) -> Result:
    command = ["run", *inputs, "--plain", "--no-report", "--out", str(out), *options]
    return CliRunner(env=ENVIRONMENT).invoke(cli, command)


def decisions(run: Path) -> list[Decision]:
    log = open_ledger_readonly(run)
    try:
        return [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


def test_promoted_pair_reads_and_every_decision_names_it(inputs: list[str], pair: Path, tmp_path: Path):
    governance, out = tmp_path / "G", tmp_path / "out"
    digest = promoted_in(governance, pair)
    done = invoke(inputs, out, "--governance", str(governance))
    assert done.exit_code == 0, done.output
    assert f"htfi: promoted target {pair / 'target'} (governance folder {governance})" in done.output
    found = decisions(out)
    assert {one.models["promoted.models"] for one in found} == {digest[:12]}
    folders = open_candidate(pair).folders
    assert [folder.name for folder in folders] == ["target", "draft"]
    reader = found[-1].models["reader.speculative"]
    assert reader.startswith("target-int8@")
    assert any(one.view is not None and one.view.reader == reader for one in found)


def test_roll_back_takes_effect_at_the_next_start(inputs: list[str], pair: Path, tmp_path: Path):
    governance, out = tmp_path / "G", tmp_path / "out"
    promoted_in(governance, pair)
    assert invoke(inputs, out, "--governance", str(governance)).exit_code == 0
    before = len(decisions(out))
    roll_back("models", governance, **WHO)
    refused = invoke(inputs, out, "--governance", str(governance))  # a folder holds one run, of one pair
    assert isinstance(refused.exception, InvalidInput)
    assert "holds a run with other readers" in str(refused.exception)
    assert len(decisions(out)) == before
    assert invoke(inputs, tmp_path / "new", "--governance", str(governance)).exit_code == 0
    last = decisions(tmp_path / "new")[-1]
    assert "promoted.models" not in last.models
    assert last.models["reader.speculative"].startswith(models.TARGET.name)


def test_promotion_during_a_run_is_named_where_the_run_is_resumed(
    inputs: list[str], pair: Path, tmp_path: Path
):
    governance, out = tmp_path / "G", tmp_path / "out"
    promoted_in(governance, settings_file(tmp_path / "a.toml", 0.95))
    assert invoke(inputs, out, "--governance", str(governance)).exit_code == 0
    promoted_in(governance, pair)
    refused = invoke(inputs, out, "--governance", str(governance))
    assert "holds a run with other promotions: use the same, or choose another --out" in str(
        refused.exception
    )


@pytest.mark.parametrize("harm", ["gone", "altered"])
def test_promoted_folder_that_is_gone_or_altered_stops_the_start(
    inputs: list[str], pair: Path, tmp_path: Path, harm: str
):
    governance, out = tmp_path / "G", tmp_path / "out"
    promoted_in(governance, pair)
    if harm == "gone":
        shutil.rmtree(pair / "draft")
    else:
        config = pair / "draft" / "config.json"
        config.write_text(config.read_text() + " ")
    refused = invoke(inputs, out, "--governance", str(governance))
    assert isinstance(refused.exception, IntegrityError)
    words = str(refused.exception)
    assert f"`htfi models rollback models --governance {governance} --by NAME --why TEXT`" in words
    assert "\n" not in words
    assert not out.exists()
    roll_back("models", governance, **WHO)  # as the line says
    assert serve_promoted(None, governance).digests == {}


def test_user_who_names_a_model_gets_no_promoted_one(pair: Path, tmp_path: Path):
    governance = tmp_path / "G"
    promoted_in(governance, pair)
    shutil.rmtree(pair)  # nobody looks at it
    file = tmp_path / "mine.toml"
    file.write_text(f'[models]\ndraft = "{models.DRAFT}"\n')
    found = serve_promoted(file, governance)
    assert (found.settings.models.target, found.settings.models.draft) == ("", str(models.DRAFT))
    assert (found.digests, found.lines) == ({}, ())
    with pytest.raises(IntegrityError):
        serve_promoted(None, governance)


def test_promoted_settings_lie_beneath_what_the_user_names(tmp_path: Path):
    governance, mine = tmp_path / "G", tmp_path / "mine.toml"
    digest = promoted_in(governance, settings_file(tmp_path / "a.toml", 0.95))
    found = serve_promoted(None, governance)
    assert found.settings.forecasting.ewma_decay == 0.95
    assert found.digests == {"settings": digest[:12]}
    assert found.lines == (f"promoted settings: [forecasting] (governance folder {governance})",)
    mine.write_text("[forecasting]\newma_decay = 0.9\nhistory_bars = 33\n")
    assert serve_promoted(mine, governance).settings.forecasting.ewma_decay == 0.9
    assert serve_promoted(None, None).settings.forecasting.ewma_decay != 0.95


def test_settings_that_name_a_model_folder_are_no_candidate(tmp_path: Path):
    file = tmp_path / "s.toml"
    file.write_text(f'[models]\ntarget = "{models.TARGET}"\n')
    with pytest.raises(InvalidInput, match=r"models.target names a folder, .* try the folder itself"):
        open_candidate(file)


def test_folder_that_is_none_is_refused(inputs: list[str], tmp_path: Path):
    refused = invoke(inputs, tmp_path / "out", "--governance", str(tmp_path / "none"))
    assert isinstance(refused.exception, HtfiError)
    assert "is not a governance folder" in str(refused.exception)


def test_cloud_and_edge_serve_the_promoted_pair(inputs: list[str], pair: Path, tmp_path: Path):
    governance, out = tmp_path / "G", tmp_path / "out"
    digest = promoted_in(governance, pair)
    command = [
        *forked.HTFI, "cloud", "--insecure-loopback", "--plain", "--listen", "127.0.0.1:0",
        "--governance", str(governance),
    ]  # fmt: skip
    with forked.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as cloud:
        assert cloud.stdout is not None
        line = cloud.stdout.readline().strip()
        ready = re.search(r"is ready on (\S+): (target-int8@[0-9a-f]{12})$", line)
        try:
            assert ready is not None, line
            edge = ["edge", *inputs, "--plain", "--no-report", "--out", str(out), "--insecure-loopback"]
            edge += ["--cloud", f"cloud1={ready[1]}", "--governance", str(governance)]
            done = CliRunner(env=ENVIRONMENT).invoke(cli, edge)
        finally:
            cloud.terminate()
            _, said = cloud.communicate(timeout=60)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"htfi: promoted draft {pair / 'draft'}" in said
    found = decisions(out)
    assert {one.models["promoted.models"] for one in found} == {digest[:12]}
    read = [one.view.reader for one in found if one.view is not None and not one.view.provisional]
    assert ready[2] in read, (read, said)
