"""`htfi bench ledger` measures, reports and cleans up."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.domain.decision import encode_decision
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi_eval.bench import ledger as bench
from htfi_eval.bench.ledger_entries import compact_entries, json_entries


def test_bench_reports_both_figures_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "NUM_RUNS", 2)
    monkeypatch.setattr(bench, "NUM_PROOFS", 20)
    monkeypatch.setattr(bench, "NUM_DISTINCT", 100)
    scratch, figures = tmp_path / "scratch", tmp_path / "out" / "ledger.json"
    scratch.mkdir()
    arguments = ["--entries", "2000", "--folder", str(scratch), "--json", str(figures)]
    result = CliRunner().invoke(bench.command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    body = json.loads(figures.read_text())
    assert set(body["metrics"]) == {
        "appends_per_s", "json_appends_per_s", "verify_100k_s", "json_verify_100k_s"
    }  # fmt: skip
    assert all(value > 0 for value in body["metrics"].values())
    told = [row["what"] for row in body["rows"]]
    assert told[0] == "append, groups of 1,000"
    assert body["metrics"]["appends_per_s"] == body["rows"][0]["entries/s"]
    assert {"append, groups of 256", "append, groups of 256, as JSON"} < set(told)
    assert {"verify 2,000 entries", "verify 2,000 entries, as JSON"} < set(told)
    assert body["data"] == "entries of 1.5 kB, as JSON 4.5 kB"
    assert any(what.startswith("pymerkle") for what in told)
    floors = {row["what"]: row["the floor is"] for row in body["rows"] if row.get("floor", 0) > 0}
    assert len(floors) == 2 * 3 + 1 + 2 * 3
    assert floors["append, groups of 256"].endswith("one SQLite transaction of them, synced")
    assert floors["append, groups of 256, no disk sync"].endswith("one SQLite transaction of them")
    assert floors["verify 2,000 entries"].startswith(
        "median s: reading the file, SHA-256 of the entries' bytes"
    )
    assert list(scratch.iterdir()) == []


def test_absent_peer_is_a_line_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "NUM_RUNS", 2)
    monkeypatch.setattr(bench, "NUM_PROOFS", 2)
    monkeypatch.setattr(bench, "NUM_DISTINCT", 100)
    monkeypatch.setitem(sys.modules, "pymerkle", None)
    arguments = ["--entries", "1000", "--folder", str(tmp_path)]
    result = CliRunner().invoke(bench.command, arguments, catch_exceptions=False, env={"COLUMNS": "160"})
    assert result.exit_code == 0
    assert "pymerkle is not installed" in result.stdout


def test_bench_entries_are_canonical_decisions_and_the_same_for_one_seed() -> None:
    worded = json_entries(5, seed=3)
    assert worded == json_entries(5, seed=3)
    assert [encode_decision(decode_entry(entry)) for entry in worded] == worded
    compact = compact_entries(5, seed=3)
    assert compact == compact_entries(5, seed=3)
    assert [encode_entry(decode_entry(entry)) for entry in compact] == compact
