"""`htfi suspicion`: what a run suspects of manipulation, and the word of a named person that ends it."""

from pathlib import Path

import click
import msgspec

from htfi.apps.cli.ledger.entries import progress, report_unread
from htfi.apps.options import requester_options, why_option
from htfi.domain.time import format_ns
from htfi.wiring.authorisation import Requester
from htfi.wiring.suspicion import ResetRequest, SuspectedSymbol, SuspicionStatus, read_status, request_reset

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))


@click.group("suspicion", short_help="Suspected manipulation: show, clear.")
def command() -> None:
    """Show which symbols of a run are suspected of manipulation, and clear a suspicion.

    News of a suspected symbol is read at the rung SECURE: by the target alone, without speculation. Items that did
    not pass the sanitiser wait, and the weight of a view is limited. A suspicion ends by itself after some time
    without incidents.

    \b
    Examples:
      htfi suspicion status DIR
      htfi suspicion clear DIR --by "Ann Lee" --why "our own test" --symbol JPM
    """


@command.command(short_help="What is suspected, and what operators have cleared.")
@FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folder: Path, as_json: bool) -> None:
    """Show what is suspected at each symbol's newest decision, what was suspected before, and what was cleared.

    \b
    Examples:
      htfi suspicion status DIR
      htfi suspicion status DIR --json
    """
    with progress(f"reading {folder}", 0) as advance:
        found = read_status(folder, advance)
    report_unread(found.unread)
    if as_json:
        click.echo(_as_json(found))
        return
    from htfi.apps.display.tables import print_line

    for line in _as_text(found):
        print_line(line)


@command.command("clear", short_help="Clear a suspicion; the record names who did it.")
@FOLDER
@requester_options("Name of the person who clears it.")
@why_option
@click.option("--symbol", default="", metavar="SYMBOL", help="Clear this symbol only (default: everything).")
def clear_command(folder: Path, requester: Requester, why: str, symbol: str) -> None:
    """Clear the suspicion of a symbol or of everything. The record names who did it.

    It takes effect at the run's own time. Later incidents count again. A cleared symbol is still suspected while all
    news is.

    \b
    Examples:
      htfi suspicion clear DIR --by "Ann Lee" --why "known test items"
      htfi suspicion clear DIR --governance G --key ann.key --why "our test"
    """
    clearing, goes_on = request_reset(folder, requester, why, symbol)
    whom = f"symbol {clearing.symbol}" if clearing.symbol else "everything"
    when = (
        "the run applies it within seconds"
        if goes_on
        else f"it takes effect when the run in {folder} resumes"
    )
    click.echo(f"{whom} cleared by {clearing.by}: {clearing.why}; {when}")


def _as_text(found: SuspicionStatus) -> list[str]:
    lines = [_suspected(one) for one in found.current] or ["nothing is suspected"]
    lines += [f"ended: {_suspected(one)}" for one in found.past]
    return [*lines, *map(_said, found.requests)]


def _suspected(one: SuspectedSymbol) -> str:
    num = f"{one.num_decisions} decision{'s' * (one.num_decisions != 1)}"
    return f"{one.symbol}  {one.why}; {num}, the newest {format_ns(one.as_of_ns)}"


def _said(said: ResetRequest) -> str:
    clearing = said.reset
    whom = f"symbol {clearing.symbol}" if clearing.symbol else "everything"
    when = f"took effect {format_ns(said.at_ns)}" if said.at_ns is not None else "not applied yet"
    return f"{whom} cleared by {clearing.by}: {clearing.why} ({when})"


def _as_json(found: SuspicionStatus) -> str:
    record = {
        "suspected": [one._asdict() for one in found.current],
        "before": [one._asdict() for one in found.past],
        "cleared": [{**msgspec.to_builtins(one.reset), "at_ns": one.at_ns} for one in found.requests],
    }
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode()
