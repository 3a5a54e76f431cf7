"""The `htfi` command: its table of subcommands, and the one place where an error becomes one line."""

import os
import sys

import click

from htfi import __version__
from htfi.apps.cli.lazy import LazyGroup
from htfi.domain.errors import HtfiError

COMMANDS = {
    "run": ("htfi.apps.cli.run:command", "Forecast a stream of prices and news; record, then release."),
    "edge": ("htfi.apps.cli.edge:command", "Forecast at the edge, with targets that live in clouds."),
    "cloud": ("htfi.apps.cli.cloud:command", "Serve a target: verify what edges draft."),
    "certs": ("htfi.apps.cli.certs:command", "Certificates by which edges and clouds know each other."),
    "forecast": ("htfi.apps.cli.forecast:command", "One answer for one file of prices."),
    "scenario": ("htfi.apps.cli.scenario:command", "What if: headlines, shocks, stresses on a book."),
    "report": ("htfi.apps.cli.report:command", "One HTML page from a run's folder."),
    "quarantine": ("htfi.apps.cli.quarantine:command", "News that were held back: list, look, release."),
    "secure": ("htfi.apps.cli.secure:command", "Suspicion of manipulation: what stands, and its end."),
    "ledger": ("htfi.apps.cli.ledger:command", "Verify, prove, show, export and cosign the record."),
    "models": ("htfi.apps.cli.models:command", "Language models: list, inspect, convert, check, train."),
    "bench": ("htfi.apps.bench.main:command", "Measure ourselves, beside peers."),
    "eval": ("htfi.apps.eval.main:command", "Judge what models and forecasts are worth."),
    "completion": ("htfi.apps.cli.completion:command", "Print the shell's completion script."),
}

EPILOG = """\b
Examples:
  htfi run                                  replay the embedded sample
  htfi run prices.csv news.jsonl --out DIR  forecast your own files
  tail -f ticks.jsonl | htfi run -          forecast a live stream
  htfi forecast prices.csv                  one answer, now
  htfi report DIR                           look at a run
  htfi ledger verify DIR                    check every recorded decision
"""


@click.group(
    cls=LazyGroup, lazy=COMMANDS, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="htfi")
def cli() -> None:
    """Real-time forecasts of prices and news, each recorded before it is released."""


def main() -> None:
    """Entry point: expected errors end as one line on stderr and exit status 1."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # models are folders; nothing asks a hub for them, or for news of them
    try:
        cli()
    except HtfiError as error:
        click.echo(f"htfi: {error}", err=True)
        sys.exit(1)
