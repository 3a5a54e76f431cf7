"""Every command's help fits a terminal of 80 columns: no line is longer, and no summary is cut."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli

_WIDTH = 80


def _commands(
    command: click.Command, path: tuple[str, ...], parent: click.Context | None
) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command, parent=parent, info_name=path[-1] if path else "htfi")
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, (*path, name)
            yield from _commands(found, (*path, name), context)


COMMANDS = list(_commands(cli, (), None))


def test_all_groups_are_walked():
    assert len(COMMANDS) > 50
    assert {("run",), ("ledger", "replay"), ("bench", "decode"), ("eval", "returns")} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_eighty_columns(path: tuple[str, ...]):
    done = CliRunner().invoke(cli, [*path, "--help"], prog_name="htfi", terminal_width=_WIDTH)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert len(lines) > 4
    assert [line for line in lines if len(line) > _WIDTH] == []
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []
