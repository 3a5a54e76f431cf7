"""`htfi service backup | restore | migrate | retention`: what operators do (docs/service-operation.md)."""

from pathlib import Path

import click

from htfi.domain.counts import counted
from htfi.wiring.service.backup.making import make_backup
from htfi.wiring.service.backup.restoring import SQLITE, restore_backup

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("backup", short_help="Copy a service's folder while it goes on.")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("place", metavar="OUT", type=FOLDER)
@click.option(
    "--with-keys", is_flag=True, help="Private keys too: without them a restored run cannot continue."
)
def backup(folder: Path, place: Path, with_keys: bool) -> None:
    """Copy the service's folder DIR and its database to a new folder OUT. Service and runs go on.

    Every copied ledger is verified. OUT appears once it is whole: a command that was killed leaves no folder OUT.

    \b
    Examples:
      htfi service backup DIR /backups/2026-11-28
      htfi service backup DIR /vault/2026-11-28 --with-keys
    """
    found = make_backup(folder, place, with_keys=with_keys)
    num_bytes = sum(one.num_bytes for one in found.files)
    num_entries = sum(one.size for one in found.ledgers)
    click.echo(
        f"{place}: {counted(len(found.files), 'file')}, {num_bytes:,} bytes, "
        f"{counted(num_entries, 'entry', 'entries')} of {counted(len(found.ledgers), 'log')} verified"
    )
    for line in (*(f"left out: {one}" for one in found.left_out), *found.remarks):
        click.echo(f"htfi: {line}", err=True)
    if with_keys:
        click.echo(f"htfi: {place} holds private keys: who reads it can sign as these runs", err=True)
    elif found.keys_left_out:
        click.echo(f"htfi: private keys are left out: {', '.join(found.keys_left_out)}", err=True)


@click.command("restore", short_help="Make a service's folder of a backup.")
@click.argument("place", metavar="OUT", type=FOLDER)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--database", metavar="URL", help=f"Where its rows go: an empty postgresql://…, or {SQLITE}.")
def restore(place: Path, folder: Path, database: str | None) -> None:
    """Make the service's folder DIR, which must not be there or be empty, of the backup OUT.

    Files are checked against the manifest and every ledger is verified before DIR appears.

    \b
    Examples:
      htfi service restore /backups/2026-11-28 DIR
      htfi service restore /backups/2026-11-28 DIR --database postgresql://htfi@127.0.0.1/trial
    """
    found = restore_backup(place, folder, database)
    num_entries = sum(one.size for one in found.ledgers)
    click.echo(
        f"{folder}: as of {found.made}, {counted(len(found.files), 'file')}, "
        f"{counted(num_entries, 'entry', 'entries')} of {counted(len(found.ledgers), 'log')} verified"
    )
    if found.keys_left_out:
        click.echo(
            f"htfi: keys are missing: {', '.join(found.keys_left_out)}: runs can be read; put the keys there before "
            "a run goes on",
            err=True,
        )
    for line in found.left_out:
        click.echo(f"htfi: was not in the backup: {line}", err=True)
    if database is not None:
        click.echo(f"set in {folder}/service.toml: {database_line('' if database == SQLITE else database)}")


def database_line(database: str) -> str:
    """What service.toml has to state."""
    return f'database = "{database}"' if database else "no line `database`"
