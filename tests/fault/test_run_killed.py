"""SIGKILL at any moment: no recorded decision lost, none released twice or unrecorded, the same root at the end."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from htfi.wiring.ledger import open_ledger_readonly

HTFI = [sys.executable, "-m", "htfi"]
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six symbols, 260 days, with some rows that go to the quarantine and a few headlines' worth of gaps."""
    rng = random.Random(11)
    file = tmp_path_factory.mktemp("prices") / "prices.csv"
    level = {f"S{k}": 100.0 + k for k in range(6)}
    with file.open("w") as out:
        out.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(260):
            for symbol, last in level.items():
                close = last * (1 + rng.gauss(0, 0.01))
                high, low = max(last, close) * 1.003, min(last, close) * 0.997
                if rng.random() < 0.01:
                    close = -1.0
                out.write(f"{_day(day)},{symbol},{last:.4f},{high:.4f},{low:.4f},{close:.4f},{rng.randrange(10**6)}\n")
                level[symbol] = abs(close) if close > 0 else last
    return file


def _day(number: int) -> str:
    return time.strftime("%Y-%m-%dT21:00:00Z", time.gmtime(1_262_304_000 + 86_400 * number))


def start(prices: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*HTFI, "run", str(prices), "--out", str(folder), "--plain", "--no-report"],
        env={**os.environ, "HTFI_PIPELINE__SNAPSHOT_S": "0.05", "HTFI_PIPELINE__GROUP_MS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(prices: Path, folder: Path) -> None:
    done = start(prices, folder)
    _, errors = done.communicate(timeout=120)
    assert done.returncode == 0, errors.decode()


def root(folder: Path) -> str:
    ledger = open_ledger_readonly(folder)
    try:
        return f"{ledger.size}:{ledger.root().hex()}"
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def undisturbed(prices: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    finish(prices, folder)
    assert int(root(folder).partition(":")[0]) > 1000
    return folder


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_killed_again_and_again_ends_like_an_undisturbed_one(
    prices: Path, undisturbed: Path, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    print(f"seed {seed}")
    killed_at: list[int] = []
    for _ in range(6):
        run = start(prices, tmp_path)
        _wait_for_lines(tmp_path / "decisions.jsonl", run, rng.randrange(0, 1100))
        time.sleep(rng.random() * 0.02)
        if run.poll() is None:
            run.send_signal(signal.SIGKILL)
        run.communicate(timeout=60)
        killed_at.append(run.returncode)
        check_released(tmp_path)
    assert -signal.SIGKILL in killed_at
    finish(prices, tmp_path)
    assert root(tmp_path) == root(undisturbed)
    for name in ("decisions.jsonl", "quarantine.jsonl"):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes()


def _wait_for_lines(file: Path, run: subprocess.Popen[bytes], num_lines: int) -> None:
    while run.poll() is None:
        if file.exists() and file.read_bytes().count(b"\n") >= num_lines:
            return
        time.sleep(0.002)


def check_released(folder: Path) -> None:
    """Every whole line stands in the ledger at its index, and indices run from 0 without gap or repeat."""
    if not (folder / "decisions.jsonl").exists() or not (folder / "ledger.db").exists():
        return
    ledger = open_ledger_readonly(folder)
    try:
        lines = (folder / "decisions.jsonl").read_bytes().split(b"\n")[:-1]
        assert len(lines) <= ledger.size
        for index, line in enumerate(lines):
            assert json.loads(line)["index"] == index
            assert ledger.entry(index) in line or b'"withheld":true' in line
    finally:
        ledger.close()
