"""`htfi ledger readers`: who may read the record of a run, and who did. `htfi ledger` joins it."""

from pathlib import Path

import click
import msgspec

from htfi.apps.cli.ledger.options import FOLDER
from htfi.domain.time import format_ns
from htfi.narrative.text import clean
from htfi.wiring.reading import RecordReaders, record_readers

_MAX_WORDS = 200  # characters of a reason or a command on the terminal


@click.command("readers", short_help="Who may read the record, and who did.")
@FOLDER
@click.option(
    "--governance",
    required=True,
    metavar="G",
    type=click.Path(path_type=Path, file_okay=False),
    help="Governance folder with the people, the rules and the log of readings.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def readers_command(folder: Path, governance: Path, as_json: bool) -> None:
    """List who may read the record of a run by the rules of G as they are now, and each reading that its log holds,
    with those that were denied.

    A reading is logged by `htfi ledger show`, `audit`, `explain`, `replay`, `prove`, `export` and `verify` with
    --governance G --reader FILE --why TEXT. Without them the rights of the files decide who reads.

    \b
    Examples:
      htfi ledger readers RUN --governance G
      htfi ledger show RUN 12 --governance G --reader ann.key --why "complaint 7"
    """
    found = record_readers(folder, governance)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_body(found)), indent=2))
    else:
        _show(folder, found)


def _body(found: RecordReaders) -> dict[str, object]:
    return {
        "record": found.record,
        "tenant": found.owner.tenant,
        "desks": found.owner.desks,
        "may_read": [
            {
                "name": one.principal.id,
                "kind": one.principal.kind,
                "roles": one.principal.roles,
                "desks": one.principal.desks,
                "tenant": one.principal.tenant,
                "is_allowed": one.is_allowed,
                "reason": one.reason,
            }
            for one in found.may
        ],
        "did_read": found.did,
    }


def _show(folder: Path, found: RecordReaders) -> None:
    from htfi.apps.display.tables import print_line, print_table

    owner = f"tenant {found.owner.tenant}" if found.owner.tenant else "the installation itself"
    desks = f", desks {', '.join(found.owner.desks)}" if found.owner.desks else ""
    print_line(f"{folder}: the record is of {owner}{desks}, signed by {found.record}")
    rows = [
        (
            one.principal.id,
            ", ".join(one.principal.roles),
            one.principal.tenant or "–",
            "may read" if one.is_allowed else "may not",
            _words(one.reason),
        )
        for one in found.may
    ]
    print_table(("who", "roles", "tenant", "now", "why"), rows, title="who may read it")
    if not found.did:
        print_line("no reading is logged")
        return
    read = [
        (
            format_ns(one.at_ns),
            _words(one.by),
            _words(one.what),
            _words(one.why),
            _words(f"denied: {one.refusal}") if one.refusal else "read",
        )
        for one in found.did
    ]
    print_table(("when", "who", "what", "what for", ""), read, title="who read it")


def _words(text: str) -> str:
    return clean(text, _MAX_WORDS)
