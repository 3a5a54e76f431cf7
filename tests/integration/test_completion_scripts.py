"""Shell completion, as the shells use it."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from htfi.apps.cli.completion import SHELLS, command

COMPLETE = "from htfi.apps.cli.main import cli; cli(prog_name='htfi')"


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_a_script_that_asks_htfi(shell):
    result = CliRunner().invoke(command, [shell])
    assert result.exit_code == 0
    assert f"_HTFI_COMPLETE={shell}_complete" in result.output


def test_an_unknown_shell_is_refused_with_the_known_ones():
    result = CliRunner().invoke(command, ["tcsh"])
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.output


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("htfi re", ["plain,report", "plain,reenable", "plain,regulate"]),
        ("htfi report --o", ["plain,--out", "plain,--open"]),
    ],
)
def test_commands_and_options_are_offered(line, offered):
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_HTFI_COMPLETE": "bash_complete"}
    run = subprocess.run(
        [sys.executable, "-c", COMPLETE],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.split() == offered
