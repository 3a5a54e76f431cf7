"""`htfi bench`: measures ourselves, beside peers. cli.main finds it; each command is a module of this folder."""

import click

from htfi_eval.bench import buffering, engine, ledger, paths
from htfi_eval.bench import news as narrative
from htfi_eval.bench.decode import command as decode
from htfi_eval.bench.link import command as link
from htfi_eval.bench.ticks import command as ticks


@click.group("bench")
def command() -> None:
    """Measure ourselves, beside peers where they are installed.

    \b
    Examples:
      htfi bench ticks                           latency, throughput and memory of market state
      htfi bench ledger --json build/ledger.json appends, verification and proofs
      htfi bench engine                          steps of a language model on one core
      htfi bench decode                          what speculative decoding gains
      htfi bench paths                           drawing many price paths at once
      htfi bench buffering                       views read before a scheduled release
    """


command.add_command(ticks.command)
command.add_command(ledger.command)
command.add_command(engine.command)
command.add_command(decode.command)
command.add_command(paths.command)
command.add_command(link.command)
command.add_command(narrative.command)
command.add_command(buffering.command)
