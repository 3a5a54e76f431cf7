"""`htfi models promote`, `rollback` and `serving`: which candidate serves, by the governance log."""

from pathlib import Path

import click

from htfi.apps.options import PERSON, key_option

_governance = click.option(
    "--governance", type=click.Path(path_type=Path, file_okay=False), required=True, help="Governance folder."
)
_by = click.option("--by", default="", metavar="NAME", type=PERSON, help="Name of the person who decides it.")
_why = click.option("--why", required=True, metavar="TEXT", help="The reason, for the record.")


@click.command("promote")
@click.argument("candidate", type=click.Path(path_type=Path))
@_governance
@_by
@key_option
@_why
def promote_command(candidate: Path, governance: Path, by: str, key: Path | None, why: str) -> None:
    """Let CANDIDATE serve, which the sandbox passed as it is now; the log names who decided it.

    Where the governance folder has people (people.toml), its rules decide who may, and --key signs it.

    \b
    Examples:
      htfi sandbox models/new-draft --governance G
      htfi models promote models/new-draft --governance G --by Ann --why faster
    """
    from htfi.domain.time import SystemClock
    from htfi.wiring.sandbox.promotion import promote

    entry = promote(candidate, governance, by=by, why=why, now_ns=SystemClock().now_ns(), key=key)
    click.echo(
        f"{candidate} ({entry.digest[:12]}) serves as {entry.lineage} from now on: {entry.by}, {entry.why}"
    )


@click.command("rollback")
@click.argument("lineage", metavar="WHAT")
@_governance
@_by
@key_option
@_why
def rollback_command(lineage: str, governance: Path, by: str, key: Path | None, why: str) -> None:
    """Take the newest promotion of WHAT back: models or settings.

    \b
    Examples:
      htfi models rollback models --governance G --by Ann --why "slower at length"
    """
    from htfi.domain.time import SystemClock
    from htfi.wiring.sandbox.promotion import roll_back

    entry = roll_back(lineage, governance, by=by, why=why, now_ns=SystemClock().now_ns(), key=key)
    click.echo(
        f"{lineage}: {entry.digest[:12]} is taken back, {entry.to[:12]} serves: {entry.by}, {entry.why}"
    )


@click.command("serving")
@_governance
def serving_command(governance: Path) -> None:
    """Show what the governance folder lets serve, its digests checked."""
    from htfi.apps.display.tables import print_facts
    from htfi.wiring.sandbox.promotion import promoted_models

    found = promoted_models(governance)
    if not found.digests:
        click.echo("nothing is promoted: what ships serves")
        return
    print_facts({lineage: ", ".join(digests) for lineage, digests in sorted(found.digests.items())})
