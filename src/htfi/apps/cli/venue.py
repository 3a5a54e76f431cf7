"""`htfi venue`: the simulated venue as a counterparty of its own, by FIX."""

from pathlib import Path

import click

from htfi.apps.options import FiniteRange, mapping_option, settings_option

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
@click.argument("prices", nargs=-1, metavar="[PRICES]...")
@mapping_option
@settings_option
@click.option(
    "--pace",
    type=FiniteRange(min=0, min_open=True),
    help="Seconds of the prices that pass in one second; without it as fast as the client takes them.",
)
@click.option("--quiet", is_flag=True, help="Print the address only, no orders and fills.")
def serve(
    file: Path,
    prices: tuple[str, ...],
    mapping: Path | None,
    settings_file: Path | None,
    pace: float | None,
    quiet: bool,
) -> None:
    """Listen for the client of a FIX session until Ctrl-C, and fill its orders on the prices that it sends.

    With files of PRICES it fills them on its own, which it publishes over the session of the table [market_data].

    FILE is a TOML file of the session with `initiator = false`. [venue] and [trading.instruments] of the settings are
    the venue's; give the same settings as to the run. A venue that was killed continues where it was: run it again.

    \b
    Examples:
      htfi venue serve venue.toml
      htfi venue serve venue.toml --settings desk.toml --quiet
      htfi venue serve venue.toml quotes.csv trades.csv --pace 60
    """
    from htfi.apps.cli.signals import graceful_shutdown
    from htfi.wiring.settings import load_settings
    from htfi.wiring.venue_server import open_venue_server

    num_shown = 0

    def show(line: str) -> None:
        nonlocal num_shown
        if not quiet or not num_shown:
            click.echo(line)
        num_shown += 1

    server = open_venue_server(file, load_settings(settings_file), show, prices, mapping, pace)
    with graceful_shutdown(server.close, STOP_S, "the venue"):
        server.serve()
