"""`htfi bench narrative` reports its figures, with a floor beside what the encoder and the cache do."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi_eval.bench import news, news_timing

pytestmark = pytest.mark.slow  # opens the encoder and its heads several times


def test_figures_stand_beside_their_floors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ITEMS", 20), ("BATCH", 16)):
        monkeypatch.setattr(news_timing, name, value)
        monkeypatch.setattr(news, name, value)
    monkeypatch.setattr(news, "NUM_ITEMS_PER_RUN", 88)
    monkeypatch.setattr(news, "available_cores", lambda: [1, 0])
    file = tmp_path / "narrative.json"
    words = ["--runs", "1", "--memory-items", "0", "--data", str(tmp_path), "--json", str(file)]
    done = CliRunner().invoke(news.command, words, catch_exceptions=False)
    assert done.exit_code == 0
    body = json.loads(file.read_text())
    assert set(body["metrics"]) == {
        "item_p50_ms", "item_p99_ms", "item_all_cores_p50_ms", "item_all_cores_p99_ms", "batch_items_per_s",
        "batch_in_processes_items_per_s", "cache_hit_us",
    }  # fmt: skip
    assert body["data"] == "headlines of the simulated market"
    floors = [row["what"] for row in body["rows"] if row.get("floor", 0) > 0]
    assert floors == [
        "one by one, one core", "one by one, 2 cores", "in batches, one core", "in batches, all cores",
        "in batches, a process a core", "read before, from the cache", "stage: encode, one by one",
        "stage: encode, in batches",
    ]  # fmt: skip
