"""`htfi forecast`: one answer for a person with one file of prices. Nothing is recorded, nothing is kept."""

import json
from pathlib import Path

import click

from htfi.apps.options import zone_option
from htfi.domain.content_marking import FIELD, content_marking

EPILOG = """\b
Examples:
  htfi forecast prices.csv                         date and close, or OHLC
  htfi forecast prices.csv --horizon 1 --horizon 10
  htfi forecast panel.parquet --symbol AAPL        one of many symbols
  htfi forecast trades.csv --interval 5m           bars are built from ticks
  htfi forecast prices.csv --json | jq .forecast   for programs
"""


@click.command("forecast", epilog=EPILOG)
@click.argument("file", metavar="FILE")
@click.option("--symbol", help="Symbol to forecast if FILE holds several; its name if FILE names none.")
@click.option(
    "--horizon", "horizons", type=click.IntRange(min=1), multiple=True, help="Bars ahead; repeatable."
)
@click.option("--interval", help="Length of a bar: 1d, 60s, volume:5000 …")
@click.option("--map", "mapping", type=click.Path(path_type=Path), help="TOML file that maps columns.")
@zone_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: str,
    symbol: str | None,
    horizons: tuple[int, ...],
    interval: str | None,
    mapping: Path | None,
    zone: str,
    as_json: bool,
) -> None:
    """Forecast the price in one FILE (CSV, Parquet or JSON lines), and say why.

    The whole file is read in order of time. Every forecast on the way is scored against its outcome, so that the
    answer shows how good such forecasts have been on this file.
    """
    from rich.console import Console

    from htfi.apps.cli.forecast.answer import answer_lines, forecast_files
    from htfi.wiring.settings import load_settings, override

    settings = load_settings()
    if horizons:
        settings = override(settings, "forecasting", horizons=sorted(set(horizons)))
    answer = forecast_files(settings, file, symbol, interval, mapping, zone)
    if as_json:
        body = {**answer.plain(), FIELD: content_marking()}
        click.echo(json.dumps(body, ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False)
    for line in answer_lines(answer, min(console.width, 120)):
        console.print(line, soft_wrap=True)
