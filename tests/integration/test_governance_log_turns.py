"""Processes write one governance log in turns: none is refused for a moment's wait, and nothing is lost."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from htfi.domain.errors import LedgerUnavailable
from htfi.governance.sandbox.results import Enforcement
from htfi.governance.sandbox.trials import CandidateKind
from htfi.wiring.governance_log import GOVERNANCE_DATABASE, open_governance_log, read_governance_log
from htfi.wiring.sandbox import examination
from htfi.wiring.sandbox.candidates import Candidate
from htfi.wiring.sandbox.examination import Examination, examine
from htfi.wiring.sandbox.history import TrialHistory

WRITER = """
import sys
from pathlib import Path
from htfi.wiring.governance_log import open_governance_log
for number in range(int(sys.argv[3])):
    log = open_governance_log(Path(sys.argv[1]))
    log.append([f"{sys.argv[2]} {number}".encode()])
    log.close()
"""
NUM_WRITERS, NUM_ENTRIES = 3, 8


def entries(folder: Path) -> list[str]:
    log = read_governance_log(folder)
    assert log is not None
    try:
        log.verify()
        return [entry.decode() for entry in log.entries()]
    finally:
        log.close()


def test_processes_that_write_at_once_all_come_to_write(tmp_path: Path) -> None:
    log = open_governance_log(tmp_path)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name, str(NUM_ENTRIES)])
        for name in ("a", "b", "c")
    ]
    log.append([b"first"])  # they have begun, and wait
    log.close()
    assert [writer.wait() for writer in writers] == [0] * NUM_WRITERS
    found = entries(tmp_path)
    assert found[0] == "first"
    assert sorted(found[1:]) == sorted(f"{name} {n}" for name in "abc" for n in range(NUM_ENTRIES))


def test_who_waits_in_vain_says_for_whom_and_for_how_long(tmp_path: Path) -> None:
    log = open_governance_log(tmp_path)
    with pytest.raises(LedgerUnavailable) as caught:
        open_governance_log(tmp_path, 0.05)
    log.close()
    assert "is in use by process " in str(caught.value)
    assert str(caught.value).endswith(" and was for 0.05 s: run this command again once it has ended")
    assert str(tmp_path / GOVERNANCE_DATABASE) in str(caught.value)


class OneWriterBeside:
    """An examiner during whose trials another process records something, or tries the same candidate."""

    enforcement, printed = Enforcement(), ""

    def __init__(self, beside: Callable[[], None]) -> None:
        self._beside = beside

    def run(self, *_: object) -> list[object]:
        self._beside()
        return []


def test_a_sandbox_trial_lets_others_write_and_counts_the_tries_that_ended_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = Candidate("new", CandidateKind.SETTINGS, "ab" * 32, "settings", tmp_path / "new.toml")
    history = cast("TrialHistory", SimpleNamespace(digest="cd" * 32, bars=()))
    tries: list[Examination] = []

    def examine_while(beside: Callable[[], None]) -> None:
        monkeypatch.setattr(examination, "_Examiner", lambda *_: OneWriterBeside(beside))
        tries.append(examine(candidate, history, governance=tmp_path, seed=1))

    def record_a_reading() -> None:
        log = open_governance_log(tmp_path, 0.0)
        log.append([b'{"kind":"read"}'])
        log.close()

    examine_while(lambda: examine_while(record_a_reading))
    assert [one.verdict.num_tries for one in tries] == [1, 2]
    assert [one.record for one in tries] == [1, 2]
    assert len(entries(tmp_path)) == 3
