"""Readings of a run with a marking key: what `htfi mark verify --run` finds in their words, and what it says."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import htfi
from archives import unpack
from htfi.adapters.keys.mark_key import MARK_KEY_FILE, create_mark_key, load_mark_key
from htfi.apps.cli.main import cli
from htfi.decoding.marking import MarkKey
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.narrative.deep_reader import answer_seeds, path_seed
from htfi.pipeline.audit.replay import noise_seeds
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.marking import recorded_choice, run_seeds, trace_of

pytestmark = pytest.mark.usefixtures("models_opened_once")

ARCHIVES = Path(__file__).parents[1] / "data" / "ledgers"


def unpacked(name: str, parent: Path) -> Path:
    unpack(ARCHIVES / f"{name}.tar.xz", parent)
    return parent / name


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("run-traced", tmp_path_factory.mktemp("traced"))


def readings(run: Path) -> list[Decision]:
    log = open_ledger_readonly(run)
    try:
        return [one for one in map(decode_entry, log.entries()) if trace_of(one) is not None]
    finally:
        log.close()


def verify(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["mark", "verify", *map(str, words)])
    return done.exit_code, done.output + str(done.exception or "")


def test_answers_of_one_reading_take_seeds_of_their_own() -> None:
    """A key has 256 seeds: drawn at random, sixteen of them would coincide in a third of readings."""
    key = MarkKey(bytes(range(32)))
    for seed in range(250):
        assert len({path_seed(seed, path, key) for path in range(256)}) == 256
    assert path_seed(7, 3) == 1940484988  # without a key as ever


def test_the_record_shows_no_seed_of_the_key(run: Path) -> None:
    key = load_mark_key(run / MARK_KEY_FILE)
    read = readings(run)
    assert len(read) > 10
    for one in read:
        trace = trace_of(one)
        assert trace is not None
        assert one.models["mark"] == key.id
        assert trace.seed not in key.seeds()
        assert set(noise_seeds(one, trace, key)) <= set(key.seeds())
        assert set(noise_seeds(one, trace, key)).isdisjoint(answer_seeds(trace))


def test_words_of_a_view_leave_too_little_to_choose(run: Path) -> None:
    read = [one for one in readings(run) if one.view is not None and one.view.words]
    choice = recorded_choice(run, read[0], None)
    assert 5 <= choice.num_tokens <= 40
    assert 0.0 < choice.capacity_nats < choice.bits
    assert choice.capacity_nats < 14.0
    code, said = verify(read[0].view.words if read[0].view else "", "--run", run)
    assert code == 0
    assert "the words of such a reading can show" in said
    assert "too little was left to choose" in said


def test_a_run_whose_key_is_elsewhere_says_so(run: Path, tmp_path: Path) -> None:
    away = unpacked("run-traced", tmp_path)
    (away / MARK_KEY_FILE).rename(tmp_path / "kept.key")
    code, said = verify("Shares of Acme fell", "--run", away)
    assert code == 1
    assert "follows from a marking key: give it with --key, or put it into the folder as mark.key" in said
    assert verify("Shares of Acme fell", "--run", away, "--key", tmp_path / "kept.key")[0] == 0
    create_mark_key(tmp_path / "other.key")
    assert verify("Shares of Acme fell", "--run", away, "--key", tmp_path / "other.key")[0] == 1


def test_a_run_without_a_key_is_searched_by_its_public_seeds(tmp_path: Path) -> None:
    found = run_seeds(unpacked("run-templates-6", tmp_path))
    assert found.num_other_keys == 0
    assert found.num_certain > 0  # the readings at temperature 0
    assert len(found.decisions_of) > 100  # sixteen answers of each reading in depth


def test_a_text_at_temperature_0_holds_no_mark(run: Path) -> None:
    code, said = verify("Shares of Acme fell", "--key", run / MARK_KEY_FILE, "--temperature", 0)
    assert code == 0
    assert "at temperature 0 a text holds no mark" in said
    assert htfi.verify_mark("Acme", run / MARK_KEY_FILE, temperature=0.0).capacity_nats == 0.0


def test_a_rule_of_acceptance_that_depends_on_drafts_takes_no_key(tmp_path: Path) -> None:
    create_mark_key(tmp_path / "out" / MARK_KEY_FILE)  # makes the run's folder
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    source = unpacked("run-traced", tmp_path)
    words = ["run", str(source / "prices.csv"), "--plain", "--no-report", "--out", str(tmp_path / "out")]
    done = CliRunner(env={"HTFI_DECODING__RULE": "rejection"}).invoke(cli, words)
    assert done.exit_code == 1
    assert isinstance(done.exception, InvalidInput)
    assert "a marking key needs 'coupled'" in str(done.exception)


def test_a_run_is_not_resumed_with_another_key(run: Path, tmp_path: Path) -> None:
    source = unpacked("run-traced", tmp_path)
    words = ["run", str(source / "prices.csv"), "--plain", "--no-report", "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(cli, words).exit_code == 0
    create_mark_key(tmp_path / "out" / MARK_KEY_FILE)
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 1
    assert "holds a run with other marking key" in str(done.exception)
