"""A live run that answers headlines, killed after an answer and begun again without its saved state."""

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import forked
from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision
from htfi.domain.time import NS_PER_DAY, format_ns
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly

MAPPING = """[[source]]
name = "prices"
path = "prices.csv"

[[source]]
name = "wire"
stdin = true
kind = "news"
stamp = "arrival"
"""
SETTINGS = """[triggers]
min_interval_s = 0.5
"""
TEXTS = (
    ("ACME", "Acme cuts its full-year profit guidance after weak sales in China"),
    ("BETA", "Beta wins a record order worth 4 billion dollars"),
    ("ACME", "Regulator fines Acme 900 million dollars"),
    ("ACME", "Acme recalls two million cars"),
)
Process = subprocess.Popen[bytes]


def write_sources(folder: Path) -> None:
    """Daily bars until the last midnight."""
    rng = random.Random(2)
    midnight_ns = time.time_ns() // NS_PER_DAY * NS_PER_DAY
    with (folder / "prices.csv").open("w") as rows:
        rows.write("start,symbol,interval,open,high,low,close\n")
        for day in range(45):
            for symbol in ("ACME", "BETA"):
                close = 100.0 + rng.gauss(0, 1)
                start = format_ns(midnight_ns - (45 - day) * NS_PER_DAY)
                rows.write(f"{start},{symbol},1d,{close:.2f},{close + 1:.2f},{close - 1:.2f},{close:.2f}\n")
    (folder / "feeds.toml").write_text(MAPPING)
    (folder / "settings.toml").write_text(SETTINGS)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Process]]:
    """Starts a run in the test's folder; what still runs at the test's end is killed."""
    started: list[Process] = []

    def begin() -> Process:
        started.append(open_run(tmp_path))
        return started[-1]

    yield begin
    for run in started:
        run.kill()
        run.communicate(timeout=60)


def open_run(folder: Path) -> Process:
    words = [
        "run",
        "--map",
        "feeds.toml",
        "--settings",
        "settings.toml",
        "--out",
        "run",
        "--plain",
        "--no-report",
    ]
    return forked.Popen(
        [*forked.HTFI, *words],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def make_lines() -> list[bytes]:
    """The headlines as a wire sends them now."""
    now = format_ns(time.time_ns())
    rows = [
        {"id": f"h{place}", "headline": text, "symbols": [symbol], "ts": now}
        for place, (symbol, text) in enumerate(TEXTS)
    ]
    return [json.dumps(row).encode() + b"\n" for row in rows]


def send(run: Process, lines: list[bytes]) -> None:
    assert run.stdin is not None
    run.stdin.write(b"".join(lines))
    run.stdin.flush()


def wait_for_answers(folder: Path, run: Process, num: int) -> None:
    journal = folder / "run" / "decisions.jsonl"
    for _ in range(6_000):
        if journal.exists() and journal.read_bytes().count(b'/news","symbol"') >= num:
            return
        assert run.poll() is None, run.communicate()[1].decode()
        time.sleep(0.01)
    raise AssertionError(f"fewer than {num} answers came")


def decisions(folder: Path) -> list[Decision]:
    ledger = open_ledger_readonly(folder / "run")
    try:
        return [decode_entry(entry) for entry in ledger.entries()]
    finally:
        ledger.close()


def test_what_it_answered_is_answered_again_at_the_same_instants_and_equals_the_ledger(
    tmp_path: Path, start: Callable[[], Process]
) -> None:
    write_sources(tmp_path)
    run = start()
    wait_for_bars(tmp_path, run)
    lines = make_lines()
    send(run, lines[:2])
    wait_for_answers(tmp_path, run, 2)
    send(run, lines[2:3])  # within the quiet interval: answered when it ends
    wait_for_answers(tmp_path, run, 3)
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=60)
    before = decisions(tmp_path)
    (tmp_path / "run" / "state.bin").unlink(missing_ok=True)
    run = start()
    send(run, lines)  # the first three are in the inbox already
    wait_for_answers(tmp_path, run, 4)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 0, errors.decode()
    after = decisions(tmp_path)
    assert after[: len(before)] == before
    answers = [one for one in after if one.is_between_bars and not one.amends]
    assert [one.symbol for one in answers] == [symbol for symbol, _ in TEXTS]
    assert answers[2].as_of_ns - answers[0].as_of_ns >= 500_000_000
    words = ["ledger", "verify", str(tmp_path / "run"), "--recompute"]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0


def wait_for_bars(folder: Path, run: Process) -> None:
    """Until the newest bars are decided: their lines have come."""
    journal = folder / "run" / "decisions.jsonl"
    newest = format_ns(time.time_ns() // NS_PER_DAY * NS_PER_DAY).encode()
    for _ in range(6_000):
        if journal.exists() and journal.read_bytes().count(b"@" + newest + b'"') >= 2:
            return
        assert run.poll() is None, run.communicate()[1].decode()
        time.sleep(0.01)
    raise AssertionError("the bars were not decided")
