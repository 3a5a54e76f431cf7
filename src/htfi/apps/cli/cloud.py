"""`htfi cloud`: serves a target to many edges at once, until it is stopped."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.cli.signals import graceful_shutdown
from htfi.apps.options import telemetry_options

if TYPE_CHECKING:
    from htfi.wiring.telemetry import TelemetryOptions

_CLOSING_S = 10.0  # beyond the drain, for streams and threads to end

EPILOG = """\b
Examples:
  htfi certs certs --cloud cloud1 --edge edge1
  htfi cloud --name cloud1 --listen 0.0.0.0:7401 --certs certs
  htfi cloud --settings cluster.toml --name cloud2

SIGTERM and Ctrl-C drain the cloud: it accepts no new requests and finishes the open ones, and edges turn to other \
clouds. It stops within cluster.drain_s plus 10 seconds; if a part of it does not stop, with status 1 and one line \
that says so. A second signal stops it at once.
"""


@click.command("cloud", epilog=EPILOG)
@click.option("--name", default="cloud1", show_default=True, help="Name of this node.")
@click.option("--listen", help="HOST:PORT to listen on; port 0 takes a free one.")
@click.option("--certs", help="Folder made by `htfi certs`.")
@click.option("--insecure-loopback", is_flag=True, help="Use no certificates; this machine only.")
@click.option(
    "--cloud",
    "clouds",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Another cloud, to monitor; repeatable.",
)
@click.option("--residency", multiple=True, help="Tag of data that this cloud may receive; repeatable.")
@click.option("--probes", help="HOST:PORT for /live and /ready.")
@click.option("--settings", "settings_file", type=click.Path(path_type=Path), help="TOML file of settings.")
@click.option("--target", help="Folder of the language model that it serves.")
@click.option("--draft", help="Folder of the draft model beside it.")
@click.option(
    "--governance", metavar="G", type=click.Path(path_type=Path, file_okay=False),
    help="Governance folder: serve the models that were promoted there, and agree on bundles and stops with its nodes.",
)  # fmt: skip
@click.option("--without-draft", is_flag=True, help="Load no draft model: only edges draft.")
@click.option("--plain", is_flag=True, help="Print plain lines instead of the live view.")
@telemetry_options
def command(
    name: str,
    listen: str | None,
    certs: str | None,
    insecure_loopback: bool,
    clouds: tuple[str, ...],
    residency: tuple[str, ...],
    probes: str | None,
    settings_file: Path | None,
    target: str | None,
    draft: str | None,
    governance: Path | None,
    without_draft: bool,
    plain: bool,
    telemetry: "TelemetryOptions",
) -> None:
    """Serve a target model: verify what edges draft, and generate for edges that do not draft."""
    from rich.console import Console

    from htfi.domain.errors import require_extra

    require_extra("htfi cloud", "cluster", "grpc")
    from htfi.apps.cli.nonblocking import nonblocking_output
    from htfi.apps.cli.run import served_settings
    from htfi.apps.cli.view.cloud import CloudViewModel, open_cloud_view
    from htfi.apps.cli.view.counters import cloud_counters
    from htfi.wiring.cluster.cloud import open_cloud
    from htfi.wiring.cluster.options import add_cloud
    from htfi.wiring.telemetry import ProcessKind, open_telemetry

    served = served_settings(settings_file, governance, target=target, draft=draft)
    settings = add_cloud(
        served.settings, name, listen=listen, clouds=clouds, certs=certs, residency=residency, probes=probes
    )
    console = Console()
    is_probed = bool(settings.cluster.nodes[name].probes)
    with (
        open_telemetry(telemetry, ProcessKind.CLOUD, is_probed=is_probed) as opened,
        open_cloud(
            settings,
            name,
            secure=not insecure_loopback,
            with_draft=not without_draft,
            governance=governance,
            telemetry=opened,
        ) as cloud,
    ):
        if opened.port:
            click.echo(f"htfi: metrics at port {opened.port}, /metrics")
        click.echo(f"htfi: {name} is ready on {cloud.address}: {cloud.model}")
        sys.stdout.flush()
        server = CloudViewModel(f"{name} → {cloud.address}")
        with nonblocking_output(console) as out:
            within_s = settings.cluster.drain_s + _CLOSING_S
            with graceful_shutdown(cloud.drain, within_s, name), open_cloud_view(console, plain) as view:

                def look() -> None:
                    if view.due() and not out.is_behind:
                        view.update(server.snapshot(cloud_counters(cloud)))

                cloud.serve(look)
            console.print(f"htfi: {name} has finished its requests and stops", markup=False, highlight=False)
