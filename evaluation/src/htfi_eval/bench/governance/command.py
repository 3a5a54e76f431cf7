"""`htfi bench governance`: how soon a stop holds, what the checks of a decision cost."""

from pathlib import Path

import click

from htfi_eval.commands import figures_options, quick_option
from htfi_eval.parts import measure_parts, parts_argument
from htfi_eval.report import write_outputs

PARTS: dict[str, str] = {
    "stops": "htfi_eval.bench.governance.stops",
    "cluster-stops": "htfi_eval.bench.governance.cluster_stops",
    "breakers": "htfi_eval.bench.governance.breakers",
    "bundles": "htfi_eval.bench.governance.bundles",
}


@click.command("governance", short_help="How soon a stop holds; what checks cost.")
@parts_argument
@quick_option
@figures_options
def command(chosen: tuple[str, ...], quick: bool, json_file: Path | None, history_file: Path | None) -> None:
    """Measure governance on real runs: every part, or those that are named.

    bundle_activation_s is the slowest activation over five processes.
    stop_cluster_p99_ms is of a stop that is asked of one edge and reaches another through a cloud.
    stop_local_p99_ms counts from the writing of a stop to the last forecast that a busy live run still releases.

    \b
    Examples:
      htfi bench governance
      htfi bench governance stops --quick
    """
    found = measure_parts("governance", "bench", PARTS, chosen, quick=quick)
    write_outputs(found, json_file=json_file, history_file=history_file)
