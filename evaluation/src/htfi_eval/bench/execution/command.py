"""`htfi bench execution`: the gate, order entry, the simulated venue and FIX."""

from pathlib import Path

import click

from htfi_eval.commands import figures_options, quick_option
from htfi_eval.parts import measure_parts, parts_argument
from htfi_eval.report import write_outputs

PARTS: dict[str, str] = {
    "gate": "htfi_eval.bench.execution.gate",
    "orders": "htfi_eval.bench.execution.orders",
    "venue": "htfi_eval.bench.execution.venue",
    "cancels": "htfi_eval.bench.execution.cancels",
    "fix": "htfi_eval.bench.execution.fix",
}


@click.command("execution", short_help="The gate, order entry, the simulated venue, FIX.")
@parts_argument
@quick_option
@figures_options
def command(chosen: tuple[str, ...], quick: bool, json_file: Path | None, history_file: Path | None) -> None:
    """Measure the way of an order: every part, or those that are named.

    gate_escapes counts random intents that the gate lets pass and a plain model of the rules refuses; the model reads
    all events anew for each of a million intents, which takes ten minutes.

    \b
    Examples:
      htfi bench execution --quick
      htfi bench execution orders venue
    """
    found = measure_parts("execution", "bench", PARTS, chosen, quick=quick)
    write_outputs(found, json_file=json_file, history_file=history_file)
