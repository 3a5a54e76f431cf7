"""`htfi calendar check`: reads a calendar as a run does, and prints what was recognised, what not, and what is done."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from htfi.domain.errors import InvalidInput

EPILOG = """\b
Examples:
  htfi calendar check releases.csv --zone America/New_York
  htfi calendar check calendar.toml --on EURUSD --on SPX
  htfi calendar check releases.parquet --rules --json check.json
"""


@click.group("calendar", short_help="Calendars of scheduled events: check what is recognised.")
def command() -> None:
    """Calendars of scheduled events: releases, central banks, results, holidays, expiries."""


@command.command("check", short_help="What is recognised, and what is done about it.", epilog=EPILOG)
@click.argument("file", metavar="FILE")
@click.option("--zone", default="", help="Zone of times without one, such as America/New_York.")
@click.option("--time-format", default="", help="Form of its times, such as '%m/%d/%Y %H:%M'.")
@click.option(
    "--on",
    "symbols",
    metavar="SYMBOL",
    multiple=True,
    help="Series: which kinds concern it; repeatable.",
)
@click.option("--all", "show_all", is_flag=True, help="Every kind, every unknown name and every fault.")
@click.option("--rules", is_flag=True, help="Compare with releases by rule (extra [calendars]).")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write all figures; '-' prints them."
)
def check_command(
    file: str,
    zone: str,
    time_format: str,
    symbols: tuple[str, ...],
    show_all: bool,
    rules: bool,
    json_file: Path | None,
) -> None:
    """Show which events of a calendar are recognised, which are not and why, and what a run does about each.

    FILE is Parquet, CSV, JSON or iCalendar, a TOML file with [[source]] or [[release]] tables, or 'recurring'. Nothing
    is recorded.
    """
    from htfi.wiring.calendar_reading import check_opened, read_calendar, source_of

    source = source_of(file)
    if zone or time_format:
        if source is None:
            raise click.UsageError(
                "--zone and --time-format are for files of events; state them in the TOML file"
            )
        source = replace(source, zone=zone, time_format=time_format)
    opened = read_calendar(file, source if zone or time_format else None)
    checked = check_opened(opened, symbols, with_rules=rules)
    if json_file is not None:
        from htfi.apps.cli.calendar.screen import as_json

        _write(as_json(file, opened, checked), json_file)
        return
    from htfi.apps.cli.calendar.screen import show

    show(file, opened, checked, show_all=show_all)


def _write(content: dict[str, Any], file: Path) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if str(file) == "-":
        sys.stdout.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}; name a file that can be written") from error
