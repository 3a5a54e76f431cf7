"""`htfi eval governance`: what breakers, the sandbox, fairness, monitors and marks find, and what they miss."""

from pathlib import Path

import click

from htfi_eval.commands import output_options, quick_option
from htfi_eval.parts import measure_parts, parts_argument
from htfi_eval.report import write_outputs

PARTS: dict[str, str] = {}


@click.command("governance", short_help="What governance finds, and what it misses.")
@parts_argument
@quick_option
@output_options
def command(chosen: tuple[str, ...], quick: bool, html_file: Path | None, json_file: Path | None) -> None:
    """Evaluate governance: every part, or those that are named.

    \b
    Examples:
      htfi eval governance
      htfi eval governance breakers --json build/goals/governance-eval.json
    """
    found = measure_parts("governance", "eval", PARTS, chosen, quick=quick)
    write_outputs(found, json_file=json_file, html_file=html_file)
