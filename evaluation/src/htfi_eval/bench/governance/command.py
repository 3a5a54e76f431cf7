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
    stop_local_p99_ms is how soon a busy live run withholds everything: after a stop's request (request_local_p99_ms)
    or after the bars that trip a breaker (trip_local_p99_ms), whichever takes longer.
    stop_cluster_p99_ms is the same at two edges, where one is asked or trips and the other is reached through a cloud.

    \b
    Examples:
      htfi bench governance
      htfi bench governance stops --quick
    """
    found = measure_parts("governance", "bench", PARTS, chosen, quick=quick)
    write_outputs(found, json_file=json_file, history_file=history_file)
