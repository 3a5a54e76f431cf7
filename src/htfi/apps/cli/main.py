"""A click group that imports a command only when it is used, so that `htfi --help` answers at once.

The `htfi` command: its table of subcommands, and the one place where an error becomes one line.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from htfi import __version__
from htfi.domain.errors import HtfiError, MissingExtra

# New objects after which Python looks for cycles. At its usual 700 a start looks 200 times and finds none; one with
# models makes over 100,000, which it would look at for 20 ms.
_COLLECTION_THRESHOLD = 250_000
EXIT_INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended
# Packages of the distributions that a run does not need, and the extra that installs each.
OPTIONAL_PACKAGES = {"htfi_eval": "eval", "htfi_train": "train"}


class LazyGroup(click.Group):
    """`lazy` maps a command's name to ('module:attribute', one-line help)."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = EARLIER_NAMES.get(cmd_name, cmd_name)
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            package = module.partition(".")[0]
            if error.name != package or package not in OPTIONAL_PACKAGES:
                raise
            return _not_installed(cmd_name, _path_of(ctx, cmd_name), OPTIONAL_PACKAGES[package])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C that it does not handle itself is one line, and the status that a shell gives it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nhtfi: stopped by Ctrl-C; run the same command again", err=True)
            ctx.exit(EXIT_INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])


def _path_of(ctx: click.Context, name: str) -> str:
    """`name` after the groups that lead to it, whatever the program was started as: `models train`."""
    names = [name]
    while ctx.parent is not None:
        names.insert(0, ctx.command.name or "")
        ctx = ctx.parent
    return " ".join(names)


def _not_installed(name: str, path: str, extra: str) -> click.Command:
    """A command that says how to install it, whatever follows its name."""

    def refuse(**_: Any) -> None:
        raise MissingExtra(
            f"`htfi {path}` is in the distribution htfi-{extra}: "
            f"pip install 'htfi[{extra}]', or in a checkout: pip install '.[{extra}]'"
        )

    return click.Command(
        name,
        callback=refuse,
        add_help_option=False,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
    )


COMMANDS = {
    "run": ("htfi.apps.cli.run:command", "Forecast a stream of prices and news; record, then release."),
    "trade": ("htfi.apps.cli.trade:command", "Forecast, and act on it by orders: paper trading."),
    "orders": (
        "htfi.apps.cli.orders.command:command",
        "Orders of a run: list, show, costs, cancel, reconcile.",
    ),
    "venue": ("htfi.apps.cli.venue:command", "The simulated venue as a FIX counterparty."),
    "edge": ("htfi.apps.cli.edge:command", "Forecast at the edge; clouds run the target model."),
    "cloud": ("htfi.apps.cli.cloud:command", "Serve a target model to edges."),
    "certs": ("htfi.apps.cli.certs:command", "Certificates of edges and clouds: make, list."),
    "forecast": ("htfi.apps.cli.forecast.command:command", "Forecast one file of prices."),
    "news": (
        "htfi.apps.cli.news.command:command",
        "What is understood of a headline, and what it would move.",
    ),
    "calendar": (
        "htfi.apps.cli.calendar.command:command",
        "Calendars of scheduled events: check what is recognised.",
    ),
    "scenario": (
        "htfi.apps.cli.scenario.command:command",
        "What if: headlines, shocks and stresses on a book.",
    ),
    "sandbox": (
        "htfi.apps.cli.sandbox.command:command",
        "Try a model, settings or an expert before it serves.",
    ),
    "serve": ("htfi.apps.cli.serve:command", "Serve a run over HTTP: forecasts, decisions, streams, record."),
    "publish": ("htfi.apps.cli.publish:command", "Publish a run's decisions on a bus: NATS JetStream."),
    "mcp": ("htfi.apps.cli.mcp:command", "Serve a run to agents: Model Context Protocol."),
    "service": ("htfi.apps.cli.service.command:command", "Tenants of a service: keys, usage."),
    "report": ("htfi.apps.cli.report:command", "Write one HTML page about a run."),
    "policy": ("htfi.apps.cli.policy.command:command", "Policy bundles: draft, sign, activate."),
    "stop": ("htfi.apps.cli.stop:stop_command", "Release nothing more, now."),
    "reenable": ("htfi.apps.cli.stop:reenable_command", "End a stop, or close a breaker."),
    "quarantine": ("htfi.apps.cli.quarantine:command", "News in quarantine: list, show, admit."),
    "suspicion": ("htfi.apps.cli.suspicion:command", "Suspected manipulation: show, clear."),
    "approvals": ("htfi.apps.cli.approvals.command:command", "Decisions that wait for people: list, answer."),
    "audit": ("htfi.apps.cli.audit.command:command", "Whether groups are treated alike."),
    "ledger": ("htfi.apps.cli.ledger.command:command", "Verify, show, replay, prove and export the record."),
    "regulate": ("htfi.apps.cli.regulate.command:command", "Regulators' monitors: check, report."),
    "mark": ("htfi.apps.cli.mark:command", "Marks in texts: make a key, verify a text."),
    "settings": ("htfi.apps.cli.settings:command", "List the settings: unit, default, meaning."),
    "models": (
        "htfi.apps.cli.models.command:command",
        "Language models: list, inspect, convert, check, train.",
    ),
    "bench": ("htfi_eval.main:bench", "Benchmarks: latency, throughput, memory."),
    "eval": ("htfi_eval.main:evaluate", "Evaluations of forecasts and models."),
    "completion": ("htfi.apps.cli.completion:command", "Print the shell's completion script."),
}
EARLIER_NAMES = {"secure": "suspicion"}  # of commands in 0.1.0, which still work

EPILOG = """\b
Examples:
  htfi run                                  replay the embedded sample
  htfi run prices.csv news.jsonl --out DIR  forecast your own files
  tail -f ticks.jsonl | htfi run -          forecast a live stream
  htfi forecast prices.csv                  one answer
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
    gc.set_threshold(_COLLECTION_THRESHOLD)
    open_missing_streams()
    try:
        cli()
    except HtfiError as error:
        click.echo(f"htfi: {error}", err=True)
        sys.exit(1)
    except OSError:
        problem = _output_problem()
        if not problem:
            raise
        click.echo(
            f"htfi: standard output cannot be written: {problem}; send it elsewhere, and run the same command again",
            err=True,
        )
        sys.exit(1)
    finally:
        gc.freeze()  # the system takes the memory back: nothing is gained by looking for garbage on the way out


def open_missing_streams() -> None:
    """Put the null device where standard input, output or error was closed.

    The next file that is opened, as a ledger, would else have that number, and what is printed would go into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _output_problem() -> str:
    """Why standard output takes nothing more, in words; empty where it does. What it did not take is then discarded."""
    try:
        sys.stdout.flush()
        os.write(1, b"\n")  # nothing may be pending where streams are unbuffered
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)  # else the interpreter fails at the same bytes on its way out
        os.close(null)
        return error.strerror or str(error)
    return ""
