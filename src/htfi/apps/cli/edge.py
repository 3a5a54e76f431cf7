"""`htfi edge`: a run whose news is read by targets in clouds; it works alone where none can be reached."""

from io import FileIO
from pathlib import Path

import click

from htfi.apps.options import FiniteRange

EPILOG = """\b
Examples:
  htfi certs certs --cloud cloud1 --edge edge1
  htfi cloud --name cloud1 --listen 127.0.0.1:7401 --certs certs &
  htfi edge prices.csv news.jsonl --name edge1 --cloud cloud1=127.0.0.1:7401 --certs certs
  htfi edge --settings cluster.toml --name edge1 --map feeds.toml --out desk1
\b
If a cloud is late, the edge's draft model answers. That decision is provisional; the target's answer amends it.
"""


@click.command("edge", epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--name", default="edge1", show_default=True, help="Name of this node.")
@click.option("--cloud", "clouds", multiple=True, metavar="NAME=HOST:PORT", help="A cloud; may be repeated.")
@click.option("--certs", help="Folder made by `htfi certs`.")
@click.option("--insecure-loopback", is_flag=True, help="No certificates, this machine only.")
@click.option("--leader-group", help="Group of edges; only its leader releases.")
@click.option("--desk", "former_group", hidden=True)  # its name in 0.1.0
@click.option("--probes", help="HOST:PORT for /live and /ready.")
@click.option("--map", "mapping", type=click.Path(path_type=Path), help="TOML that maps sources and columns.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("htfi-run"), show_default=True, help="Folder."
)
@click.option("--settings", "settings_file", type=click.Path(path_type=Path), help="TOML of settings.")
@click.option("--bar", help="Bars built from ticks: 60s, 5m, volume:5000 or dollar:1000000.")
@click.option(
    "--target", help="Folder of the model that the clouds hold: the edge checks that it is the same."
)
@click.option("--draft", help="Folder of the edge's draft model.")
@click.option("--pace", type=FiniteRange(min=0, min_open=True), help="Replay at this multiple of real time.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Also write each decision to standard output.")
@click.option("--plain", is_flag=True, help="Print plain lines instead of the live view.")
@click.option("--report/--no-report", default=True, show_default=True, help="Write report.html at the end.")
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
    out: Path,
    settings_file: Path | None,
    bar: str | None,
    target: str | None,
    draft: str | None,
    pace: float | None,
    to_stdout: bool,
    plain: bool,
    report: bool,
) -> None:
    """Forecast at the edge, with the targets of clouds.

    All that `htfi run` does, with the target on other machines: the edge holds features, the draft and the order of
    events. Where it runs is chosen again for each reading, from links, load and deadline.
    """
    from htfi.domain.errors import require_extra

    require_extra("htfi edge", "cluster", "grpc")
    from htfi.apps.cli.run import adapted, execute_run
    from htfi.wiring.cluster.edge import open_edge
    from htfi.wiring.cluster.options import add_edge
    from htfi.wiring.settings import load_settings

    settings = adapted(load_settings(settings_file), bar=bar, target=target, draft=draft)
    group = leader_group if leader_group is not None else former_group
    settings = add_edge(settings, name, clouds=clouds, certs=certs, leader_group=group, probes=probes)
    with open_edge(settings, name, secure=not insecure_loopback) as edge:
        execute_run(
            settings,
            files,
            mapping,
            out,
            mirror=edge.leader_only(FileIO(1, "wb", closefd=False)) if to_stdout else None,
            pace=pace,
            plain=plain,
            report=report,
            edge=edge,
        )
