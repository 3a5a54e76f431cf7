"""`htfi eval governance`: what breakers, the sandbox, fairness, monitors and marks find, and what they miss."""

from pathlib import Path

import click
from msgspec.structs import replace

from htfi_eval.commands import beside_option, output_options, quick_option
from htfi_eval.parts import measure_parts, parts_argument
from htfi_eval.report import write_outputs
from htfi_eval.results import read_metrics

PARTS: dict[str, str] = {
    "breakers": "htfi_eval.eval.governance.breakers",
    "sandbox": "htfi_eval.eval.governance.sandbox",
    "fairness": "htfi_eval.eval.governance.fairness",
    "regulation": "htfi_eval.eval.governance.regulation",
    "marking": "htfi_eval.eval.governance.marking",
}


@click.command("governance", short_help="What governance finds, and what it misses.")
@parts_argument
@quick_option
@beside_option("htfi bench governance")
@output_options
def command(
    chosen: tuple[str, ...],
    quick: bool,
    beside: Path | None,
    html_file: Path | None,
    json_file: Path | None,
) -> None:
    """Evaluate governance: every part, or those that are named.

    \b
    Examples:
      htfi eval governance
      htfi eval governance breakers --json build/goals/governance.json
    """
    found = measure_parts("governance", "eval", PARTS, chosen, quick=quick)
    if beside is not None:
        found = replace(found, metrics=found.metrics | read_metrics(beside))
    write_outputs(found, json_file=json_file, html_file=html_file)
