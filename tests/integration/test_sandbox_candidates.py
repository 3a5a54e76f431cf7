"""Candidates in the sandbox, from their files to a signed verdict: real processes, small trials."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.adapters.keys.ed25519 import load_key, verify_signature
from htfi.adapters.sandbox import bubblewrap
from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.governance.bundles.bundle import BundleHead, BundleKind, parse_bundle, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.config import PolicyConfig
from htfi.governance.ledger.note import parse_note
from htfi.governance.sandbox.results import Bounds, TrialEnding
from htfi.governance.sandbox.trials import CandidateKind, SandboxTrial, TrialMarket
from htfi.governance.sandbox.verdict import SandboxCheck
from htfi.pipeline.sandbox.trial_events import TrialEvents, make_trial_events
from htfi.wiring.ledger import SIGNING_KEY
from htfi.wiring.sandbox.candidates import open_candidate
from htfi.wiring.sandbox.examination import examine
from htfi.wiring.sandbox.history import read_history
from htfi.wiring.sandbox.promotion import promote
from htfi.wiring.sandbox.running import Contender, TrialSide, run_side
from htfi_eval.eval.governance.planted_candidates import plant_candidates

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")

EXPERT = """
import numpy as np

class Flat:
    name, version = "flat", "1"

    def __init__(self, config):
        self.shape = np.linspace(-0.02, 0.02, len(config.levels))
        self.num_horizons, self.num_series = len(config.horizons), 0
        {extra}

    def grow(self, num_series):
        self.num_series = num_series

    def update(self, bars):
        pass

    def learn(self, bars):
        pass

    def quantiles(self, rows):
        num = len(range(self.num_series)[rows]) if isinstance(rows, slice) else len(rows)
        return np.broadcast_to(self.shape, (num, self.num_horizons, len(self.shape))).copy()

    def state(self):
        return {{}}

    def restore(self, state):
        pass
"""


def small_trial() -> TrialEvents:
    return make_trial_events(
        SandboxTrial(name="t", market=TrialMarket.CALM, seed=2, num_bars=40), (), (), 0.0
    )


def run_expert(extra: str = "pass") -> TrialSide:
    contender = Contender({}, EXPERT.format(extra=extra))
    return run_side(contender, small_trial(), Bounds(answer_s=60.0, open_s=120.0))


def test_expert_forecasts_beside_the_champions_experts_and_alone():
    found = run_expert()
    assert found.stopped is None, found.stopped
    last = found.answers[-1][0]
    about = [quantile - last.own[0][6] for quantile in last.own[0]]  # the drift moves every expert
    assert about == pytest.approx([-0.02 + 0.04 * k / 12 for k in range(13)])
    assert abs(last.own[0][6]) < 0.001
    assert last.quantiles[0] == sorted(last.quantiles[0])
    assert last.quantiles != last.own
    assert len(found.answers) == len(found.seconds) == 40


def test_same_forecasts_with_and_without_namespaces():
    if why := bubblewrap.why_not():
        pytest.skip(why)
    bounds = Bounds(answer_s=60.0, open_s=120.0)
    wrapped, alone = (
        run_side(Contender({}), small_trial(), bounds, with_bubblewrap=is_wrapped)
        for is_wrapped in (True, False)
    )
    assert wrapped.stopped is alone.stopped is None
    assert wrapped.answers == alone.answers
    assert wrapped.enforcement.not_enforced == () or "no namespaces" not in str(
        wrapped.enforcement.not_enforced
    )
    assert "no namespaces" in str(alone.enforcement.not_enforced)


@pytest.mark.parametrize(
    ("extra", "ending"),
    [
        ("import os; os.fork()", TrialEnding.FORBIDDEN_CALL),
        ("import os; open(os.path.expanduser('~/.netrc'))", TrialEnding.READ_SECRETS),
        (
            "from htfi import sample; sample.FILES[0].read_bytes()[0]",
            TrialEnding.CRASHED,
        ),  # no history to look up
    ],
)
def test_misdeed_of_an_expert_ends_its_trial(extra: str, ending: TrialEnding):
    found = run_expert(extra)
    assert found.stopped is not None
    assert found.stopped.ending is ending, found.stopped


def test_file_that_holds_no_expert_or_two_is_refused():
    for source in (
        "x = 1",
        EXPERT.format(extra="pass") + EXPERT.format(extra="pass").replace("Flat", "Other"),
    ):
        found = run_side(Contender({}, source), small_trial(), Bounds(open_s=120.0, answer_s=60.0))
        assert found.stopped is not None
        assert "experts: give one class" in found.stopped.detail


def test_kinds_of_candidates(tmp_path: Path):
    settings, bundle, expert = tmp_path / "s.toml", tmp_path / "b.toml", tmp_path / "e.py"
    settings.write_text("[forecasting]\newma_decay = 0.9\n")
    head = BundleHead(1, "", BundleKind.QUORUM, "Ann", 1_700_000_000 * 10**9)
    bundle.write_text(write_bundle(head, BundleTables(policy=PolicyConfig(max_band_width=0.3))))
    expert.write_text("x = 1")
    kinds = [open_candidate(place) for place in (settings, bundle, expert)]
    assert [one.kind for one in kinds] == [CandidateKind.SETTINGS, CandidateKind.BUNDLE, CandidateKind.EXPERT]
    assert [one.reads_news for one in kinds] == [False, False, False]
    assert kinds[1].tables["policy"]["max_band_width"] == 0.3
    assert {"[models]", "[desks]"} <= set(kinds[1].untried)
    assert kinds[1].digest == parse_bundle(bundle.read_text()).digest
    assert len({one.digest for one in kinds}) == 3


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[forecasting]\nwhat = 1\n", "unknown key 'what'"),
        ("a.toml", "x = 1\n", "'x' is outside a table"),
        ("a.toml", "[", "not valid TOML"),
        ("a.toml", "[bundle]\nnumber = 0\n", "bundle.number must be"),
        ("a.txt", "", "is no candidate"),
        (
            "empty.py",
            "",
            "is empty: give one class",
        ),  # else the champion would be tried against itself, and pass
        ("blank.py", " \n\t\n", "is empty: give one class"),
        ("missing.py", None, "No such file"),
    ],
)
def test_what_is_no_candidate_is_named_in_one_line(tmp_path: Path, name: str, text: str | None, words: str):
    place = tmp_path / name
    if text is not None:
        place.write_text(text)
    with pytest.raises(InvalidInput, match=words) as refused:
        open_candidate(place)
    assert str(place) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_command_says_what_is_wrong(tmp_path: Path):
    found = CliRunner().invoke(cli, ["sandbox", str(tmp_path / "none.toml")])
    assert isinstance(found.exception, InvalidInput)


@pytest.mark.slow
def test_rejected_candidate_by_command(tmp_path: Path):
    expert = tmp_path / "e.py"
    expert.write_text(EXPERT.format(extra="import os; os.fork()"))
    page, answer = tmp_path / "v.html", tmp_path / "v.json"
    found = CliRunner().invoke(
        cli, ["sandbox", str(expert), "--bars", "100", "--json", str(answer), "--html", str(page)]
    )
    assert found.exit_code == 3
    assert "is rejected: it fails “ends as it should” in history: forbidden call" in found.output
    assert json.loads(answer.read_text())["passed"] is False
    assert "Rejected" in page.read_text()


@pytest.mark.slow
def test_settings_pass_are_recorded_signed_and_promoted(tmp_path: Path):
    settings, governance = tmp_path / "s.toml", tmp_path / "G"
    settings.write_text("[forecasting]\newma_decay = 0.945\n")
    found = examine(open_candidate(settings), read_history(), governance=governance, num_bars=250, seed=4)
    assert found.verdict.passed, found.verdict.failed
    assert (found.record, found.verdict.num_tries) == (0, 1)
    assert found.note is not None
    note = parse_note(found.note.read_text())
    key = load_key(governance / SIGNING_KEY)
    assert verify_signature(key.public_key, note.text.encode(), note.signatures[0].payload)
    assert f"settings {found.verdict.digest}\npassed\nentry 0\n" in note.text
    promote(settings, governance, by="Ann", why="w", now_ns=1)


def test_what_a_planted_candidate_would_fill_lies_in_the_evaluations_own_folder(tmp_path: Path):
    planted = plant_candidates(tmp_path, (), with_models=False)
    (fills,) = (one for one in planted if one.name == "writes 10 GB")
    assert f"open('{tmp_path}/filled', 'wb')" in fills.place.read_text()
    texts = [one.place.read_text().replace(str(tmp_path), "") for one in planted]
    assert len(texts) > 30
    assert [text for text in texts if "/tmp" in text or "$" in text] == []


@pytest.mark.slow
def test_history_learnt_by_heart_is_found(tmp_path: Path):
    history = read_history()
    planted = plant_candidates(tmp_path, history.bars, with_models=False)
    (learnt,) = (one for one in planted if one.name == "has learnt the history by heart")
    found = examine(open_candidate(learnt.place), history, num_bars=300, seed=4)
    assert SandboxCheck.NOT_LEARNT in {one.check for one in found.verdict.failed}
