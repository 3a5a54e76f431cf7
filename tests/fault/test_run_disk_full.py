"""No file can be written any more, at each file of a run in turn: one line that says what, where and what to do; once
there is room the same command ends as if nothing had happened.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.outputs import check_outputs
from killable_run import KillableRuns

NUM_DAYS = 60
FILES = ("decisions.jsonl", "decisions.parquet", "quarantine.jsonl", "settings.json")
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
Outcome = tuple[int, bytes, list[bytes]]


@pytest.fixture(scope="module")
def runs() -> Iterator[KillableRuns]:
    with KillableRuns() as started:
        yield started


@pytest.fixture(scope="module")
def few_prices(prices: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    head, *rows = prices.read_text().splitlines(keepends=True)
    file = tmp_path_factory.mktemp("few") / "prices.csv"
    few = rows[: 6 * NUM_DAYS]
    few[-20] = few[-20].replace(",", ",-", 5).replace(",-", ",", 1)  # prices below zero: set aside
    file.write_text(head + "".join(few))
    return file


def command(prices: Path, folder: Path) -> tuple[object, ...]:
    return ("run", prices, "--out", folder, "--plain", "--outputs", "jsonl,parquet")


@pytest.fixture(scope="module")
def whole(few_prices: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("whole")
    runs.import_what_is_needed(*command(few_prices, folder))
    left = outcome(folder)
    assert left[0] > 200
    return left


def outcome(folder: Path) -> Outcome:
    """The ledger's size and root, and the files beside it; all of them hold."""
    ledger = open_ledger_readonly(folder)
    try:
        audit = ledger.verify()
        assert check_outputs(folder, ledger)[1] == []
    finally:
        ledger.close()
    assert (folder / "report.html").stat().st_size > 10_000
    return audit.size, audit.root, [(folder / name).read_bytes() for name in FILES]


@pytest.mark.parametrize("point", PLACES)
def test_a_disk_that_fills_at_any_file_is_one_line_and_costs_nothing(
    few_prices: Path, runs: KillableRuns, whole: Outcome, tmp_path: Path, point: str
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
    assert outcome(tmp_path / "run") == whole
