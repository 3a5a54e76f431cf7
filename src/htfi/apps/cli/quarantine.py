"""`htfi quarantine`: the news that a run held back: list them, look at one, let it out on a named person's word."""

from pathlib import Path

import click

from htfi.apps.cli import quarantine_view as view
from htfi.wiring.quarantine import admit as let_out
from htfi.wiring.quarantine import find_quarantined, list_quarantined

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
WHICH = click.argument("which", metavar="ID")
JSON = click.option("--json", "as_json", is_flag=True, help="For machines.")


@click.group("quarantine", short_help="News in quarantine: list, show, release.")
def command() -> None:
    """List, look at and release the news that a run's sanitiser held back.

    DIR is the folder of a run, as `htfi run --out DIR` made it.

    \b
    Examples:
      htfi quarantine list DIR
      htfi quarantine list DIR --source telegram --rule injection
      htfi quarantine show DIR 3
      htfi quarantine release DIR 3 --by "Ann Lee" --why "confirmed by the company"
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


@command.command(short_help="Release an item; the record names who did it.")
@FOLDER
@WHICH
@click.option("--by", required=True, metavar="NAME", help="Who lets it out.")
@click.option("--why", required=True, metavar="TEXT", help="The reason, for the record.")
def release(folder: Path, which: str, by: str, why: str) -> None:
    """Let an item out of quarantine. It enters the run as news, at the run's own time, and the ledger tells by whom.

    \b
    Examples:
      htfi quarantine release DIR 3 --by "Ann Lee" --why "confirmed by the company"
    """
    kept, goes_on = let_out(folder, which, by, why)
    click.echo(view.admission_text(kept, goes_on, folder))
