"""`htfi regulate retention`: what a run's record no longer has to keep, and its deletion by order of a named person."""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from htfi.apps.cli.regulate.options import instant
from htfi.apps.options import PERSON
from htfi.domain.counts import counted
from htfi.domain.errors import InvalidInput
from htfi.domain.time import format_ns
from htfi.governance.regulation.retention import RETENTION_CLASSES, RetentionClass, retention_class
from htfi.wiring.retention import RetentionPlan, apply_retention, plan_retention

RUN = click.argument("run", metavar="RUN", type=click.Path(path_type=Path, file_okay=False))
CLASS = click.option("--class", "names", metavar="CLASS", multiple=True, help="Only this class; repeatable.")
KEEP = click.option(
    "--keep", "periods", metavar="CLASS=DAYS", multiple=True, help="Another period for a class; repeatable."
)
AT = click.option("--at", metavar="TIME", help="As of this day or instant, UTC.  [default: now]")


@click.group("retention", short_help="Plan and carry out deletion by class.")
def command() -> None:
    """List what is due for deletion by retention class, and delete it with a proof that leaves the ledger verifiable.

    Deleted entries keep their leaf hash in the ledger's tree. An entry of the run's governance log names the class,
    the person and the reason.

    \b
    Examples:
      htfi regulate retention plan RUN
      htfi regulate retention apply RUN --by "Ann Lee" --why "period ended"
    """


@command.command(short_help="List what is due.")
@RUN
@CLASS
@KEEP
@AT
def plan(run: Path, names: tuple[str, ...], periods: tuple[str, ...], at: str | None) -> None:
    """List what of a run's record is due for deletion, by class. Nothing is changed.

    \b
    Examples:
      htfi regulate retention plan RUN
      htfi regulate retention plan RUN --keep decision=1826 --at 2031-01-01
    """
    found = plan_retention(run, _now_ns(at), _days(periods), _classes(names))
    _print(found)


@command.command(short_help="Delete what is due, by order of a named person.")
@RUN
@CLASS
@KEEP
@AT
@click.option(
    "--by", required=True, metavar="NAME", type=PERSON, help="Name of the person who authorises it."
)
@click.option("--why", required=True, metavar="TEXT", help="The reason, for the record.")
def apply(
    run: Path, names: tuple[str, ...], periods: tuple[str, ...], at: str | None, by: str, why: str
) -> None:
    """Delete what is due. The order is recorded in the run's governance log before anything is deleted.

    A run that has not ended is refused. Files derived from the ledger are written again without what was deleted.

    \b
    Examples:
      htfi regulate retention apply RUN --by "Ann Lee" --why "five years over"
      htfi regulate retention apply RUN --class news-body --by Ann --why "ended"
    """
    found = apply_retention(run, _now_ns(at), _days(periods), _classes(names), by, why)
    if found.finishes_earlier:
        click.echo("a deletion that was interrupted is finished")
    if found.is_empty:
        click.echo("nothing is due: nothing was deleted")
        return
    num_entries = sum(len(one.entries) for one in found.due)
    num_files = sum(len(one.files) for one in found.due)
    click.echo(
        f"{counted(num_entries, 'entry', 'entries')} and {counted(num_files, 'file')} deleted; "
        f"`htfi ledger verify {run}` proves the rest"
    )


def _print(found: RetentionPlan) -> None:
    from htfi.apps.display.tables import print_line, print_table

    rows = [
        [
            one.retention.name,
            one.retention.what,
            f"before {format_ns(one.cutoff_ns)}",
            f"{len(one.entries):,}",
            ", ".join(file.name for file in one.files) or "none",
            one.retention.basis,
        ]
        for one in found.due
    ]
    print_table(
        ("class", "what", "due", "entries", "files", "basis"), rows, title="htfi regulate retention plan"
    )
    print_line(
        f"{counted(found.num_entries, 'entry', 'entries')} in the ledger, {found.num_deleted:,} deleted before; the "
        "newest decision is as of "
        f"{format_ns(found.newest_ns)}"
    )


def _classes(names: Sequence[str]) -> Sequence[RetentionClass]:
    return [retention_class(name) for name in names] if names else RETENTION_CLASSES


def _days(periods: Sequence[str]) -> dict[str, int]:
    days: dict[str, int] = {}
    for period in periods:
        name, found, number = period.partition("=")
        if not found or not number.isdecimal() or not 0 <= int(number) <= 36_500:
            raise InvalidInput(
                f"--keep {period[:60]}: write CLASS=DAYS, such as news-body=30; at most 36500 days"
            )
        days[retention_class(name).name] = int(number)
    return days


def _now_ns(at: str | None) -> int:
    return time.time_ns() if at is None else instant(at, "--at")
