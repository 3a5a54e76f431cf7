"""What the end-to-end tests share: one run over the embedded sample."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli

Htfi = Callable[..., str]


@pytest.fixture(scope="session")
def htfi() -> Htfi:
    """`htfi(*words, **environment)`: the command in this process; it must succeed. Gives what it wrote."""

    def run(*words: str, **environment: str) -> str:
        done = CliRunner(env=environment).invoke(cli, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


@pytest.fixture(scope="session")
def htfi_process() -> Htfi:
    """The same in a process of its own, as a person starts it."""

    def run(*words: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "htfi", *words],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def sample_run(made_once: Callable[[str, Callable[[Path], object]], Path], htfi_process: Htfi) -> Path:
    """The folder that `htfi run` leaves over the sample, and beside it what was printed. Only read it."""

    def make(folder: Path) -> None:
        (folder / "summary.txt").write_text(htfi_process("run", "--plain", "--out", str(folder)))

    return made_once("sample", make)
