"""The embedded sample, run as a person runs it: what comes out, and that it comes out the same again."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
import pytest

from checks import nonempty
from htfi.pipeline.record.entry import decode_entry, has_reading
from htfi.wiring.ledger import open_ledger_readonly
from htfi_eval.bench.ledger_entries import compact_entries

Htfi = Callable[..., str]
NUM_SO_FAR = 700  # of some 2,000 decisions


def root(folder: Path) -> str:
    ledger = open_ledger_readonly(folder)
    try:
        return f"{ledger.size}:{ledger.root().hex()}"
    finally:
        ledger.close()


def test_the_run_leaves_all_that_the_readme_names(sample_run: Path) -> None:
    for name in (
        "decisions.jsonl",
        "decisions.parquet",
        "report.html",
        "quarantine.jsonl",
        "ledger.db",
        "checkpoint",
    ):
        assert (sample_run / name).stat().st_size > 0


def test_the_summary_tells_scores_speed_root_and_report(sample_run: Path) -> None:
    summary = (sample_run / "summary.txt").read_text()
    assert root(sample_run).partition(":")[2] in summary
    for told in ("fused", "random walk", "90% in", "per second", "report.html", "quarantine"):
        assert told in summary


ELSEWHERE = {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "LC_ALL": "C"}


@pytest.mark.slow
def test_a_second_run_elsewhere_and_in_another_zone_has_the_same_root(
    sample_run: Path, htfi_process: Htfi, tmp_path: Path
) -> None:
    htfi_process("run", "--plain", "--no-report", "--out", str(tmp_path), **ELSEWHERE)
    assert root(tmp_path) == root(sample_run)


@pytest.mark.slow
def test_a_run_elsewhere_that_is_stopped_has_decided_the_same_so_far(
    sample_run: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "htfi", "run", "--plain", "--no-report", "--out", str(tmp_path)]
    run = subprocess.Popen(words, env={**os.environ, **ELSEWHERE}, stdout=subprocess.DEVNULL)
    journal = tmp_path / "decisions.jsonl"
    while run.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= NUM_SO_FAR):
        time.sleep(0.1)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) == 130
    found = journal.read_bytes()
    assert found.count(b"\n") >= NUM_SO_FAR
    assert (sample_run / "decisions.jsonl").read_bytes().startswith(found)


def test_the_same_command_again_finds_nothing_more_to_do(
    sample_run: Path, htfi: Htfi, tmp_path: Path
) -> None:
    folder = tmp_path / "again"
    shutil.copytree(sample_run, folder)
    again = htfi("run", "--plain", "--no-report", "--out", str(folder))
    assert root(folder) == root(sample_run)
    assert re.search(r"; 0\s+in ", again)  # wrapped where the terminal is narrow


def test_every_entry_can_be_derived_again_and_its_table_row_agrees(sample_run: Path, htfi: Htfi) -> None:
    told = htfi("ledger", "verify", str(sample_run), "--recompute")
    assert "follow from" in told
    table = pq.read_table(sample_run / "decisions.parquet")
    ledger = open_ledger_readonly(sample_run)
    assert table.num_rows == ledger.size
    for index in range(0, ledger.size, 97):
        decision = decode_entry(ledger.entry(index))
        row = table.slice(index, 1).to_pylist()[0]
        assert (row["id"], row["last_price"]) == (decision.id, decision.last_price)
    ledger.close()


def test_forecasts_beat_the_random_walk_on_the_sample(sample_run: Path) -> None:
    line = next(
        line for line in (sample_run / "summary.txt").read_text().splitlines() if line.startswith(" fused")
    )
    ratios = [float(cell) for cell in line.split()[1::2]]
    assert len(ratios) == 3
    assert all(ratio < 1.0 for ratio in ratios)


def test_october_2008_is_a_shock_and_early_2007_is_not(sample_run: Path) -> None:
    ledger = open_ledger_readonly(sample_run)
    regimes = {}
    for entry in ledger.entries():
        decision = decode_entry(entry)
        if decision.symbol == "SPX":
            regimes[decision.id.partition("@")[2][:10]] = decision.regime
    ledger.close()
    assert regimes["2008-10-10"] == "shock"
    assert {regimes[day] for day in regimes if day.startswith("2007-01")} <= {"calm", "normal"}


def test_nothing_is_decided_before_it_could_be_known(sample_run: Path) -> None:
    ledger = open_ledger_readonly(sample_run)
    last_ns = 0
    for entry in nonempty(ledger.entries()):
        decision = decode_entry(entry)
        assert decision.as_of_ns >= decision.circumstances.bar_end_ns
        assert decision.as_of_ns >= last_ns
        last_ns = decision.as_of_ns
    ledger.close()


def test_entries_that_the_ledger_is_measured_with_are_as_large_as_those_of_the_sample(
    sample_run: Path,
) -> None:
    ledger = open_ledger_readonly(sample_run)
    try:
        sizes = [len(entry) for entry in ledger.entries() if not has_reading(entry)]
    finally:
        ledger.close()
    assert len(sizes) > 1000
    assert 0.9 * median(sizes) < median(map(len, compact_entries(200, seed=3))) < 1.1 * median(sizes)
