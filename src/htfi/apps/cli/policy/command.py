"""`htfi policy`: draft, diff, sign, propose, activate and revoke the bundle of limits that runs go by."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from htfi.apps.options import PERSON, why_option
from htfi.domain.counts import counted
from htfi.domain.errors import InvalidInput
from htfi.domain.time import SystemClock, format_ns, parse_timestamp
from htfi.governance.bundles.in_force import BundleActivated, BundleProposed, BundleRevoked, bundle_in_force
from htfi.governance.bundles.tables import ChangeDirection, ValueChange
from htfi.wiring import bundles
from htfi.wiring.ledger import create_signing_key

GOVERNANCE = click.argument("folder", metavar="G", type=click.Path(path_type=Path, file_okay=False))
BUNDLE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
KEY = click.option(
    "--key", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Your signing key."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("policy", short_help="Policy bundles: draft, sign, activate.")
def command() -> None:
    """The limits that runs go by, as a bundle that several officers sign. G is a governance folder.

    \b
    Examples:
      htfi policy keys ann ann.key                          an officer's key
      htfi policy init G --quorum 2 --officer ann=VKEY …    the officers
      htfi policy draft G --by ann --set policy.max_band_width=0.4 --out b.toml
      htfi policy sign b.toml --key ann.key                 one by one
      htfi policy propose G b.toml
      htfi policy activate G 1
      htfi run prices.csv --governance G
    """


@command.command("keys", short_help="Make an officer's key.")
@click.argument("name")
@BUNDLE
def keys_command(name: str, file: Path) -> None:
    """Make a signing key for NAME in FILE, which only its owner may read; print the verifier key for the roll."""
    click.echo(str(create_signing_key(file, name)))


@command.command("init", short_help="Make a governance folder with its officers.")
@GOVERNANCE
@click.option("--quorum", required=True, type=click.IntRange(1), help="How many officers must sign a bundle.")
@click.option(
    "--officer",
    "officers",
    multiple=True,
    required=True,
    metavar="NAME=VKEY",
    help="An officer and the verifier key that `htfi policy keys` printed; repeatable.",
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME",
    help="An edge or cloud, by the name in its certificate, that agrees on bundles with the others; repeatable.",
)
def init_command(folder: Path, quorum: int, officers: tuple[str, ...], nodes: tuple[str, ...]) -> None:
    """Make the folder G with the roll of officers. The roll is never changed by a command.

    With nodes a bundle holds once a majority of them has taken it: make a folder with the same officers and nodes on
    each, and start `htfi edge` and `htfi cloud` with --governance.
    """
    pairs: list[tuple[str, str]] = []
    for text in officers:
        name, equals, key = text.partition("=")
        if not equals:
            raise InvalidInput(f"--officer '{text[:40]}': write NAME=VKEY")
        pairs.append((name, key))
    roll = bundles.init_folder(folder, quorum, pairs, nodes)
    among = f"; a majority of {len(nodes)} nodes takes it: {', '.join(nodes)}" if nodes else ""
    click.echo(
        f"{folder}: {counted(len(roll.keys), 'officer')}, a bundle needs the signatures of {roll.quorum}{among}"
    )


@command.command("draft", short_help="Write a draft that follows the newest bundle.")
@GOVERNANCE
@click.option("--by", required=True, metavar="NAME", type=PERSON, help="Its author.")
@click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="TABLE.KEY=VALUE",
    help="A value that changes, as TOML; repeatable.",
)
@click.option("--valid-from", metavar="TIME", help="From when on it holds, such as 2026-01-05T08:00:00Z.")
@click.option("--expires", metavar="TIME", help="When it ends.")
@click.option("--emergency", is_flag=True, help="Signed by one officer: may only tighten, and must expire.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File of the draft."
)
def draft_command(
    folder: Path,
    by: str,
    assigned: tuple[str, ...],
    valid_from: str | None,
    expires: str | None,
    emergency: bool,
    out: Path,
) -> None:
    """Write a draft to a file, every value spelled out. It may be edited until it is signed."""
    bundle = bundles.draft_bundle(
        folder,
        by,
        assigned,
        valid_from_ns=parse_timestamp(valid_from) if valid_from else None,
        expires_ns=parse_timestamp(expires) if expires else None,
        is_emergency=emergency,
    )
    bundles.write_draft(out, bundle)
    click.echo(
        f"bundle {bundle.head.number} drafted in {out}: sign it with `htfi policy sign {out} --key FILE`"
    )
    _print_status(bundles.status_of(folder, out))


@command.command("diff", short_help="What a bundle changes, and who has signed it.")
@GOVERNANCE
@BUNDLE
@JSON
def diff_command(folder: Path, file: Path, as_json: bool) -> None:
    """Show each value that the bundle in FILE changes: what it was, what it becomes, and whether that is tighter."""
    found = bundles.status_of(folder, file)
    if as_json:
        record = {
            "number": found.bundle.head.number,
            "digest": found.bundle.digest,
            "signers": found.signers,
            "needed": found.needed,
            "changes": [one._asdict() for one in found.changes],
        }
        click.echo(_as_json(record))
        return
    _print_status(found)


@command.command("sign", short_help="Sign a draft.")
@BUNDLE
@KEY
def sign_command(file: Path, key: Path) -> None:
    """Add your signature to the bundle in FILE. After the first one its text can no longer be changed."""
    bundle, name = bundles.sign_bundle(file, key)
    click.echo(f"bundle {bundle.head.number} signed by {name}: digest {bundle.digest}")


@command.command("propose", short_help="Put a signed draft before the officers.")
@GOVERNANCE
@BUNDLE
def propose_command(folder: Path, file: Path) -> None:
    """Put the bundle in FILE before the officers: it lies in G from now on, and the governance log says so."""
    found = bundles.propose_bundle(folder, file)
    number = found.bundle.head.number
    path = bundles.bundle_path(folder, number)
    click.echo(f"bundle {number} proposed: {path}; {_signed(found)}")


@command.command("activate", short_help="Put a bundle in force.")
@GOVERNANCE
@click.argument("which", metavar="N|FILE")
def activate_command(folder: Path, which: str) -> None:
    """Put a proposed bundle, by its number, or the one in FILE in force. Runs of G adopt it at once."""
    found: int | Path = int(which) if which.isdecimal() and len(which) < 7 else Path(which)
    bundle, signers = bundles.activate_bundle(folder, found)
    head = bundle.head
    until = f" until {format_ns(head.expires_ns)}" if head.expires_ns is not None else ""
    click.echo(
        f"bundle {head.number} holds from {format_ns(head.valid_from_ns)}{until}, signed by {', '.join(signers)}: "
        f"digest {bundle.digest}"
    )


@command.command("revoke", short_help="Take back the bundle in force.")
@GOVERNANCE
@KEY
@why_option
def revoke_command(folder: Path, key: Path, why: str) -> None:
    """Take back the bundle in force: nothing is released until another one is activated. One officer is enough."""
    found = bundles.revoke_bundle(folder, key, why)
    number = found.bundle.head.number if found.bundle is not None else 0
    click.echo(f"bundle {number} revoked: runs of {folder} withhold everything until another is activated")


@command.command("show", short_help="The bundle in force.")
@GOVERNANCE
@JSON
def show_command(folder: Path, as_json: bool) -> None:
    """Show the bundle that runs of G go by now, as its text, and why nothing is released where that is so."""
    roll = bundles.read_roll(folder)
    found = bundle_in_force(bundles.read_entries(folder), SystemClock().now_ns())
    if as_json:
        bundle = found.bundle
        record = {
            "quorum": roll.quorum,
            "officers": {name: str(key) for name, key in roll.keys.items()},
            "bundle": None if bundle is None else {"number": bundle.head.number, "digest": bundle.digest},
            "tables": None if bundle is None else msgspec.to_builtins(bundle.tables),
            "stale": found.stale,
        }
        click.echo(_as_json(record))
        return
    if found.stale:
        click.echo(f"nothing is released: {found.stale}")
    if found.bundle is None:
        click.echo("no bundle is in force: the limits of each run's settings hold")
        return
    click.echo(f"digest {found.bundle.digest}\n")
    click.echo(found.bundle.text, nl=False)


@command.command("log", short_help="What happened to bundles.")
@GOVERNANCE
@JSON
def log_command(folder: Path, as_json: bool) -> None:
    """List what the governance log holds of bundles, oldest first."""
    bundles.read_roll(folder)
    entries = bundles.read_entries(folder)
    if as_json:
        click.echo(_as_json([msgspec.to_builtins(one) for one in entries]))
        return
    for one in entries:
        at, head = format_ns(one.at_ns), f"bundle {one.number} {one.digest[:12]}"
        match one:
            case BundleProposed():
                click.echo(f"{at}  {head} proposed by {one.author}, signed by {', '.join(one.signers)}")
            case BundleActivated():
                click.echo(f"{at}  {head} activated, signed by {', '.join(one.signers)}")
            case BundleRevoked():
                click.echo(f"{at}  {head} revoked by {one.by}: {one.why}")


def _signed(found: bundles.BundleStatus) -> str:
    missing = found.needed - len(found.signers)
    by = f"signed by {', '.join(found.signers)}" if found.signers else "not signed yet"
    return f"{by}; {missing} more must sign" if missing > 0 else f"{by}: it can be activated"


def _print_status(found: bundles.BundleStatus) -> None:
    from htfi.apps.display.tables import print_table

    if found.changes:
        rows = [[one.name, _shown(one.before), _shown(one.after), _word(one)] for one in found.changes]
        print_table(["value", "was", "becomes", ""], rows, title=f"bundle {found.bundle.head.number}")
    else:
        click.echo(f"bundle {found.bundle.head.number} changes no value")
    click.echo(_signed(found))


def _word(change: ValueChange) -> str:
    return "" if change.kind is ChangeDirection.OTHER else change.kind.value


def _shown(value: Any) -> str:
    """A value in words, without the names that Python has for it."""
    match value:
        case None | ():
            return "none"
        case Mapping():
            entries = cast("Mapping[Any, Any]", value).items()
            return ", ".join(f"{_shown(name)}: {_shown(one)}" for name, one in entries) or "none"
        case tuple() | list() | set() | frozenset():
            return ", ".join(map(_shown, cast("Collection[Any]", value))) or "none"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _as_json(record: object) -> str:
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode()
