"""`htfi stop` on running processes: by command, file, signal, dead man's switch; over restarts and kills."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import forked
from htfi.apps.cli.main import cli
from htfi.governance.control.entries import Stopped
from htfi.wiring.control import governance_entries, request_reenabling, request_stop

HTFI = [*forked.HTFI]
NUM_DAYS = 360


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("prices") / "prices.csv"
    rows = ["date,symbol,close"]
    for day in range(NUM_DAYS):
        date = time.strftime("%Y-%m-%d", time.gmtime(86_400 * (10_000 + day)))
        rows.append(f"{date},A,{100 + (day * 7919 % 101) / 50:.2f}")
    file.write_text("\n".join(rows), encoding="utf-8")
    return file


@pytest.fixture
def closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[contextlib.ExitStack]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with contextlib.ExitStack() as stack:
        yield stack


def start(
    closing: contextlib.ExitStack, prices: Path, folder: Path, *words: object
) -> "subprocess.Popen[bytes]":
    """A run over prices; `PACED` takes six seconds for them."""
    command = [*HTFI, "run", str(prices), "--out", str(folder), "--plain", "--no-report", *map(str, words)]
    run = closing.enter_context(
        forked.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HTFI_PIPELINE__GROUP_MS": "1", "HTFI_PIPELINE__SNAPSHOT_S": "0.1"},
        )
    )
    closing.callback(run.kill)
    return run


PACED = ("--pace", NUM_DAYS * 86_400 / 6)


def wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s, "it did not come in time"
        time.sleep(0.01)


def lines(folder: Path) -> list[dict[str, object]]:
    path = folder / "decisions.jsonl"
    whole = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in whole if line.endswith(b"\n")]


def is_withheld(line: dict[str, object]) -> bool:
    return "withheld" in line


def has_stopped(folder: Path) -> bool:
    found = lines(folder)
    return bool(found) and is_withheld(found[-1])


def here(*words: object) -> Result:
    """The command in this process, where what is proved lies in files."""
    return CliRunner().invoke(cli, [str(word) for word in words])


def verify(folder: Path) -> Result:
    return here("ledger", "verify", folder, "--recompute")


def end(run: "subprocess.Popen[bytes]") -> None:
    run.send_signal(signal.SIGTERM)
    run.wait(30.0)


def _by_command(folder: Path, run: "subprocess.Popen[bytes]") -> None:
    request_stop(folder, "firm", "Ann", "test")


def _by_file(folder: Path, run: "subprocess.Popen[bytes]") -> None:
    (folder / "control").mkdir(exist_ok=True)
    (folder / "control" / "STOP").touch()


def _by_signal(folder: Path, run: "subprocess.Popen[bytes]") -> None:
    run.send_signal(signal.SIGUSR1)


def _of_all_runs(folder: Path, run: "subprocess.Popen[bytes]") -> None:
    request_stop(None, "firm", "Ann", "test")


@pytest.mark.parametrize(
    "how",
    [
        _by_command,
        pytest.param(_by_file, marks=pytest.mark.slow),
        pytest.param(_by_signal, marks=pytest.mark.slow),
        _of_all_runs,
    ],
)
def test_each_way_alone_stops_a_run_and_a_restart_is_stopped_too(
    how: Callable[[Path, "subprocess.Popen[bytes]"], None],
    closing: contextlib.ExitStack,
    prices: Path,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    run = start(closing, prices, folder, *PACED)
    wait_for(lambda: len(lines(folder)) > 10)
    how(folder, run)
    wait_for(lambda: has_stopped(folder))
    end(run)
    num = len(lines(folder))
    again = here("run", prices, "--out", folder, "--plain", "--no-report")
    assert again.exit_code == 0, again.output
    found = lines(folder)
    first = next(place for place, line in enumerate(found) if is_withheld(line))
    assert 10 < first <= num < NUM_DAYS - 20
    assert len(found) == NUM_DAYS - 20
    assert [is_withheld(line) for line in found] == [place >= first for place in range(len(found))]
    assert len(list(governance_entries(folder))) == 1
    checked = verify(folder)
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert "governance log: 1 change, each as it was recorded" in checked.stdout


def test_a_run_of_which_nothing_is_released_ends_without_a_page(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    folder, few = tmp_path / "run", tmp_path / "few.csv"
    few.write_text("\n".join(prices.read_text(encoding="utf-8").splitlines()[:40]), encoding="utf-8")
    request_stop(None, "firm", "Ann", "test")
    done = forked.run(
        [*HTFI, "run", str(few), "--out", str(folder), "--plain"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "19 by policy, recorded but not released" in done.stdout
    assert all(is_withheld(line) for line in lines(folder))
    assert not (folder / "report.html").exists()


def test_a_named_person_reenables_a_stopped_run(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run = start(closing, prices, folder, *PACED)
    wait_for(lambda: len(lines(folder)) > 10)
    request_stop(folder, "firm", "Ann", "test")
    wait_for(lambda: has_stopped(folder))
    request_reenabling(folder, "firm", "Bob", "looked at")
    wait_for(lambda: not is_withheld(lines(folder)[-1]))
    end(run)
    assert verify(folder).exit_code == 0


@pytest.mark.slow
def test_a_supervisor_that_falls_silent_stops_the_run(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    folder, alive = tmp_path / "run", tmp_path / "alive"
    alive.touch()
    run = start(closing, prices, folder, *PACED, "--dead-man", f"{alive}:2")

    def touch() -> bool:
        alive.touch()
        return len(lines(folder)) > 10

    wait_for(touch)
    assert not has_stopped(folder)
    wait_for(lambda: has_stopped(folder))  # nobody touches it any more
    end(run)
    (entry,) = governance_entries(folder)
    assert entry.cause == "dead_man"  # type: ignore[union-attr]


def test_a_run_killed_right_after_a_stop_is_stopped_when_it_goes_on(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run = start(closing, prices, folder, *PACED)
    wait_for(lambda: len(lines(folder)) > 10)
    (folder / "control").mkdir()
    (folder / "control" / "STOP").touch()
    run.send_signal(signal.SIGKILL)
    run.wait(30.0)
    again = start(closing, prices, folder)
    assert again.wait(60.0) == 0
    assert is_withheld(lines(folder)[-1])
    assert verify(folder).exit_code == 0


def test_a_governance_log_that_is_gone_or_altered_is_found(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    (folder / "control").mkdir(parents=True)
    (folder / "control" / "STOP").touch()
    assert start(closing, prices, folder).wait(60.0) == 0
    log = folder / "governance"
    database = (log / "ledger.db").read_bytes()
    (log / "ledger.db").write_bytes(database.replace(b'"why":"', b'"why":"X', 1)[: len(database)])
    assert verify(folder).exit_code == 1
    shutil.rmtree(log)
    found = verify(folder)
    assert found.exit_code == 1
    assert "the governance log has 0 before it: entries are gone" in str(found.exception)


def test_a_stop_is_given_though_the_disk_has_no_room_for_its_request(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run = start(closing, prices, folder, *PACED)
    wait_for(lambda: len(lines(folder)) > 10)
    full = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from htfi.apps.cli.main import main\n"
        "main()\n"
    )
    words = [sys.executable, "-c", full, "stop", str(folder), "--by", "Ann", "--why", "test"]
    narrow = forked.run([*words, "--scope", "series:A"], capture_output=True, text=True, check=False)
    assert (narrow.returncode, len(narrow.stderr.splitlines())) == (1, 1)
    assert "without --scope an empty file stops everything" in narrow.stderr
    done = forked.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the disk has no room for the request: an empty file STOP stands for it" in done.stdout
    wait_for(lambda: has_stopped(folder))
    end(run)
    assert [entry.by for entry in governance_entries(folder) if isinstance(entry, Stopped)] == ["a STOP file"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stop", "nowhere", "--by", "Ann", "--why", "x"], "nowhere is not the folder of a run"),
        (["stop", "--scope", "room:1", "--by", "Ann", "--why", "x"], "scope 'room:1' is none"),
        (["stop", "--by", " ", "--why", "x"], "--by must be one line of 1 to 240 characters"),
        (["reenable", "--by", "Ann", "--why", "a\nb"], "--why must be one line of 1 to 240 characters"),
    ],
)
def test_bad_input_gets_one_line(
    words: list[str], said: str, closing: contextlib.ExitStack, tmp_path: Path
) -> None:
    found = forked.run(
        [*HTFI, *words], capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ}
    )
    assert found.returncode == 1
    assert said in found.stderr
    assert len(found.stderr.splitlines()) == 1
