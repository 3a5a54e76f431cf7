"""No file can be written any more, at each file of a run in turn: one line that says what, where and what to do; once
there is room the same command ends as if nothing had happened.
"""

from pathlib import Path

import pytest

from killable_run import KillableRuns, RunOutcome, outcome

# Where the disk fills, at the how manieth time, and the file that the line names.
PLACES = {
    "ledger is made": (1, "ledger.db"),
    "ledger": (9, "ledger.db"),
    "lines": (9, "decisions.jsonl"),
    "quarantine": (1, "quarantine.jsonl"),
    "state": (2, "state.bin"),
    "table": (1, "decisions.parquet"),
    "report": (1, "report.html"),
    "checkpoint": (1, "checkpoint"),
}
WHAT_TO_DO = ("run again", "run the same command again", "start again", "free some disk space")


def command(prices: Path, folder: Path) -> tuple[object, ...]:
    return ("run", prices, "--out", folder, "--plain", "--outputs", "jsonl,parquet")


@pytest.fixture(scope="module")
def whole(few_prices: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory) -> RunOutcome:
    folder = tmp_path_factory.mktemp("whole")
    runs.import_what_is_needed(*command(few_prices, folder))
    left = outcome(folder)
    assert left.size > 200
    return left


@pytest.mark.parametrize("point", PLACES)
def test_a_disk_that_fills_at_any_file_is_one_line_and_costs_nothing(
    few_prices: Path, runs: KillableRuns, whole: RunOutcome, tmp_path: Path, point: str
) -> None:
    count, name = PLACES[point]
    words = command(few_prices, tmp_path / "run")
    assert runs.run(*words, point=point, count=count, act="full") == 1
    (line,) = runs.said.splitlines()
    assert line.startswith("htfi: ")
    assert str(tmp_path / "run" / name) in line
    assert "File too large" in line or "a limit on file sizes" in line
    assert any(words in line for words in WHAT_TO_DO)
    assert runs.run(*words) == 0
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert outcome(tmp_path / "run") == whole
