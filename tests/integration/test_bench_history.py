"""Two runs of a benchmark with one history: the second is compared with the first."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from htfi_eval import history_file
from htfi_eval.bench import ledger
from htfi_eval.history import parse_history
from htfi_eval.main import bench


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ledger, "NUM_RUNS", 2)
    monkeypatch.setattr(ledger, "NUM_PROOFS", 2)
    monkeypatch.setattr(ledger, "NUM_DISTINCT", 50)
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def invoke(*more: str, num_entries: int = 1000) -> Result:
        words = ["ledger", "--entries", str(num_entries), "--folder", str(scratch)]
        words += ["--history", str(tmp_path / "of" / "history.jsonl"), *more]
        done = CliRunner().invoke(bench, words, catch_exceptions=False, env={"COLUMNS": "200"})
        assert done.exit_code == 0
        return done

    return invoke


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(text) for text in (folder / "of" / "history.jsonl").read_text().splitlines()]


def test_the_second_run_stands_beside_the_first(run, tmp_path: Path) -> None:
    first, second = run(), run("--json", str(tmp_path / "ledger.json"))
    assert "no earlier figures to compare with" in first.stdout
    assert "now ÷ before" in second.stdout
    assert "not compared" not in second.stdout
    before, now = lines_of(tmp_path)
    assert before["workload"] == now["workload"]
    assert now["workload"] == "entries of 1.5 kB, as JSON 4.5 kB, num_entries 1000, folder scratch"
    assert now["metrics"] == json.loads((tmp_path / "ledger.json").read_text())["metrics"]
    assert now["machine"] == history_file.machine()
    assert now["bench"] == "ledger"


@pytest.mark.slow
def test_a_run_of_another_size_or_machine_is_not_compared(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    other_size = run(num_entries=1001)
    monkeypatch.setattr(history_file, "machine", lambda: "another, 64 cores")
    other_machine = run()
    assert len(lines_of(tmp_path)) == 3
    for done, num in ((other_size, 1), (other_machine, 2)):
        assert "no earlier figures to compare with" in done.stdout
        assert f"not compared: {num} of other" in done.stdout
        assert "got worse" not in done.stderr


def test_growth_is_one_warning_a_metric_and_a_damaged_line_one_line(run, tmp_path: Path) -> None:
    run()
    file = tmp_path / "of" / "history.jsonl"
    (line,), _ = parse_history(file.read_bytes())
    fast = {
        "verify_100k_s": line.metrics["verify_100k_s"] / 1e6,
        "appends_per_s": line.metrics["appends_per_s"],
    }
    text = json.loads(file.read_text())
    file.write_text("damaged\n" + json.dumps(text | {"metrics": fast | {"appends_per_s": 1e-6}}) + "\n")
    kept = file.read_bytes()
    done = run()
    warnings = [one for one in done.stderr.splitlines() if one.startswith("warning: ")]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: verify_100k_s got worse by more than 15%: ")
    assert f"{file} line 1: left as it is and not compared: " in done.stderr
    assert file.read_bytes().startswith(kept)
    assert len(file.read_bytes().splitlines()) == 3
