"""SIGKILL at any moment: no recorded decision lost, none released twice or unrecorded, the same root at the end."""

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from htfi.pipeline.record.entry import entry_json
from htfi.wiring.ledger import open_ledger_readonly

Process = subprocess.Popen[bytes]


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_a_run_killed_again_and_again_ends_like_an_undisturbed_one(
    prices: Path,
    start: Callable[..., Process],
    wait_for_lines: Callable[[Path, Process, int], None],
    run_here: Callable[..., None],
    same_outcome: Callable[[Path], None],
    tmp_path: Path,
    seed: int,
) -> None:
    rng = random.Random(seed)
    ends: list[int] = []
    for _ in range(5):
        run = start([prices], tmp_path)
        wait_for_lines(tmp_path / "decisions.jsonl", run, rng.randrange(550))
        time.sleep(rng.random() * 0.02)
        if run.poll() is None:
            run.send_signal(signal.SIGKILL)
        run.communicate(timeout=60)
        ends.append(run.returncode)
        every_released_line_is_recorded_once(tmp_path)
    assert -signal.SIGKILL in ends, f"seed {seed}: {ends}"
    run_here([prices], tmp_path)
    same_outcome(tmp_path)


@pytest.mark.slow
def test_standard_input_killed_and_piped_again_ends_like_the_file(
    prices: Path,
    start: Callable[..., Process],
    wait_for_lines: Callable[[Path, Process, int], None],
    tmp_path: Path,
) -> None:
    lines = json_lines(prices)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run = start(["-"], whole, stdin=subprocess.PIPE)
    run.communicate(lines, timeout=120)
    run = start(["-"], broken, stdin=subprocess.PIPE)
    assert run.stdin is not None
    run.stdin.write(lines[: len(lines) // 2])
    run.stdin.flush()
    wait_for_lines(broken / "decisions.jsonl", run, 100)
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=60)
    every_released_line_is_recorded_once(broken)
    run = start(["-"], broken, stdin=subprocess.PIPE)
    _, errors = run.communicate(lines, timeout=120)
    assert run.returncode == 0, errors.decode()
    assert (broken / "decisions.jsonl").read_bytes() == (whole / "decisions.jsonl").read_bytes()
    assert len((whole / "decisions.jsonl").read_bytes()) > 1_000_000


def json_lines(prices: Path) -> bytes:
    head, *rows = prices.read_text().splitlines()
    names = head.split(",")
    return "".join(
        json.dumps(
            {
                name: cell if name in ("ts", "symbol") else float(cell)
                for name, cell in zip(names, row.split(","), strict=True)
            }
            | {"interval": "1d"}
        )
        + "\n"
        for row in rows
    ).encode()


def every_released_line_is_recorded_once(folder: Path) -> None:
    """Every whole line stands in the ledger at its index, and indices run from 0 without gap or repeat."""
    if not (folder / "decisions.jsonl").exists() or not (folder / "ledger.db").exists():
        return
    ledger = open_ledger_readonly(folder)
    try:
        lines = (folder / "decisions.jsonl").read_bytes().split(b"\n")[:-1]
        assert len(lines) <= ledger.size
        for index, line in enumerate(lines):
            assert json.loads(line)["index"] == index
            assert entry_json(ledger.entry(index)) in line or b'"withheld":true' in line
    finally:
        ledger.close()
