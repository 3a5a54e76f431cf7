"""Processes of `htfi` that tests fork are what a start would give: streams, folder, environment, status, signals."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

import forked

ROW = '{"ts": "2024-01-02T00:00:00Z", "symbol": "ACME", "close": 100.0, "interval": "1d"}\n'


def parent_of(process: forked.Popen) -> int:
    return int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_streams_folder_environment_and_status_are_those_asked_for(tmp_path: Path) -> None:
    words = [*forked.HTFI, "run", "-", "--out", "out", "--plain", "--no-report"]
    done = forked.run(words, input=ROW, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no forecast of ACME/1d" in done.stderr
    assert "decisions.jsonl" in done.stdout
    assert (tmp_path / "out" / "ledger.db").is_file()
    environment = os.environ | {"HTFI_PIPELINE__GROUP_MS": "few"}
    with pytest.raises(subprocess.CalledProcessError, match="exit status 1") as refused:
        forked.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    assert "group_ms" in refused.value.stderr.lower()


def test_it_is_a_child_of_the_test_and_can_be_killed(tmp_path: Path) -> None:
    words = [*forked.HTFI, "run", "-", "--out", str(tmp_path), "--plain"]
    with forked.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as run:
        assert parent_of(run) == os.getpid()
        assert os.getsid(run.pid) == run.pid
        assert run.poll() is None
        run.kill()
        assert run.wait(30) == -signal.SIGKILL


def test_python_that_starts_otherwise_is_started() -> None:
    words = [*forked.HTFI, "--help"]
    said = forked.run(words, capture_output=True, text=True, check=True)
    verbose = os.environ | {"PYTHONVERBOSE": "1"}
    started = forked.run(words, capture_output=True, text=True, check=True, env=verbose)
    assert said.stderr == ""
    assert "import _frozen_importlib" in started.stderr
    assert said.stdout == started.stdout
