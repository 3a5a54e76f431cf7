"""`htfi trade`: a run whose released decisions are acted on by orders, at the simulated venue or through FIX."""

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from htfi.apps.options import (
    FiniteRange,
    bar_option,
    governance_option,
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
from htfi.execution.config import AlgorithmName, Strategy

if TYPE_CHECKING:
    from htfi.wiring.control import DeadMansSwitch
    from htfi.wiring.outputs import OutputFile
    from htfi.wiring.telemetry import TelemetryOptions

EPILOG = """\b
Examples:
  htfi trade                                     the embedded sample, on paper
  htfi trade prices.csv news.jsonl --out trade1
  htfi trade prices.csv --settings desk.toml --out trade2
  htfi trade prices.csv --venue fix.toml --out trade3
  htfi trade --venue fix.toml --bar 1m           prices by FIX as well
  htfi trade prices.csv --strategy trend         by past moves
  htfi trade quotes.csv --algorithm vwap --venues venues.toml
  htfi trade quotes.csv --algorithm twap --venue fix.toml
  htfi orders list trade1
  htfi orders positions trade1

To resume one that was stopped or killed, run the same command again.
"""

SAMPLE_SYMBOLS = ["SPX", "IBM"]  # of the embedded sample; nobody can hold the VIX itself


@click.command("trade", epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@mapping_option
@zone_option
@out_option("htfi-trade")
@settings_option
@bar_option
@click.option("--target", help="Folder of the target model, which reads the news.")
@click.option("--draft", help="Folder of the draft model, which reads alone when time is short.")
@click.option("--capital", type=FiniteRange(min=0, min_open=True), help="What positions are sized by.")
@click.option(
    "--venue",
    "venue_files",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file of a FIX session, once for each venue: orders go there, not to the simulated venue inside the run; "
    "with a table [market_data] prices come from there.",
)
@click.option(
    "--strategy",
    type=click.Choice(get_args(Strategy)),
    help="The side to take: the forecast's, that of the own move, or against the largest moves.",
)
@click.option("--algorithm", type=click.Choice(get_args(AlgorithmName)), help="How orders are executed.")
@click.option(
    "--venues",
    "venues_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML of several venues, a table each.",
)
@pace_option
@governance_option
@switch_option
@outputs_option
@plain_option
@report_option
@telemetry_options
def command(
    files: tuple[str, ...],
    mapping: Path | None,
    zone: str,
    out: Path,
    settings_file: Path | None,
    bar: str | None,
    target: str | None,
    draft: str | None,
    capital: float | None,
    venue_files: tuple[Path, ...],
    strategy: str | None,
    algorithm: str | None,
    venues_file: Path | None,
    pace: float | None,
    governance: Path | None,
    switch: "DeadMansSwitch | None",
    outputs: "frozenset[OutputFile] | None",
    plain: bool,
    report: bool,
    telemetry: "TelemetryOptions",
) -> None:
    """Forecast a stream of prices and news, and act on the forecasts by orders.

    Orders pass the gate, are recorded in orders.jsonl, and go to a simulated venue that fills them on the prices that
    follow: then nothing leaves this machine. With --venue they go to a counterparty by FIX. Without files it trades the
    embedded sample.
    """
    from htfi.apps.cli.run import execute_run, served_settings
    from htfi.wiring.market_data import prices_of
    from htfi.wiring.settings import override, with_venues
    from htfi.wiring.telemetry import ProcessKind, open_telemetry

    served = served_settings(settings_file, governance, bar=bar, target=target, draft=draft)
    settings = served.settings
    if capital is not None:
        settings = override(settings, "trading", capital=capital)
    if strategy is not None:
        settings = override(settings, "trading", strategy=strategy)
    if algorithm is not None:
        settings = override(settings, "trading", algorithm=algorithm)
    if venues_file is not None:
        settings = with_venues(settings, venues_file)
    for venue_file in reversed(venue_files):
        files = (*prices_of(venue_file), *files)
    if not files and mapping is None and "*" in settings.trading.symbols:
        settings = override(settings, "trading", symbols=SAMPLE_SYMBOLS)
    with open_telemetry(telemetry, ProcessKind.RUN) as opened:
        execute_run(
            settings,
            files,
            mapping,
            out,
            zone=zone,
            mirror=None,
            pace=pace,
            switch=switch,
            governance=governance,
            promoted=served.digests,
            outputs=outputs,
            plain=plain,
            report=report,
            with_orders=True,
            venue_files=venue_files,
            telemetry=opened,
        )
