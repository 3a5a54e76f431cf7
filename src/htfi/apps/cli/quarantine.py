"""`htfi quarantine`: the news that a run held back: list them, look at one, admit it on a named person's word."""

from copy import copy
from pathlib import Path

import click

from htfi.apps.cli import quarantine_view as view
from htfi.apps.options import requester_options, why_option
from htfi.wiring import quarantine
from htfi.wiring.authorisation import Requester
from htfi.wiring.quarantine import find_quarantined, list_quarantined

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
WHICH = click.argument("which", metavar="ID")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("quarantine", short_help="News in quarantine: list, show, admit.")
def command() -> None:
    """List, show and admit the news that the sanitiser of a run put in quarantine.

    DIR is the folder of a run, as `htfi run --out DIR` made it.

    \b
    Examples:
      htfi quarantine list DIR
      htfi quarantine list DIR --source telegram --rule injection
      htfi quarantine show DIR 3
      htfi quarantine admit DIR 3 --by "Ann Lee" --why "confirmed by the company"
    """


@command.command("list", short_help="List items and why they were quarantined.")
@FOLDER
@click.option("--source", metavar="NAME", help="Only items of this source.")
@click.option("--rule", metavar="RULE", help="Only items with a finding of this rule.")
@JSON
def list_items(folder: Path, source: str | None, rule: str | None, as_json: bool) -> None:
    """List the items in quarantine, oldest first.

    \b
    Examples:
      htfi quarantine list DIR
      htfi quarantine list DIR --rule impersonation --json
    """
    kept = list_quarantined(folder, source, rule)
    if as_json:
        for one in kept:
            click.echo(view.as_json(one))
    else:
        view.show_list(kept, folder)


@command.command(short_help="Show one item: its text and every finding.")
@FOLDER
@WHICH
@JSON
def show(folder: Path, which: str, as_json: bool) -> None:
    """Show one item by its id or number: cleaned, then as it came with hidden characters made visible, as in \\u200b.

    \b
    Examples:
      htfi quarantine show DIR 3
      htfi quarantine show DIR telegram:17 --json
    """
    kept = find_quarantined(folder, which)
    if as_json:
        click.echo(view.as_json(kept))
    else:
        view.show_item(kept)


@command.command(short_help="Admit an item; the record names who did it.")
@FOLDER
@WHICH
@requester_options("Name of the person who admits it.")
@why_option
def admit(folder: Path, which: str, requester: Requester, why: str) -> None:
    """Admit an item from quarantine. It enters the run as news, at the run's own time; the ledger names who did it.

    \b
    Examples:
      htfi quarantine admit DIR 3 --by "Ann Lee" --why "confirmed by the company"
      htfi quarantine admit DIR 3 --governance G --key ann.key --why "confirmed"
    """
    kept, goes_on = quarantine.admit(folder, which, requester, why)
    click.echo(view.admission_text(kept, goes_on, folder))


_BEFORE = copy(admit)  # the command by its name in 0.1.0
_BEFORE.name, _BEFORE.hidden = "release", True
command.add_command(_BEFORE)
