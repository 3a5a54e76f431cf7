"""Clocks that stand still: a run ends with the same decisions, whatever the machine's clocks say."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

STOPPED = """
import sys, time
for name in sys.argv.pop(1).split(","):
    now = getattr(time, name)()
    setattr(time, name, lambda now=now: now)
from htfi.apps.cli.main import main
main()
"""
WALL = "time,time_ns"
MONOTONIC = "monotonic,monotonic_ns,perf_counter,perf_counter_ns"


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(WALL, marks=pytest.mark.slow),
        pytest.param(MONOTONIC, marks=pytest.mark.slow),
        f"{WALL},{MONOTONIC}",
    ],
)
def test_a_run_whose_clocks_stand_ends_like_any_other(
    prices: Path, same_outcome: Callable[[Path], None], tmp_path: Path, names: str
) -> None:
    words = [names, "run", str(prices), "--out", str(tmp_path / "run"), "--plain"]
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "HTFI_PIPELINE__SNAPSHOT_S": "0.05", "HTFI_PIPELINE__GROUP_MS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "nan" not in done.stdout.lower()
    assert "inf" not in done.stdout.lower().split()
    same_outcome(tmp_path / "run")


def test_a_paced_run_with_news_whose_wall_clock_stands_ends(prices: Path, tmp_path: Path) -> None:
    news = tmp_path / "news.jsonl"
    news.write_text(
        '{"ts":"2010-03-01T12:00:00Z","id":"n1","headline":"S1 cuts its profit outlook for the year","symbol":"S1"}\n'
    )
    words = [WALL, "run", str(prices), str(news), "--out", str(tmp_path / "run"), "--plain", "--pace", "1e8"]
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "decisions.jsonl").read_bytes().count(b"\n") > 500


@pytest.mark.parametrize("names", [WALL, pytest.param(f"{WALL},{MONOTONIC}", marks=pytest.mark.slow)])
def test_a_stream_whose_clocks_stand_ends_with_every_decision(
    prices: Path, undisturbed: Path, tmp_path: Path, names: str
) -> None:
    """Piped in, as a live feed is read."""
    words = [names, "run", "-", "--out", str(tmp_path / "run"), "--plain", "--no-report"]
    with prices.open(newline="") as rows:
        lines = [json.dumps({**row, "interval": "1d"}) + "\n" for row in csv.DictReader(rows)]
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, *words],
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    streamed, whole = (
        [
            line.get("decision", line)["id"]
            for line in map(json.loads, (folder / "decisions.jsonl").read_bytes().splitlines())
        ]
        for folder in (tmp_path / "run", undisturbed)
    )
    assert len(whole) > 500
    assert streamed == whole
