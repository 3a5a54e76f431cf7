"""`htfi ledger monitor` beside `htfi serve`: a run that grows, a service that ends, a ledger that was exchanged."""

import json
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import forked
import htfi
from service_process import ServiceProcess

BARS = [
    {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "symbol": "ACME", "close": 100.0 + day % 5}
    for day in range(84)
]


def grow(folder: Path, num_bars: int, shift: float = 0.0) -> int:
    """A run over the first bars, or on from where it was; how many entries its ledger holds."""
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed([one | {"close": one["close"] + shift} for one in BARS[:num_bars]]))
    with htfi.open_ledger(folder) as ledger:
        return len(ledger)


def key_of(folder: Path) -> str:
    shown = monitor_like(["show", str(folder)])
    return next(line.split()[1] for line in shown.stdout.splitlines() if line.startswith("key"))


def monitor_like(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [*forked.HTFI, "ledger", *arguments]
    return forked.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_log_is_followed_over_the_end_of_its_service_until_it_is_exchanged(tmp_path: Path) -> None:
    folder, state = tmp_path / "run", tmp_path / "monitor.json"
    num_first = grow(folder, 50)
    with ServiceProcess("--follow", str(folder)) as service:
        service.wait_for(num_first)
        arguments = ["monitor", service.url, "--key", key_of(folder), "--state", str(state), "--every", "0.1"]
        watching = forked.Popen(
            [*forked.HTFI, "ledger", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        deadline = threading.Timer(60.0, watching.kill)
        deadline.start()
        try:
            assert watching.stdout is not None
            assert watching.stderr is not None
            assert f" {num_first:,} entries, {num_first:,} new; root " in watching.stdout.readline()
            service.end()
            assert "asking again every 0.1 s" in watching.stderr.readline()
            shutil.copytree(folder, tmp_path / "copy")
            num_second = grow(folder, 60)
            with ServiceProcess("--follow", str(folder), port=service.port):
                assert (
                    f" {num_second:,} entries, {num_second - num_first:,} new" in watching.stdout.readline()
                )
            # the same key signs another history: what an operator who rewrites the record would serve
            num_other = grow(tmp_path / "copy", 84, shift=1.0)
            assert num_other > num_second
            with ServiceProcess("--follow", str(tmp_path / "copy"), port=service.port):
                _, said = watching.communicate(timeout=60)
        finally:
            deadline.cancel()
            watching.kill()
            watching.wait()
    assert watching.returncode == 1
    last = said.strip().splitlines()[-1]
    assert "fork: " in last
    assert "Traceback" not in said
    seen, shown = (tmp_path / f"monitor.json.{name}.checkpoint" for name in ("seen", "shown"))
    assert seen.read_text(encoding="utf-8").splitlines()[1] == str(num_second)
    assert shown.read_text(encoding="utf-8").splitlines()[1] == str(num_other)
    assert json.loads(state.read_bytes())["size"] == num_second


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://127.0.0.1:9", "--once"], "--key: name the log's verifier key at the first look"),
        (["file:///etc/passwd", "--once"], "is no address of a log"),
        (["http://127.0.0.1:9", "--once", "--key", "log+1+x"], "is not a verifier key"),
    ],
)
def test_arguments_that_cannot_be_followed_are_refused_in_one_line(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    found = monitor_like(["monitor", *arguments, "--state", str(tmp_path / "state")])
    assert found.returncode == 1
    assert words in found.stderr
    assert found.stderr.strip().count("\n") == 0
