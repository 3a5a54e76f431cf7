# ruff: noqa: INP001 - beside the scripts that use it
"""A page for each command of `htfi`, from the parser that reads its arguments."""

import re
from collections.abc import Iterator
from textwrap import dedent

import click

from htfi.apps.cli.main import cli


def command_pages() -> Iterator[tuple[str, str]]:
    """Path and text: an index of the commands, and a page for each."""
    context = click.Context(cli, info_name="htfi")
    rows: list[str] = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        blocks = list(_blocks(command, click.Context(command, parent=context, info_name=name)))
        yield f"commands/{name}.md", "\n\n".join(blocks) + "\n"
        rows.append(f"| [`htfi {name}`]({name}.md) | {_cell(command.get_short_help_str(limit=200))} |")
    text = "\n".join(["| command | what it does |", "|---|---|", *rows])
    yield "commands/README.md", f"# Commands\n\nMade from the parser of `htfi`.\n\n{text}\n"


def _blocks(command: click.Command, context: click.Context, depth: int = 1) -> Iterator[str]:
    """Heading, words, usage and options of a command, then of those below it."""
    yield f"{'#' * min(depth, 4)} {context.command_path}"
    yield from _words(command.help or "")
    yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"
    records = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
    records = [record for record in records if not record[0].startswith("--help")]
    if records:
        rows = [f"| {_code(option)} | {_cell(text)} |" for option, text in records]
        yield "\n".join(["| option | meaning |", "|---|---|", *rows])
    yield from _words(command.epilog or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _blocks(below, click.Context(below, parent=context, info_name=name), depth + 1)


def _words(text: str) -> Iterator[str]:
    """Paragraphs; one that begins with \\b is shown as it is written."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n ")):
        lines = [line.rstrip() for line in paragraph.splitlines()]
        if lines and lines[0].strip() == "\b":
            yield f"```text\n{dedent(chr(10).join(lines[1:]))}\n```"
        elif any(lines):
            yield _escaped(" ".join(line.strip() for line in lines))


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Words that Markdown shows as they are, but for code in backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([<\[*_\\])", r"\\\1", part) for part in parts)
