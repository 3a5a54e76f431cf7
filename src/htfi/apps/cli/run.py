"""`htfi run`: a stream of prices and news in, recorded and released forecasts out."""

from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.cli.numbers import FiniteRange

if TYPE_CHECKING:
    from htfi.wiring.settings import Settings

EPILOG = """\b
Examples:
  htfi run                                       the embedded sample
  htfi run prices.csv news.jsonl --out run1      your files; kinds and columns are recognised
  htfi run --map feeds.toml --out run1           columns, zones and live sources by a mapping
  htfi run trades.parquet quotes.parquet --bar 1m
  tail -f ticks.jsonl | htfi run - --stdout      a live stream in, decisions out as JSON lines
  htfi run --pace 86400 --out run1               watch: a day a second
  htfi run news.jsonl prices.csv --target ~/models/Qwen3-1.7B --draft ~/models/Qwen3-0.6B
\b
A run that was stopped or killed goes on where it was: give the same command again.
"""


@click.command("run", epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--map", "mapping", type=click.Path(path_type=Path), help="TOML that maps sources and columns.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("htfi-run"), show_default=True, help="Folder."
)
@click.option("--settings", "settings_file", type=click.Path(path_type=Path), help="TOML of settings.")
@click.option("--bar", help="Bars built from ticks: 60s, 5m, volume:5000 or dollar:1000000.")
@click.option("--target", help="Folder of the language model that reads news when there is time.")
@click.option("--draft", help="Folder of the small model that reads when time is short.")
@click.option("--pace", type=FiniteRange(min=0, min_open=True), help="Replay at so many times real speed.")
@click.option(
    "--releases", type=click.Path(path_type=Path), help="The released.jsonl of a run that this one repeats."
)
@click.option("--stdout", "to_stdout", is_flag=True, help="Also write each decision to standard output.")
@click.option("--plain", is_flag=True, help="Lines instead of the live view.")
@click.option("--report/--no-report", default=True, show_default=True, help="Write report.html at the end.")
def command(
    files: tuple[str, ...],
    mapping: Path | None,
    out: Path,
    settings_file: Path | None,
    bar: str | None,
    target: str | None,
    draft: str | None,
    pace: float | None,
    releases: Path | None,
    to_stdout: bool,
    plain: bool,
    report: bool,
) -> None:
    """Forecast a stream of prices and news; record each decision, then release it.

    Without files it replays the embedded sample. DIR then holds decisions.jsonl and decisions.parquet, the
    ledger, the quarantine and report.html.
    """
    from htfi.apps.cli.running import carry_out
    from htfi.wiring.settings import load_settings

    carry_out(
        adapted(load_settings(settings_file), bar=bar, target=target, draft=draft),
        files,
        mapping,
        out,
        mirror=FileIO(1, "wb", closefd=False) if to_stdout else None,
        pace=pace,
        releases=releases,
        plain=plain,
        report=report,
    )


def adapted(settings: "Settings", *, bar: str | None, target: str | None, draft: str | None) -> "Settings":
    """Settings with what the command line says in their place. Raises: InvalidInput."""
    from htfi.wiring.settings import override

    if bar is not None:
        settings = override(settings, "market", bar=bar)
    for role, folder in (("target", target), ("draft", draft)):
        if folder is not None:
            settings = override(settings, "models", **{role: folder})
    return settings
