"""A run whose news is read ahead in other processes has the ledger of one that reads for itself."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from htfi.wiring import news_ahead
from htfi.wiring.news_ahead import MIN_ITEMS
from ibm_news import BODY, LINES


def write_inputs(folder: Path) -> None:
    rows = ["start,symbol,interval,open,high,low,close"]
    close = 100.0
    for day in range(60):
        close *= 1.01 if day % 3 else 0.985
        start = f"2024-{1 + day // 28:02d}-{1 + day % 28:02d}T00:00:00Z"
        rows.append(f"{start},IBM,1d,{close:.4f},{close * 1.01:.4f},{close * 0.99:.4f},{close:.4f}")
    (folder / "prices.csv").write_text("\n".join(rows) + "\n")
    lines = [
        f'{{"ts": "2024-{1 + day // 28:02d}-{1 + day % 28:02d}T{hour:02d}:00:00Z", "id": "n{day}-{hour}", '
        f'"headline": "{LINES[(day + hour) % len(LINES)]} {day}", "symbols": ["IBM"], "body": "{BODY}"}}'
        for day in range(25, 55)
        for hour in range(8, 18)
    ]
    assert len(lines) > 2 * MIN_ITEMS
    (folder / "wire.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_the_ledger_is_the_same(tmp_path: Path, htfi: Callable[..., str], monkeypatch) -> None:
    write_inputs(tmp_path)
    files = [str(tmp_path / name) for name in ("prices.csv", "wire.jsonl")]

    def root(num: int) -> str:
        monkeypatch.setattr(news_ahead, "num_processes", lambda _: num)
        told = htfi("run", *files, "--out", str(tmp_path / f"run{num}"), "--plain", "--no-report")
        found = re.search(r"entries, root ([0-9a-f]{64})", told)
        assert found is not None
        return found[1]

    assert root(0) == root(1) == root(3)
