"""`htfi regulate check` and `htfi regulate report`; the commands of retention join them."""

import sys
import time
from pathlib import Path

import click

from htfi.apps.cli.ledger.entries import report_unread
from htfi.apps.cli.regulate.options import END, GOVERNANCE, ORDERS, REGIME, RUNS, START, regimes_of, span_of
from htfi.apps.cli.regulate.retention import command as retention_command
from htfi.apps.options import PERSON
from htfi.domain.counts import counted
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.time import format_ns
from htfi.governance.regulation.checks.decisions import SUBJECTS
from htfi.governance.regulation.findings import CheckOutcome, Finding, Severity
from htfi.wiring.regulation import RegulationResult, check_regulation

NUM_SHOWN = 8  # findings of a check on the terminal; the report has more


@click.group("regulate", short_help="Regulators' monitors: check, report, retention.")
def command() -> None:
    """Check a run's record and order events against the rules of regulators, and write what was found.

    RUN is the folder of a run. Order events come from files that the execution path or another system writes
    (docs/regulation.md).

    \b
    Examples:
      htfi regulate check RUN
      htfi regulate check RUN --orders orders.jsonl --regime eu
      htfi regulate report RUN --from 2026-01-01 --out build/q1
      htfi regulate retention plan RUN
    """


@command.command(short_help="Judge the record and print what was found.")
@RUNS
@ORDERS
@GOVERNANCE
@REGIME
@START
@END
def check(
    runs: tuple[Path, ...],
    orders: tuple[Path, ...],
    governance: Path | None,
    regime: str,
    start: str | None,
    end: str | None,
) -> None:
    """Judge decisions, governance entries and order events by every check of a regime, and print the findings.

    Each check says what it found, or that it found nothing, or that the record does not let one judge, and why.
    Exit status 1 where a rule is broken.

    \b
    Examples:
      htfi regulate check RUN
      htfi regulate check --orders orders.csv --regime cn
    """
    found = check_regulation(runs, orders, regimes_of(regime), span_of(start, end), governance)
    _print(found)
    report_unread(found.unread)
    if any(one.severity is Severity.BREACH for result in found.results for one in result.findings):
        sys.exit(1)


@command.command(short_help="Write what was judged, found and not judged as a page and as JSON.")
@RUNS
@ORDERS
@GOVERNANCE
@REGIME
@START
@END
@click.option(
    "--out", required=True, metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Folder for regulation.html and regulation.json.",
)  # fmt: skip
def report(
    runs: tuple[Path, ...],
    orders: tuple[Path, ...],
    governance: Path | None,
    regime: str,
    start: str | None,
    end: str | None,
    out: Path,
) -> None:
    """Write regulation.html and regulation.json: what was checked, what was found, what cannot be judged.

    \b
    Examples:
      htfi regulate report RUN --from 2026-01-01 --to 2026-06-30 --out half
      htfi regulate report --orders orders.parquet --regime cn --out flow
    """
    from htfi.apps.cli.regulate.page import as_json, render

    span = span_of(start, end)
    found = check_regulation(runs, orders, regimes_of(regime), span, governance)
    for name, content in (
        ("regulation.html", render(found, regime, span).encode()),
        ("regulation.json", as_json(found, regime, span)),
    ):
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(content)
        except OSError as error:
            raise DependencyUnavailable(f"{out / name}: cannot be written: {error.strerror}") from error
    click.echo(f"{_summary(found)}: {out / 'regulation.html'}, {out / 'regulation.json'}")
    report_unread(found.unread)


@command.command(short_help="Record what a person attests.")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path, file_okay=False))
@click.argument("subject", type=click.Choice(SUBJECTS))
@click.option("--by", required=True, metavar="NAME", type=PERSON, help="Name of the person.")
@click.option("--why", required=True, metavar="TEXT", help="What was done, for the record.")
@click.option(
    "--document", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="What shows it; its SHA-256 is recorded.",
)  # fmt: skip
def attest(run: Path, subject: str, by: str, why: str, document: Path | None) -> None:
    """Record in RUN's governance log that a duty outside the system is fulfilled: a validation, a test, a review.

    \b
    Examples:
      htfi regulate attest RUN stress-test --by "Ann Lee" --why "2x June's peak"
    """
    from htfi.wiring.attestation import attest as record

    attested = record(run, subject, by, why, document, time.time_ns())
    click.echo(f"{attested.subject} attested by {attested.by}: {attested.why}")


command.add_command(retention_command)


def _print(found: RegulationResult) -> None:
    from htfi.apps.display.tables import print_line, print_table

    rows = [
        [
            one.id,
            "; ".join(one.articles.values()),
            one.outcome.value,
            f"{one.num_judged:,}",
            f"{one.num_found:,}",
        ]
        for one in found.results
    ]
    print_table(("check", "articles", "outcome", "judged", "found"), rows, title="htfi regulate check")
    for one in found.results:
        for finding in one.findings[:NUM_SHOWN]:
            print_line(_line(finding))
        if one.num_found > NUM_SHOWN:
            print_line(f"  {one.id}: {one.num_found - NUM_SHOWN:,} more; `htfi regulate report` lists them")
    for row in found.set_aside.rows[:NUM_SHOWN]:
        print_line(f"{row.detail}; row set aside")
    if found.set_aside.num > NUM_SHOWN:
        print_line(f"{found.set_aside.num - NUM_SHOWN:,} more rows were set aside")
    print_line(_summary(found))


def _line(finding: Finding) -> str:
    where = finding.where
    entries = (f"entry {index}" for index in where.entries[:3])
    names = (where.instrument, where.party, where.scope, *where.orders[:3], *entries)
    about = ", ".join(filter(None, (*names, format_ns(where.start_ns) if where.start_ns else "")))
    return f"{finding.check} {finding.severity.value}: {finding.what} ({about})"


def _summary(found: RegulationResult) -> str:
    outcomes = [one.outcome for one in found.results]
    counts = found.counts
    return (
        f"{counted(counts.num_decisions, 'decision')}, {counted(counts.num_order_events, 'order event')}, "
        f"{counted(counts.num_governance_entries, 'governance entry', 'governance entries')}; "
        f"{counted(len(outcomes), 'check')}: {outcomes.count(CheckOutcome.FOUND)} found something, "
        f"{outcomes.count(CheckOutcome.NOTHING_FOUND)} found nothing, "
        f"{outcomes.count(CheckOutcome.NOT_JUDGED)} cannot be judged"
    )
