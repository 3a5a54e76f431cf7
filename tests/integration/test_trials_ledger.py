"""The ledger of trials: counts configurations once, loses none to a second process, and says what it holds."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi_eval.eval.trials import (
    ORIGIN,
    command,
    digest_of,
    list_trials,
    num_configurations,
    record_trial,
    record_trials,
)

PROCESS = """
import sys
from pathlib import Path
from htfi_eval.eval.trials import record_trial
for n in range(5):
    record_trial("test", "data", {"who": sys.argv[2], "n": n}, {"score": float(n)}, folder=Path(sys.argv[1]))
"""


def test_configurations_count_once_whatever_the_data_and_the_order_of_settings(tmp_path: Path):
    assert record_trial("rules", "a", {"x": 1, "y": 2}, {"sharpe": 1.0}, folder=tmp_path) == 1
    assert record_trial("rules", "b", {"y": 2, "x": 1}, {"sharpe": 0.5}, folder=tmp_path) == 1
    assert record_trial("rules", "a", {"x": 2, "y": 2}, {"sharpe": 0.5}, folder=tmp_path) == 2
    assert record_trial("other", "a", {"x": 1, "y": 2}, {"sharpe": 0.5}, folder=tmp_path) == 3
    assert len(list_trials(tmp_path)) == 4


def test_entries_are_in_a_log_that_verifies(tmp_path: Path):
    record_trials("t", "d", [({"k": k}, {"s": float(k)}) for k in range(7)], folder=tmp_path)
    log = open_ledger_readonly(tmp_path)
    try:
        assert log.origin == ORIGIN
        assert log.verify().size == 7
    finally:
        log.close()


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path):
    running = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), who])
        for who in ("one", "two", "three")
    ]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    assert num_configurations(list_trials(tmp_path)) == 15


def test_trial_that_waited_in_vain_is_left_and_taken_up_by_the_next(tmp_path: Path):
    log = open_ledger(tmp_path, origin=ORIGIN)
    try:
        assert record_trial("t", "d", {"k": 1}, {"s": 1.0}, folder=tmp_path, wait_s=0.2) == 1
    finally:
        log.close()
    assert len(list(tmp_path.glob("late-*.json"))) == 1
    assert record_trial("t", "d", {"k": 2}, {"s": 1.0}, folder=tmp_path) == 2
    assert not list(tmp_path.glob("late-*.json"))
    assert [trial.settings["k"] for trial in list_trials(tmp_path)] == [1, 2]


def test_scores_that_are_not_finite_are_none(tmp_path: Path):
    record_trial("t", "d", {}, {"a": float("nan"), "b": np.float64(2.0)}, folder=tmp_path)
    assert list_trials(tmp_path)[0].scores == {"a": None, "b": 2.0}


def test_settings_that_are_no_plain_values_are_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="plain values"):
        record_trial("t", "d", {"x": object()}, {}, folder=tmp_path)


def test_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DependencyUnavailable, match="--trials"):
        record_trial("t", "d", {}, {}, folder=tmp_path / "file" / "trials", wait_s=0.1)


def test_digests_tell_values_shapes_and_names_apart():
    ones = np.ones((2, 3))
    digests = [
        digest_of(ones),
        digest_of(ones.T),
        digest_of(2 * ones),
        digest_of(ones, "a"),
        digest_of("a", "b"),
        digest_of("ab"),
    ]
    assert len(set(digests)) == len(digests)
    assert digest_of(ones) == digest_of(np.ones((2, 3)))


def test_command_lists_and_verifies(tmp_path: Path):
    empty = CliRunner().invoke(command, ["--trials", str(tmp_path / "none")])
    assert empty.exit_code == 0
    assert "no ledger of trials" in empty.output
    record_trials("rules", "d", [({"k": k}, {"s": float(k)}) for k in range(3)], folder=tmp_path)
    told = CliRunner().invoke(command, ["--trials", str(tmp_path), "--json", str(tmp_path / "t.json")])
    assert told.exit_code == 0
    assert "verifies: 3 entries" in told.output
    assert "num_configurations = 3" in told.output
    each = CliRunner().invoke(command, ["--trials", str(tmp_path), "--all"])
    assert each.output.count("rules") == 3
