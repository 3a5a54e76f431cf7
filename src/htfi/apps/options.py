"""Options that several commands have: finite numbers, the files that a run derives from its ledger."""

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from htfi.wiring.outputs import OutputFile


class FiniteRange(click.FloatRange):
    """A range that NaN and infinity are not in: comparisons alone would let NaN pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _output_files(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> "frozenset[OutputFile] | None":
    from htfi.wiring.outputs import OutputFile

    if value is None:
        return None
    try:
        return frozenset(OutputFile(name) for name in value.split(",") if value != "none")
    except ValueError:
        raise click.BadParameter(
            f"'{value}': name jsonl, parquet, both with a comma, or none", ctx, param
        ) from None


outputs_option = click.option(
    "--outputs",
    metavar="FILES",
    callback=_output_files,
    help="Files made from the ledger: jsonl, parquet, both with a comma, or none. By default parquet for files of more "
    "than 512 KiB together, else both.",
)

listen_option = click.option(
    "--listen",
    default="",
    metavar="ADDRESS",
    help="Serve decisions to programs on this machine, at unix:PATH or 127.0.0.1:PORT: a client sends "
    '{"from": 0} and a newline, and gets their lines from that index on.',
)
