"""`htfi service`: the tenants of a service's folder, their keys, and what they have used."""

import re
import time
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from htfi.apps.cli.service.operation import backup, migrate, restore, retention
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_S, format_ns
from htfi.tenancy.quotas import Quota
from htfi.tenancy.scopes import ApiScope, parse_scopes
from htfi.tenancy.usage import MICROS, NANOS, UsageRow
from htfi.wiring.service.tenants import issue_key, open_store, read_service
from htfi.wiring.service.usage import usage_rows, write_usage_csv, write_usage_parquet

_SPAN_NS = {"m": 60 * NS_PER_S, "h": 3_600 * NS_PER_S, "d": NS_PER_DAY}
_MAX_SPAN_NS = 3_660 * NS_PER_DAY

FOLDER = click.option(
    "--service",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The service's folder, with service.toml.",
)
OUTPUT = click.Path(path_type=Path, dir_okay=False)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("service", short_help="Tenants of a service: keys, usage.")
def command() -> None:
    """Keys of a service's tenants, and what they have used (docs/tenants.md).

    \b
    Examples:
      htfi service keys add acme --service DIR --name ann --scopes read,ask
      htfi service keys list --service DIR
      htfi service keys revoke acme ID --service DIR
      htfi service usage --service DIR --csv usage.csv
      htfi service backup DIR /backups/2026-11-28
    """


for one in (backup, restore, migrate, retention):
    command.add_command(one)


@command.group("keys", short_help="API keys: add, list, revoke.")
def keys() -> None:
    """API keys of tenants. What is kept of a key is a digest: it is shown once."""


@keys.command("add", short_help="Make a key and print it, once.")
@click.argument("tenant")
@FOLDER
@click.option("--name", required=True, help="Whose key it is, or what for.")
@click.option("--scopes", required=True, metavar="A,B", help=f"What it may do: {', '.join(ApiScope)}.")
@click.option("--expires", metavar="SPAN", help="Such as 90d or 12h; without, it does not expire.")
@click.option("--person", default="", help="Whom it stands for in the governance folder's people.toml.")
@click.option(
    "--quota", "quotas", multiple=True, metavar="NAME=NUMBER", help="A bound of its own, as in service.toml."
)
@JSON
def add_command(
    tenant: str, folder: Path, name: str, scopes: str, expires: str | None, person: str, quotas: tuple[str, ...],
    as_json: bool,
) -> None:  # fmt: skip
    """Make a key of a tenant. Only the key goes to standard output; it cannot be shown again.

    \b
    Examples:
      htfi service keys add acme --service DIR --name ann --scopes read,ask
      htfi service keys add a --service DIR --name b --scopes ask --expires 90d
    """
    service = read_service(folder)
    service.check_tenant(tenant)
    granted = parse_scopes([one.strip() for one in scopes.split(",") if one.strip()], "--scopes")
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise InvalidInput("--name: write a name of 1 to 200 letters")
    expires_ns = None if expires is None else time.time_ns() + _span_ns(expires)
    quota = _quota_of(quotas)
    with closing(open_store(service)) as store:
        text = issue_key(store, tenant, name, granted, expires_ns=expires_ns, person=person, quota=quota)
    if as_json:
        click.echo(msgspec.json.encode({"key": text, "id": text.split("_")[1], "tenant": tenant}).decode())
        return
    click.echo(text)
    click.echo("htfi: keep it now: it is not shown again", err=True)


@keys.command("list", short_help="List keys, without what would let one in.")
@click.argument("tenant", required=False)
@FOLDER
@JSON
def list_command(tenant: str | None, folder: Path, as_json: bool) -> None:
    """List the keys of a tenant, or of all, oldest first.

    \b
    Examples:
      htfi service keys list --service DIR
      htfi service keys list acme --service DIR --json
    """
    service = read_service(folder)
    if tenant is not None:
        service.check_tenant(tenant)
    with closing(open_store(service)) as store:
        found = store.keys(tenant)
    now_ns = time.time_ns()
    for one in found:
        row: dict[str, Any] = {
            "id": one.id,
            "tenant": one.tenant,
            "name": one.name,
            "scopes": sorted(one.scopes),
            "state": "valid" if one.is_valid(now_ns) else "revoked" if one.revoked_ns else "expired",
            "created": format_ns(one.created_ns),
            "expires": None if one.expires_ns is None else format_ns(one.expires_ns),
            "used": None if one.used_ns is None else format_ns(one.used_ns),
            "person": one.person,
        }
        if as_json:
            click.echo(msgspec.json.encode(row).decode())
        else:
            words = (
                row["id"],
                row["tenant"],
                row["state"],
                ",".join(row["scopes"]),
                row["used"] or "never used",
            )
            click.echo("  ".join((*words, one.name)))


@keys.command("revoke", short_help="End a key.")
@click.argument("tenant")
@click.argument("key_id", metavar="ID")
@FOLDER
def revoke_command(tenant: str, key_id: str, folder: Path) -> None:
    """End a key: a service that runs refuses it within a second.

    \b
    Examples:
      htfi service keys revoke acme mzxw6ytboi2gc3tf --service DIR
    """
    service = read_service(folder)
    service.check_tenant(tenant)
    with closing(open_store(service)) as store:
        if not store.revoke_key(tenant, key_id, time.time_ns()):
            raise InvalidInput(f"{tenant} has no valid key {key_id[:40]!r}: htfi service keys list {tenant}")
    click.echo(f"revoked: {key_id}")


@command.command("usage", short_help="What tenants have used, by day and key.")
@click.argument("tenant", required=False)
@FOLDER
@click.option("--from", "first", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="First day, UTC.")
@click.option("--to", "last", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="Last day, UTC.")
@click.option("--csv", "csv_file", type=OUTPUT, help="Write a CSV file.")
@click.option("--parquet", "parquet_file", type=OUTPUT, help="Write a Parquet file.")
@JSON
def usage_command(
    tenant: str | None, folder: Path, first: datetime | None, last: datetime | None, csv_file: Path | None,
    parquet_file: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """What each tenant and key used each day: requests, tokens, processor time, money; decisions of its run's ledger.

    \b
    Examples:
      htfi service usage --service DIR
      htfi service usage acme --service DIR --from 2026-11-01 --csv november.csv
    """
    service = read_service(folder)
    if tenant is not None:
        service.check_tenant(tenant)
    with closing(open_store(service)) as store:
        days = (_day(first, date(1970, 1, 1)), _day(last, datetime.now(UTC).date()))
        rows = usage_rows(store, service.config.prices.currency, *days, tenant)
    if csv_file is not None:
        write_usage_csv(csv_file, rows)
    if parquet_file is not None:
        write_usage_parquet(parquet_file, rows)
    if as_json or (csv_file is None and parquet_file is None):
        for row in rows:
            click.echo(msgspec.json.encode(row).decode() if as_json else _line_of(row))


def _line_of(row: UsageRow) -> str:
    if not row.key:
        return f"{row.day}  {row.tenant}  {row.decisions:,} decisions recorded"
    money = f"{row.money_nano / NANOS:.2f} {row.currency}"
    refused = f" ({row.refused:,} more refused)" if row.refused else ""
    amounts = f"{row.requests:,} requests{refused}, {row.tokens:,} tokens, {row.cpu_us / MICROS:.2f} s"
    return f"{row.day}  {row.tenant}  {row.key}  {amounts}, {money}"


def _day(given: datetime | None, otherwise: date) -> int:
    return ((otherwise if given is None else given.date()) - date(1970, 1, 1)).days


def _span_ns(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    span_ns = int(found[1]) * _SPAN_NS[found[2]] if found else 0
    if not 0 < span_ns <= _MAX_SPAN_NS:
        raise InvalidInput(f"--expires {text}: write a number and m, h or d, such as 90d; ten years at most")
    return span_ns


def _quota_of(words: tuple[str, ...]) -> Quota:
    given = {name: number for name, _, number in (one.partition("=") for one in words)}
    try:
        return msgspec.convert(given, Quota, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"--quota: {error}: write NAME=NUMBER, such as tokens_per_day=100000") from None
