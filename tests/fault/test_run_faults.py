"""What a run withstands: Ctrl-C, a full disk, a read-only folder, a second process, other settings, a cut ledger."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from htfi.domain.errors import HtfiError
from htfi.wiring.ledger import open_ledger_readonly

Process = subprocess.Popen[bytes]
Start = Callable[..., Process]
RunHere = Callable[..., None]
# Root writes where it may not; without these two capabilities it is held to the permissions like anybody.
DROPPED = "-dac_override,-dac_read_search"
WITHOUT_OVERRIDE = ("setpriv", f"--bounding-set={DROPPED}", f"--inh-caps={DROPPED}")


def one_line(errors: bytes) -> str:
    """The single line that a person sees; no traceback, nothing else."""
    lines = [line for line in errors.decode().splitlines() if line]
    assert len(lines) == 1, errors.decode()
    assert lines[0].startswith("htfi: ")
    return lines[0]


@contextmanager
def refused(words: str) -> Iterator[None]:
    """The error that `htfi` shows as one line, with these words."""
    with pytest.raises(HtfiError, match=words) as refusal:
        yield
    assert "\n" not in str(refusal.value)


def test_either_signal_drains_and_the_same_command_goes_on(
    prices: Path,
    start: Start,
    wait_for_lines: Callable[[Path, Process, int], None],
    run_here: RunHere,
    same_outcome: Callable[[Path], None],
    tmp_path: Path,
) -> None:
    num_lines = 0
    for signum in (signal.SIGINT, signal.SIGTERM):
        run = start([prices], tmp_path, "--pace", "4e6")
        wait_for_lines(tmp_path / "decisions.jsonl", run, num_lines + 50)
        run.send_signal(signum)
        _, errors = run.communicate(timeout=30)
        assert run.returncode == 130
        assert "stopped" in one_line(errors)
        assert (tmp_path / "decisions.parquet").exists()
        before, num_lines = num_lines, (tmp_path / "decisions.jsonl").read_bytes().count(b"\n")
        recorded = open_ledger_readonly(tmp_path)
        assert num_lines == recorded.size > before
        recorded.close()
    run_here([prices], tmp_path)
    same_outcome(tmp_path)


@pytest.mark.parametrize(
    "blocks", [pytest.param(600, marks=pytest.mark.slow), 1500, pytest.param(3000, marks=pytest.mark.slow)]
)
def test_a_full_disk_stops_the_run_and_loses_nothing(
    prices: Path,
    start: Start,
    run_here: RunHere,
    same_outcome: Callable[[Path], None],
    tmp_path: Path,
    blocks: int,
) -> None:
    limited = ("bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash")  # a file may grow to so many KiB
    run = start([prices], tmp_path, command=limited)
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 1
    assert "none was released unrecorded" in one_line(errors)
    ledger = open_ledger_readonly(tmp_path)
    lines = (tmp_path / "decisions.jsonl").read_bytes().split(b"\n")[:-1]
    assert [json.loads(line)["index"] for line in lines] == list(range(len(lines)))
    assert len(lines) <= ledger.size
    ledger.close()
    run_here([prices], tmp_path)
    same_outcome(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a disk of so many MiB of its own, or makes the one that is there larger."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(options: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], capture_output=True
        )
        if done.returncode != 0:
            pytest.skip("needs the right to mount a disk; the limit on file sizes above is tried everywhere")
        return disk

    yield mount
    subprocess.run(["umount", str(disk)], capture_output=True)


@pytest.mark.parametrize(
    "mebibytes", [pytest.param(2, marks=pytest.mark.slow), 4, pytest.param(7, marks=pytest.mark.slow)]
)
def test_a_disk_that_is_really_full_loses_nothing_either(
    prices: Path,
    start: Start,
    run_here: RunHere,
    same_outcome: Callable[[Path], None],
    small_disk: Callable[[str], Path],
    mebibytes: int,
) -> None:
    folder = small_disk(f"size={mebibytes}m") / "run"
    run = start([prices], folder)
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 1
    line = one_line(errors)
    assert "full" in line or "No space left" in line
    small_disk("remount,size=100m")
    run_here([prices], folder)
    same_outcome(folder)


def test_a_read_only_folder_is_one_clear_line(prices: Path, start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    folder.mkdir(mode=0o555)
    run = start([prices], folder, command=WITHOUT_OVERRIDE if os.geteuid() == 0 else ())
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    line = one_line(errors)
    assert str(folder) in line
    assert "ermission denied" in line


def test_a_second_process_on_the_same_folder_is_refused(
    prices: Path,
    start: Start,
    wait_for_lines: Callable[[Path, Process, int], None],
    run_here: RunHere,
    tmp_path: Path,
) -> None:
    first = start([prices], tmp_path, "--pace", "2e6")
    wait_for_lines(tmp_path / "decisions.jsonl", first, 1)
    with refused(str(first.pid)):
        run_here([prices], tmp_path)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    assert first.returncode == 130


def test_other_settings_in_the_same_folder_are_refused(
    prices: Path, undisturbed: Path, run_here: RunHere, tmp_path: Path
) -> None:
    shutil.copytree(undisturbed, tmp_path / "run")
    settings = tmp_path / "settings.toml"
    settings.write_text("[policy]\nmax_band_width = 0.123\n")
    with refused("other settings"):
        run_here([prices], tmp_path / "run", "--settings", str(settings))


def test_without_its_saved_state_a_run_replays_and_agrees_with_its_ledger(
    prices: Path, undisturbed: Path, run_here: RunHere, same_outcome: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    (folder / "state.bin").unlink()
    run_here([prices], folder)
    same_outcome(folder)


def test_changed_inputs_are_noticed_when_replayed_over_their_ledger(
    prices: Path, undisturbed: Path, run_here: RunHere, tmp_path: Path
) -> None:
    folder, changed = tmp_path / "run", tmp_path / "prices.csv"
    shutil.copytree(undisturbed, folder)
    (folder / "state.bin").unlink()
    rows = prices.read_text().splitlines(keepends=True)
    rows[500] = rows[501]
    changed.write_text("".join(rows))
    with refused("differs from its entry"):
        run_here([changed], folder)


def test_released_decisions_without_their_ledger_are_refused(
    prices: Path, undisturbed: Path, run_here: RunHere, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "state.bin"):
        (folder / name).unlink(missing_ok=True)
    with refused("ledger holds only 0"):
        run_here([prices], folder)


def test_a_reader_who_leaves_standard_output_ends_the_run_with_a_line(prices: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m htfi run {prices} --out {tmp_path} --plain --stdout --no-report | head -n 3 | wc -l",
        shell=True,
        capture_output=True,
        timeout=60,
    )
    assert done.stdout.strip() == b"3"
    assert b"Traceback" not in done.stderr
    assert b"stdout closed" in done.stderr
