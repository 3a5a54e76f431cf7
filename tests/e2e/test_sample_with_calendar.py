"""The embedded sample with its calendar: served, verified, recomputed; the same root elsewhere and after SIGKILL."""

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

pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "HTFI_NARRATIVE__CALENDAR": "sample", "HTFI_PIPELINE__SNAPSHOT_S": "0.2"}


def start(folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "htfi", "run", "--plain", "--no-report", "--out", str(folder)],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(run: "subprocess.Popen[bytes]") -> None:
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors.decode()


def htfi(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "htfi", *arguments]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)


def root(folder: Path) -> str:
    ledger = open_ledger_readonly(folder)
    try:
        return f"{ledger.size}:{ledger.root().hex()}"
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calendar")
    finish(start(folder))
    return folder


def test_most_planned_decisions_are_served_and_read_after(folder: Path) -> None:
    served: dict[str, int] = {}
    for line in (folder / "decisions.jsonl").read_text().splitlines():
        if '"reasons":["prepared"]' not in line or "/amended" in line:
            continue
        told = json.loads(line)
        decision = told.get("decision", told)
        assert decision["plan"]["then"] == "speculative"
        release, _, words = decision["view"]["prepared"].partition(", ")
        assert decision["rationale"]["text"].count(release) == 1
        served[release] = served.get(release, 0) + 1
        if release == "fomc-2007-09-18":
            assert words == "a cut of 50 bp"
    assert len(served) >= 22
    assert set(served.values()) == {2}


def test_every_entry_is_derived_again(folder: Path) -> None:
    done = htfi("ledger", "verify", "--recompute", str(folder))
    assert done.returncode == 0, done.stderr


def test_the_words_of_a_prepared_view_are_written_again(folder: Path) -> None:
    done = htfi("ledger", "replay", str(folder), "SPX/1d@2008-03-18T20:15:00Z")
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("seed", [4])
def test_killed_again_and_again_it_ends_with_the_same_root(folder: Path, tmp_path: Path, seed: int) -> None:
    dice, num_killed = random.Random(seed), 0
    for _ in range(6):
        run = start(tmp_path)
        time.sleep(dice.uniform(1.5, 6.0))
        if run.poll() is None:
            run.send_signal(signal.SIGKILL)
        run.communicate(timeout=60)
        num_killed += run.returncode == -signal.SIGKILL
    assert num_killed >= 2, f"seed {seed}"
    finish(start(tmp_path))
    assert root(tmp_path) == root(folder), f"seed {seed}"


def test_another_calendar_is_another_run(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('[[release]]\nid = "a"\nkind = "cpi"\nsubject = "us"\nat = 2026-01-28T14:00:00Z\n')
    done = subprocess.run(
        [sys.executable, "-m", "htfi", "run", "--plain", "--out", str(folder)],
        env={**ENVIRONMENT, "HTFI_NARRATIVE__CALENDAR": str(other)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "holds a run with other calendar" in done.stderr


@pytest.mark.parametrize("text", ["[[release]]", "release = 1", "\0", "[[release]]\nid = 'a'\nkind = 'rate'"])
def test_a_bad_calendar_stops_the_start_with_one_line(tmp_path: Path, text: str) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "htfi", "run", "--plain", "--out", str(tmp_path / "out")],
        env={**ENVIRONMENT, "HTFI_NARRATIVE__CALENDAR": str(bad)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.strip().count("\n") == 0, done.stderr
    assert str(bad) in done.stderr
