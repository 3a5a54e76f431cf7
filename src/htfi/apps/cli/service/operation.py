"""`htfi service backup | restore | migrate | retention`: what operators do (docs/service-operation.md)."""

import re
import time
from pathlib import Path

import click

from htfi.apps.cli.regulate.options import instant
from htfi.apps.options import PERSON
from htfi.domain.counts import counted
from htfi.wiring.service.backup.making import make_backup
from htfi.wiring.service.backup.restoring import SQLITE, restore_backup
from htfi.wiring.service.migration import migrate_service, missing_steps, move_rows
from htfi.wiring.service.retention import TenantRetention, apply_service_retention, plan_service_retention
from htfi.wiring.service.tenants import read_service

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("backup", short_help="Copy a service's folder while it is in use.")
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
      htfi service restore /backups/1128 DIR --database postgresql://htfi@db/trial
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
            "a run is continued",
            err=True,
        )
    for line in found.left_out:
        click.echo(f"htfi: was not in the backup: {line}", err=True)
    if database is not None:
        click.echo(f"set in {folder}/service.toml: {database_line('' if database == SQLITE else database)}")


@click.command("migrate", short_help="Bring a service's database to this version, or move it.")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--check", is_flag=True, help="Only say what is missing; exit code 1 where something is.")
@click.option(
    "--to", "database", metavar="URL", help="Copy its rows to an empty postgresql://USER@HOST/NAME."
)
def migrate(folder: Path, check: bool, database: str | None) -> None:
    """Bring the database of the service's folder DIR to this version, a transaction a step. Service and runs go on.

    With --to its rows are copied to PostgreSQL in one transaction. The same again copies what changed since, until a
    service uses that database.

    \b
    Examples:
      htfi service migrate DIR --check
      htfi service migrate DIR
      htfi service migrate DIR --to postgresql://htfi@127.0.0.1/htfi
    """
    service = read_service(folder)
    if check:
        done, num_missing = missing_steps(service)
        click.echo(f"{folder}: the database has {counted(done, 'step')}, {num_missing} missing")
        if num_missing:
            raise click.exceptions.Exit(1)
        return
    if database is None:
        num_run = migrate_service(service)
        click.echo(f"{folder}: {counted(num_run, 'step')} run; the database is of this version")
        return
    copied = move_rows(service, database)
    where = database.split("@")[-1]
    if copied.was_there:
        click.echo(f"{where}: holds all {copied.num_rows:,} rows already")
    else:
        click.echo(f"{where}: {counted(copied.num_rows, 'row')} copied")
    click.echo(
        "htfi: stop the service, repeat this command, then set in "
        f"{folder}/service.toml: {database_line(database)}, and start it",
        err=True,
    )


@click.command("retention", short_help="Delete what is older than its term, by order of a named person.")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--apply", "applies", is_flag=True, help="Delete what is due; without, it is listed.")
@click.option("--by", default="", metavar="NAME", type=PERSON, help="Who authorises it; with --apply.")
@click.option("--why", default="", metavar="TEXT", help="The reason, for the record; with --apply.")
@click.option("--at", metavar="TIME", help="As of this day or instant, UTC.  [default: now]")
def retention(folder: Path, applies: bool, by: str, why: str, at: str | None) -> None:
    """List what tenants have that is older than the terms in service.toml, and delete it with --apply.

    Usage and answered requests are deleted while the service is up; what a run recorded, once the run has ended.
    Each deletion is recorded: in the run's governance log, or beside the usage.

    \b
    Examples:
      htfi service retention DIR
      htfi service retention DIR --apply --by "Ann Lee" --why "three years over"
    """
    service = read_service(folder)
    now_ns = time.time_ns() if at is None else instant(at, "--at")
    tenants = (
        apply_service_retention(service, now_ns, by, why)
        if applies
        else plan_service_retention(service, now_ns)
    )
    for one in tenants:
        click.echo(_line_of(one, applies))


def _line_of(one: TenantRetention, applies: bool) -> str:
    parts = [counted(one.num_usage, "row") + " of usage", counted(one.num_answers, "answered request")]
    due = () if one.record is None else one.record.due
    num_entries, num_files = sum(len(each.entries) for each in due), sum(len(each.files) for each in due)
    record = f"{counted(num_entries, 'entry', 'entries')} and {counted(num_files, 'file')} of its run"
    if not applies or not one.goes_on:
        parts.append(record)
    waiting = f"; {record} wait until the run has ended" if one.goes_on and (num_entries or num_files) else ""
    return f"{one.tenant}: {'deleted' if applies else 'due'}: {', '.join(parts)}{waiting}"


def database_line(database: str) -> str:
    """What service.toml has to state; a password is better in the file of HTFI_DATABASE_PASSWORD_FILE."""
    return f'database = "{re.sub(r":[^:@/]*@", "@", database)}"' if database else "no line `database`"
