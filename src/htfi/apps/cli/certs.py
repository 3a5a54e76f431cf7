"""`htfi certs`: a private authority and one certificate for each node of the link, and a list of them."""

from datetime import UTC, datetime
from math import ceil
from pathlib import Path

import click

from htfi.wiring.cluster.certificates import (
    DEFAULT_DAYS,
    MAX_DAYS,
    CertificateRole,
    NodeCertificate,
    list_certificates,
    make_certificates,
)

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))


class _DefaultMakeGroup(click.Group):
    """`htfi certs DIR …` is `htfi certs make DIR …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group("certs", cls=_DefaultMakeGroup, short_help="Certificates for edges and clouds: make, list.")
def command() -> None:
    """Make and list the certificates by which edges and clouds recognise each other.

    A node's name is the one in its certificate. Give each machine ca.pem and its own NAME.pem and NAME.key. Keep
    ca.key secret: with it, anyone can pose as any node.

    \b
    Examples:
      htfi certs DIR --cloud cloud1 --edge edge1   an authority and two nodes
      htfi certs DIR --edge edge2                  one more node
      htfi certs DIR --cloud cloud1 --renew        new certificate, same key
      htfi certs show DIR                          names, roles and days left
    """


@command.command("make", short_help="Make missing certificates (the default).")
@FOLDER
@click.option("--cloud", "clouds", metavar="NAME", multiple=True, help="A node that listens; repeatable.")
@click.option("--edge", "edges", metavar="NAME", multiple=True, help="A node that only connects; repeatable.")
@click.option(
    "--days",
    type=click.IntRange(1, MAX_DAYS),
    default=DEFAULT_DAYS,
    show_default=True,
    help="Days until expiry.",
)
@click.option("--renew", is_flag=True, help="Replace existing certificates; keep their keys.")
def make(folder: Path, clouds: tuple[str, ...], edges: tuple[str, ...], days: int, renew: bool) -> None:
    """Make a key and a certificate for each node, and an authority if there is none.

    Existing files are kept. Only their owner can read the keys.

    \b
    Examples:
      htfi certs DIR --cloud cloud1 --cloud cloud2 --edge edge1
      htfi certs DIR --edge edge1 --days 30 --renew
    """
    if not clouds and not edges:
        raise click.UsageError("name at least one node: --cloud NAME or --edge NAME")
    nodes = [(name, CertificateRole.CLOUD) for name in clouds] + [
        (name, CertificateRole.EDGE) for name in edges
    ]
    for made in make_certificates(folder, nodes, days, renew):
        click.echo(f"{made.action.value:<8}{_certificate_line(made.certificate)}")
    click.echo(f"each node needs {folder / 'ca.pem'}, its own .pem and its own .key; keep ca.key secret")


@command.command("show", short_help="Names, roles and days left.")
@FOLDER
def show(folder: Path) -> None:
    """List the certificates of a folder: names, roles, days left and faults.

    \b
    Example:
      htfi certs show DIR
    """
    until, certificates = list_certificates(folder)
    click.echo(f"{'ca':<20}{'authority':<10}{_days(until)}")
    for certificate in certificates:
        click.echo(_certificate_line(certificate))


def _certificate_line(certificate: NodeCertificate) -> str:
    fault = f", {certificate.fault}" if certificate.fault else ""
    return f"{certificate.name:<20}{certificate.role.value:<10}{_days(certificate.until)}{fault}"


def _days(until: datetime) -> str:
    num_days = ceil((until - datetime.now(UTC)).total_seconds() / 86_400)
    return f"{num_days} days left, until {until:%Y-%m-%d}"
