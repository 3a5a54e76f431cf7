"""`htfi venue`: the simulated venue as a counterparty of its own, by FIX."""

from pathlib import Path

import click

from htfi.apps.options import settings_option

STOP_S = 10.0


@click.group("venue", short_help="The simulated venue as a FIX counterparty.")
def command() -> None:
    """Run the simulated venue as a process of its own, to which `htfi trade --venue` connects by FIX.

    \b
    Examples:
      htfi venue serve venue.toml
    """


@command.command(short_help="Listen for a client by FIX.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@settings_option
@click.option(
    "--venues",
    "venues_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML of several venues, a table each: it is the one that FILE names in orders.venue.",
)
@click.option("--quiet", is_flag=True, help="Print the address only, no orders and fills.")
def serve(file: Path, settings_file: Path | None, venues_file: Path | None, quiet: bool) -> None:
    """Listen for the client of a FIX session until Ctrl-C, and fill its orders on the prices that it sends.

    FILE is a TOML file of the session with `initiator = false`. [venue] and [trading.instruments] of the settings are
    the venue's; give the same settings as to the run. A venue that was killed continues where it was: run it again.

    \b
    Examples:
      htfi venue serve venue.toml
      htfi venue serve venue.toml --settings desk.toml --quiet
      htfi venue serve xnys.toml --venues venues.toml
    """
    from htfi.apps.cli.signals import graceful_shutdown
    from htfi.wiring.settings import load_settings, with_venues
    from htfi.wiring.venue_server import open_venue_server

    num_shown = 0

    def show(line: str) -> None:
        nonlocal num_shown
        if not quiet or not num_shown:
            click.echo(line)
        num_shown += 1

    settings = load_settings(settings_file)
    if venues_file is not None:
        settings = with_venues(settings, venues_file)
    server = open_venue_server(file, settings, show)
    with graceful_shutdown(server.close, STOP_S, "the venue"):
        server.serve()
