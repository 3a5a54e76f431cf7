"""`htfi edge`: a run whose news is read by targets in clouds; it works alone where none can be reached."""

from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.options import (
    bar_option,
    governance_option,
    listen_option,
    mapping_option,
    out_option,
    outputs_option,
    pace_option,
    plain_option,
    report_option,
    settings_option,
    switch_option,
    telemetry_options,
    zone_option,
)

if TYPE_CHECKING:
    from htfi.wiring.control import DeadMansSwitch
    from htfi.wiring.outputs import OutputFile
    from htfi.wiring.telemetry import TelemetryOptions

EPILOG = """\b
Examples:
  htfi certs certs --cloud cloud1 --edge edge1
  htfi cloud --name cloud1 --listen 127.0.0.1:7401 --certs certs &
  htfi edge prices.csv news.jsonl --cloud cloud1=127.0.0.1:7401 --certs certs
  htfi edge --settings cluster.toml --name edge1 --map feeds.toml --out run1

If a cloud is late, the edge's draft model answers. That decision is provisional; the target's answer amends it.
"""


@click.command("edge", epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--name", default="edge1", show_default=True, help="Name of this node.")
@click.option("--cloud", "clouds", multiple=True, metavar="NAME=HOST:PORT", help="A cloud; repeatable.")
@click.option("--certs", help="Folder made by `htfi certs`.")
@click.option("--insecure-loopback", is_flag=True, help="Use no certificates; this machine only.")
@click.option("--leader-group", help="Group of edges; only its leader releases.")
@click.option("--desk", "former_group", hidden=True)  # its name in 0.1.0
@click.option("--probes", help="HOST:PORT for /live and /ready.")
@mapping_option
@zone_option
@out_option("htfi-run")
@settings_option
@bar_option
@click.option("--target", help="Folder of the clouds' target model; the edge checks that it is the same.")
@click.option("--draft", help="Folder of the edge's draft model.")
@pace_option
@click.option("--stdout", "to_stdout", is_flag=True, help="Also write each decision to standard output.")
@listen_option
@governance_option
@switch_option
@outputs_option
@plain_option
@report_option
@telemetry_options
def command(
    files: tuple[str, ...],
    name: str,
    clouds: tuple[str, ...],
    certs: str | None,
    insecure_loopback: bool,
    leader_group: str | None,
    former_group: str | None,
    probes: str | None,
    mapping: Path | None,
    zone: str,
    out: Path,
    settings_file: Path | None,
    bar: str | None,
    target: str | None,
    draft: str | None,
    pace: float | None,
    to_stdout: bool,
    listen: str,
    governance: Path | None,
    switch: "DeadMansSwitch | None",
    outputs: "frozenset[OutputFile] | None",
    plain: bool,
    report: bool,
    telemetry: "TelemetryOptions",
) -> None:
    """Forecast at the edge; clouds run the target model.

    The command does all that `htfi run` does, with the target model on other machines: the edge holds the features,
    the draft model and the order of events. For each reading it chooses where to run, by links, load and deadline.
    """
    from htfi.domain.errors import require_extra

    require_extra("htfi edge", "cluster", "grpc")
    from htfi.apps.cli.run import execute_run, served_settings
    from htfi.wiring.cluster.edge import open_edge
    from htfi.wiring.cluster.options import add_edge
    from htfi.wiring.telemetry import ProcessKind, open_telemetry

    served = served_settings(settings_file, governance, bar=bar, target=target, draft=draft)
    settings = served.settings
    group = leader_group if leader_group is not None else former_group
    settings = add_edge(settings, name, clouds=clouds, certs=certs, leader_group=group, probes=probes)
    is_probed = bool(settings.cluster.nodes[name].probes)
    with (
        open_telemetry(telemetry, ProcessKind.EDGE, is_probed=is_probed) as opened,
        open_edge(
            settings, name, secure=not insecure_loopback, folder=out, governance=governance, telemetry=opened
        ) as edge,
    ):
        execute_run(
            settings,
            files,
            mapping,
            out,
            zone=zone,
            mirror=edge.leader_only(FileIO(1, "wb", closefd=False)) if to_stdout else None,
            pace=pace,
            listen=listen,
            outputs=outputs,
            governance=governance,
            promoted=served.digests,
            switch=switch,
            plain=plain,
            report=report,
            edge=edge,
            telemetry=opened,
        )
