"""`htfi stop` and `htfi reenable`: nothing more is released, and the word of a named person that ends it."""

from pathlib import Path

import click

from htfi.apps.options import PERSON, by_option, governance_option, key_option, why_option
from htfi.wiring.control import ControlOutcome, request_reenabling, request_stop

RUN = click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False)
)
SCOPE = click.option(
    "--scope",
    default="firm",
    show_default=True,
    metavar="SCOPE",
    help="firm, desk:NAME, model:NAME, or series:SYMBOL[/interval].",
)


@click.command("stop")
@RUN
@governance_option
@SCOPE
@by_option("Name of the person who stops it.")
@why_option
def stop_command(folder: Path | None, governance: Path | None, scope: str, by: str, why: str) -> None:
    """Stop releasing: in the run of DIR, or without DIR in every run of this user on this machine.

    Decisions are still made and recorded; those in scope are withheld until `htfi reenable`, also after a restart.
    A file named STOP in DIR/control does the same, and so does the signal USR1.

    \b
    Examples:
      htfi stop DIR --by "Ann Lee" --why "quotes look wrong"
      htfi stop DIR --scope series:EURUSD --by "Ann Lee" --why "bad feed"
      htfi stop --by "Ann Lee" --why "fire drill"
      touch DIR/control/STOP
      kill -USR1 PID
    """
    _report(
        request_stop(folder, scope, by, why, shared=governance),
        f"stopped: {scope}, by {by}: {why}",
        folder,
        governance,
    )


@click.command("reenable")
@RUN
@governance_option
@SCOPE
@click.option("--breaker", default="", metavar="NAME", help="Close only this breaker of the scope.")
@click.option("--by", metavar="NAME", type=PERSON, help="Name of the person who re-enables it.")
@key_option
@why_option
def reenable_command(
    folder: Path | None,
    governance: Path | None,
    scope: str,
    breaker: str,
    by: str | None,
    key: Path | None,
    why: str,
) -> None:
    """End a stop of exactly this scope and close its breakers; the record names who did it.

    Where G has people (people.toml), its rules decide who may, and --key signs the request.

    \b
    Examples:
      htfi reenable DIR --by "Ann Lee" --why "feed is repaired"
      htfi reenable --by "Ann Lee" --why "the drill is over"
      htfi reenable DIR --breaker bands_left --by "Ann Lee" --why "a bad print"
      htfi reenable DIR --governance G --key ann.key --why "feed is repaired"
    """
    if by is None and key is None:
        raise click.UsageError("Missing option '--by' (or '--governance' with '--key').")
    what = f"breaker {breaker} of {scope}" if breaker else scope
    outcome = request_reenabling(folder, scope, by or "", why, breaker, shared=governance, key=key)
    who = f", by {by}" if by else ""
    done = (
        "re-enabled" if outcome is ControlOutcome.LOGGED else "asked to re-enable"
    )  # a run may refuse it yet
    _report(outcome, f"{done}: {what}{who}: {why}", folder, governance)


def _report(outcome: ControlOutcome, done: str, folder: Path | None, governance: Path | None) -> None:
    place = f"the run in {folder}" if folder is not None else "every run of this user on this machine"
    if governance is not None and folder is None:
        place = f"every run that goes by {governance}, and by the folders of the nodes linked with it"
    match outcome:
        case ControlOutcome.LOGGED:
            click.echo(f"{done}; {place} has logged it")
        case ControlOutcome.WAITS:
            click.echo(f"{done}; {place} logs it with its next event")
        case ControlOutcome.LATER:
            click.echo(f"{done}; it holds as soon as {place} starts")
        case ControlOutcome.SHARED:
            click.echo(f"{done}; it holds for {place}, running or started later")
        case ControlOutcome.BY_FILE:
            click.echo(
                f"{done}; the disk has no room for the request: an empty file STOP stands for it and stops {place}, "
                "without a name"
            )
