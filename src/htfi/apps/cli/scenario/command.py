"""`htfi scenario`: what if this headline came, this series moved, that crisis came back; nothing is recorded."""

import json
import os
from pathlib import Path

import click

from htfi.domain.content_marking import FIELD, content_marking

EPILOG = """\b
Examples:
  htfi scenario DIR --shock "SPX -5%"              a fall tomorrow
  htfi scenario DIR --shock "SPX -3sd, VIX +5"     two moves at once
  htfi scenario DIR --headline "Fed cuts rates by 100 bp" --on SPX --spread
  htfi scenario DIR --macro "US_CPI +2sd"          a macro surprise
  htfi scenario DIR --stress lehman_2008 --stress covid_2020 --horizon 22
  htfi scenario DIR --stress all --html s.html     every stress, as a page
  htfi scenario prices.csv --shock "MSFT -10%" --positions book.csv
  htfi scenario --stress list                      every stress, listed

The options --shock, --headline, --macro and --stress are repeatable; each one is a scenario. DIR is the folder of a \
run; files of prices are read to their end instead. --horizon sets the number of bars.
"""


_WIDTH = 132  # columns of what goes to a file, unless COLUMNS says


@click.command("scenario", epilog=EPILOG)
@click.argument("source", nargs=-1, metavar="[DIR|FILE...]")
@click.option(
    "--shock", "shocks", multiple=True, metavar="MOVES", help='Moves that come together: "SPX -5%, VIX +3sd".'
)
@click.option("--headline", "headlines", multiple=True, metavar="TEXT", help="A hypothetical headline.")
@click.option(
    "--on",
    "on",
    multiple=True,
    metavar="SYMBOL",
    help="Symbols that the headlines are about (default: those they name, else the market).",
)
@click.option(
    "--macro",
    "macros",
    multiple=True,
    metavar="MOVE",
    help='A surprise in a series: "US_CPI +2sd", "VIX +5".',
)
@click.option("--stress", "stresses", multiple=True, metavar="NAME", help="A named stress; 'all', or 'list'.")
@click.option(
    "--file",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="TOML file of many scenarios; repeatable.",
)
@click.option(
    "--positions", type=click.Path(path_type=Path), help="CSV: symbol and notional, quantity or weight."
)
@click.option("--skip-unknown", is_flag=True, help="Leave out positions without a series.")
@click.option("--after", is_flag=True, help="Also forecast the bar after the scenario.")
@click.option(
    "--spread", is_flag=True, help="Extend a view on some series to the others, by how they move together."
)
@click.option(
    "--horizon", type=click.IntRange(min=1), help="Bars ahead, a horizon of the run.  [default: its first]"
)
@click.option("--interval", help="Interval of the series, if they have several, such as 1d.")
@click.option(
    "--map", "mapping", type=click.Path(path_type=Path), help="TOML file that maps columns of files."
)
@click.option("--target", help="Folder of the language model that reads headlines.")
@click.option("--draft", help="Folder of the draft model beside it.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option(
    "--draws", type=click.IntRange(200, 100_000), default=4_000, show_default=True, help="Number of draws."
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write all figures; '-' prints them."
)
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write one page of plots.")
def command(
    source: tuple[str, ...],
    shocks: tuple[str, ...],
    headlines: tuple[str, ...],
    on: tuple[str, ...],
    macros: tuple[str, ...],
    stresses: tuple[str, ...],
    files: tuple[Path, ...],
    positions: Path | None,
    skip_unknown: bool,
    spread: bool,
    after: bool,
    horizon: int | None,
    interval: str | None,
    mapping: Path | None,
    target: str | None,
    draft: str | None,
    seed: int,
    draws: int,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Show what a scenario does to each position and to the book, beside today's forecast, and why.

    The run is only read. It may still be running.
    """
    from rich.console import Console

    from htfi.apps.cli.run import adapted
    from htfi.apps.cli.scenario.requests import collect_requests, stress_table
    from htfi.apps.cli.scenario.text import answer_lines
    from htfi.domain.errors import InvalidInput
    from htfi.forecasting.scenarios.positions import equal_positions, read_positions
    from htfi.forecasting.scenarios.stresses import is_tradable_symbol
    from htfi.library.scenarios.figures import scenario_json
    from htfi.pipeline.scenarios.answers import answer_scenarios, forecast_today
    from htfi.pipeline.scenarios.reading import forecast_now
    from htfi.wiring.scenario import open_basis, read_table
    from htfi.wiring.settings import load_settings

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_WIDTH)
    if "list" in stresses:
        console.print(stress_table(horizon or 1, console.width))
        return
    asked = collect_requests(shocks, headlines, on, macros, stresses, files)
    if not source:
        raise InvalidInput(
            "name the folder of a run, or files of prices: `htfi scenario DIR --shock 'SPX -5%'`"
        )
    settings = adapted(load_settings(), bar=None, target=target, draft=draft)
    ground = open_basis(source, settings, mapping=mapping, interval=interval)
    book = (
        equal_positions(ground.series, [is_tradable_symbol(symbol) for symbol in ground.symbols])
        if positions is None
        else read_positions(
            read_table(positions),
            ground.series,
            ground.prices.tolist(),
            origin=str(positions),
            skip_unknown=skip_unknown,
        )
    )
    now = forecast_now(ground)
    answers = answer_scenarios(
        ground,
        now,
        forecast_today(ground, now, horizon, seed, draws),
        asked,
        book,
        spreads=spread,
        follows=after,
    )
    figures = scenario_json(ground, answers, seed) if json_file or html_file else {}
    figures[FIELD] = content_marking()
    if json_file is not None:
        text = json.dumps(figures, ensure_ascii=False, indent=1, allow_nan=False)
        if str(json_file) == "-":
            click.echo(text)
            return
        write_text(json_file, text + "\n")
    if html_file is not None:
        from htfi.apps.cli.scenario.page import page

        write_text(html_file, page(ground, answers))
    for line in answer_lines(ground, answers, min(console.width, 160)):
        console.print(line, soft_wrap=True)
    for file in (json_file, html_file):
        if file is not None:
            click.echo(f"written: {file}", err=True)


def write_text(file: Path, text: str) -> None:
    """Raises: DependencyUnavailable, in one line."""
    from htfi.domain.errors import DependencyUnavailable

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be written: {error.strerror}") from error
