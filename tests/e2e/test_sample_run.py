"""The embedded sample, run as a person runs it: what comes out, and that it comes out the same again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from checks import nonempty
from htfi.domain.decision import decode_decision
from htfi.wiring.ledger import open_ledger_readonly


def htfi(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "htfi", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    (folder / "summary.txt").write_text(htfi("run", "--plain", "--out", str(folder)))
    return folder


def root(folder: Path) -> str:
    ledger = open_ledger_readonly(folder)
    try:
        return f"{ledger.size}:{ledger.root().hex()}"
    finally:
        ledger.close()


def test_the_run_leaves_all_that_the_readme_names(folder: Path) -> None:
    for name in (
        "decisions.jsonl",
        "decisions.parquet",
        "report.html",
        "quarantine.jsonl",
        "ledger.db",
        "checkpoint",
    ):
        assert (folder / name).stat().st_size > 0


def test_the_summary_tells_scores_speed_root_and_report(folder: Path) -> None:
    summary = (folder / "summary.txt").read_text()
    assert root(folder).partition(":")[2] in summary
    for told in ("fused", "random walk", "90% in", "a second", "report.html", "quarantine"):
        assert told in summary


def test_a_second_run_elsewhere_and_in_another_zone_has_the_same_root(folder: Path, tmp_path: Path) -> None:
    htfi(
        "run",
        "--plain",
        "--no-report",
        "--out",
        str(tmp_path),
        TZ="Asia/Tokyo",
        PYTHONHASHSEED="7",
        LC_ALL="C",
    )
    assert root(tmp_path) == root(folder)


def test_the_same_command_again_finds_nothing_more_to_do(folder: Path) -> None:
    before = root(folder)
    again = htfi("run", "--plain", "--no-report", "--out", str(folder))
    assert root(folder) == before
    assert re.search(r"; 0\s+in ", again)  # wrapped where the terminal is narrow


def test_every_entry_can_be_derived_again_and_its_table_row_agrees(folder: Path) -> None:
    told = htfi("ledger", "verify", str(folder), "--recompute")
    assert "follow from" in told
    table = pq.read_table(folder / "decisions.parquet")
    ledger = open_ledger_readonly(folder)
    assert table.num_rows == ledger.size
    for index in range(0, ledger.size, 97):
        decision = decode_decision(ledger.entry(index))
        row = table.slice(index, 1).to_pylist()[0]
        assert (row["id"], row["last_price"]) == (decision.id, decision.last_price)
    ledger.close()


def test_forecasts_beat_the_random_walk_on_the_sample(folder: Path) -> None:
    line = next(
        line for line in (folder / "summary.txt").read_text().splitlines() if line.startswith(" fused")
    )
    ratios = [float(cell) for cell in line.split()[1::2]]
    assert len(ratios) == 3
    assert all(ratio < 1.0 for ratio in ratios)


def test_october_2008_is_a_shock_and_early_2007_is_not(folder: Path) -> None:
    ledger = open_ledger_readonly(folder)
    regimes = {}
    for entry in ledger.entries():
        decision = decode_decision(entry)
        if decision.symbol == "SPX":
            regimes[decision.id.partition("@")[2][:10]] = decision.regime
    ledger.close()
    assert regimes["2008-10-10"] == "shock"
    assert {regimes[day] for day in regimes if day.startswith("2007-01")} <= {"calm", "normal"}


def test_nothing_is_decided_before_it_could_be_known(folder: Path) -> None:
    ledger = open_ledger_readonly(folder)
    last_ns = 0
    for entry in nonempty(ledger.entries()):
        decision = decode_decision(entry)
        assert decision.as_of_ns >= decision.circumstances.bar_end_ns
        assert decision.as_of_ns >= last_ns
        last_ns = decision.as_of_ns
    ledger.close()
