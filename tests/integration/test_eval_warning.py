"""`htfi eval warning` on the embedded sample and on a person's own files."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.domain.errors import InvalidInput
from htfi_eval.eval.prices import load_prices
from htfi_eval.eval.warning import data as warning_data
from htfi_eval.eval.warning.command import command


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(warning_data, "data_folder", lambda _: None)

    def invoke(*arguments: str):
        wanted = [*arguments, "--trials", str(tmp_path / "trials")]
        return CliRunner().invoke(command, wanted, catch_exceptions=False)

    return invoke


def test_the_sample_is_judged_with_a_note_and_a_page(run, tmp_path):
    file, page = tmp_path / "w.json", tmp_path / "w.html"
    done = run("--json", str(file), "--html", str(page))
    assert done.exit_code == 0
    told = json.loads(file.read_text())
    assert any("embedded sample" in note for note in told["notes"])
    assert any("the planted leak was detected" in note for note in told["notes"])
    metrics = told["metrics"]
    assert metrics["leaks"] == 0.0
    assert metrics["planted_leak_caught"] == 1.0
    assert {"roc_auc", "pr_auc", "base_rate", "false_alarms_a_year", "hit_rate", "median_lead_days"} <= set(
        metrics
    )
    assert metrics["roc_auc_low"] <= metrics["roc_auc"] <= metrics["roc_auc_high"]
    assert metrics["num_events"] == 4  # 2008-01, -06, -09 and 2009-01
    assert "So few events are no proof" in told["lead"]
    assert {chart["type"] for chart in told["charts"]} >= {
        "lines",
        "curves",
        "histogram",
        "bars",
        "dots",
        "heat",
    }
    assert "<svg" in page.read_text()


def test_own_files_are_taken_and_too_short_ones_refused(run, tmp_path):
    prices = load_prices("sample")
    close = prices.close[:, prices.symbols.index("SPX")]
    rows = [
        (day, f"{value:.4f}") for day, value in zip(prices.dates(), close, strict=True) if np.isfinite(value)
    ]
    mine, short = tmp_path / "mine.csv", tmp_path / "short.csv"
    for path, kept in ((mine, rows), (short, rows[:300])):
        with path.open("w", newline="") as out:
            csv.writer(out).writerows([("date", "close"), *kept])
    assert "num_events = 4\n" in run("--index", str(mine)).output
    with pytest.raises(InvalidInput, match="300 sessions have too few events"):
        run("--index", str(short))
    with pytest.raises(InvalidInput, match=r"no folder 'panels'"):
        run("--data", str(tmp_path))
