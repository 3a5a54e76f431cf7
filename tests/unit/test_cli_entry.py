"""The command's doors: help that answers at once, one line for what goes wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from htfi.apps.cli.main import main
from htfi.market.config import parse_clock

HEAVY = ("numpy", "arro3", "pyarrow", "plotly", "rich", "cryptography", "sqlite3", "websockets", "msgspec")


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "htfi", *arguments], capture_output=True, text=True, timeout=60
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from htfi.apps.cli.main import cli; "
        "cli(['--help'], standalone_mode=False); "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_shows_examples_of_every_command() -> None:
    told = run("--help").stdout
    for command in ("htfi run", "htfi forecast", "htfi report", "htfi ledger verify"):
        assert command in told


@pytest.mark.parametrize("command", ["run", "forecast", "report", "ledger", "bench", "completion"])
def test_each_command_teaches_by_example(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert f"htfi {command}" in done.stdout
    assert "Example" in done.stdout


def test_ctrl_c_before_a_command_minds_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("htfi.apps.cli.main.import_module", interrupted)
    monkeypatch.setattr(sys, "argv", ["htfi", "report", "folder"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capfd.readouterr().err.strip() == "htfi: stopped by Ctrl-C; run the same command again"


def test_every_bar_clock_that_the_help_of_run_names_is_one() -> None:
    told = " ".join(run("run", "--help").stdout.split())
    named = re.search(r"Bars built from ticks: (.*?)\.", told)
    assert named is not None
    clocks = re.split(r", | or ", named[1])
    assert len(clocks) == 4
    for clock in clocks:
        parse_clock(clock)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "no-such.csv"], "no-such.csv"),
        (["run", "--map", "no-such.toml"], "no-such.toml"),
        (["run", "--settings", "no-such.toml"], "no-such.toml"),
        (["run", "--bar", "sixty"], "sixty"),
        (["report", "no-such-folder"], "no-such-folder"),
        (["ledger", "verify", "no-such-folder"], "no-such-folder"),
        (["forecast", "no-such.csv"], "no-such.csv"),
    ],
)
def test_a_wrong_argument_is_one_line_that_names_it(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if arguments[0] == "run":
        arguments = [*arguments, "--out", str(tmp_path / "out")]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # which `main` sets for its process
    monkeypatch.setattr(sys, "argv", ["htfi", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    errors = capfd.readouterr().err
    lines = errors.splitlines()
    assert len(lines) == 1, errors
    assert lines[0].startswith("htfi: ")
    assert told in lines[0]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_takes_nothing_is_one_line(unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "htfi", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 1
    assert done.stderr == (
        "htfi: standard output cannot be written: No space left on device; send it elsewhere, and run the same "
        "command again\n"
    )


def test_no_file_gets_the_number_of_a_closed_output(tmp_path: Path) -> None:
    code = (
        "import os, sys; from htfi.apps.cli.main import open_missing_streams; open_missing_streams(); "
        f"file = open({str(tmp_path / 'ledger')!r}, 'w'); os.write(1, b'lost'); print('lost'); "
        "sys.exit(file.fileno() < 3)"
    )
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, code], timeout=60
    )
    assert done.returncode == 0
    assert (tmp_path / "ledger").read_text() == ""


def test_an_empty_folder_to_write_into_is_refused() -> None:
    done = run("run", "--out", "")
    assert done.returncode == 2
    assert "it is empty: name a folder" in done.stderr


@pytest.mark.parametrize("pace", ["nan", "inf", "-1"])
def test_a_pace_that_is_no_number_of_sense_is_refused(pace: str) -> None:
    done = run("run", f"--pace={pace}")
    assert done.returncode == 2
    assert "Invalid value for '--pace'" in done.stderr


READS_PRICES = """
import sys
from pathlib import Path
from htfi import sample
from htfi.domain.decision import Rung
from htfi.wiring.run import open_run
from htfi.wiring.settings import load_settings

prices = [str(file) for file in sample.paths() if file.suffix == ".parquet"]
assert len(prices) == 4
with open_run(load_settings(), Path(sys.argv[1]), prices) as run:
    assert Rung.SPECULATIVE in run.loop.components.views.rungs
    run.run_to_end(lambda: run.loop.stop() if run.loop.recorder.num_decided > 100 else None)
print([name for name in ("onnxruntime", "onnx", "pandas", "torch", "httpx", "grpc") if name in sys.modules])
"""


def test_prices_are_decided_on_without_the_libraries_that_models_need(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", READS_PRICES, str(tmp_path / "run")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


def test_networks_whose_graphs_are_cached_open_without_the_library_that_writes_graphs() -> None:
    code = (
        "import sys, htfi.adapters.onnx.network, htfi.adapters.onnx.sentence_encoder\n"
        "print([name for name in ('onnx', 'google.protobuf') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
