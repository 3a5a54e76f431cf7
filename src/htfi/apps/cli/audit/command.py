"""`htfi audit fairness`: forecasts by groups of companies, readings under swapped names, client decisions by group."""

import json
from pathlib import Path

import click

EPILOG = """\b
Examples:
  htfi audit fairness RUN --groups companies.csv
  htfi audit fairness RUN-OF-ALPHA RUN-OF-BETA --protected tenant
  htfi audit fairness loans.parquet --decision approve --protected sex
  htfi audit fairness loans.csv --decision ok --outcome paid --protected sex
"""


@click.group("audit")
def command() -> None:
    """Audits: whether groups are treated alike."""


@command.command("fairness", epilog=EPILOG)
@click.argument("sources", metavar="RUN|TABLE", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--protected", multiple=True, metavar="COL", help="A protected attribute; repeatable.")
@click.option("--decision", metavar="COL[=VALUE]", help="The decision, and the value that is favourable.")
@click.option("--outcome", metavar="COL[=VALUE]", help="What came true, and the value that is favourable.")
@click.option("--score", metavar="COL", help="The stated chance, 0 to 1, of a favourable outcome.")
@click.option(
    "--groups",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of a run: table of symbols with their size, sector, tenant and the like.",
)
@click.option(
    "--correction",
    type=click.Choice(["holm", "benjamini-hochberg"]),
    default="holm",
    show_default=True,
    help="How p-values are corrected for the number of pairs of groups.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write all figures; '-' prints them."
)
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write one page of plots.")
def fairness(
    sources: tuple[Path, ...],
    protected: tuple[str, ...],
    decision: str | None,
    outcome: str | None,
    score: str | None,
    groups: Path | None,
    correction: str,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Compare groups: rates, errors, calibration.

    Each figure has its interval; gaps are corrected for their number.

    Without --decision and --outcome the forecasts of runs, folders or their decisions.parquet, are compared by groups
    of their symbols, and by tenant where the records or a column `tenant` say whose they are.
    """
    from htfi.apps.cli.audit.page import audit_page
    from htfi.apps.cli.audit.text import audit_json, print_audit
    from htfi.apps.cli.scenario.command import write_text
    from htfi.governance.fairness.findings import Correction
    from htfi.wiring.fairness.client_decisions import audit_table
    from htfi.wiring.fairness.columns import NamedColumn
    from htfi.wiring.fairness.forecasts import audit_runs

    if decision is None and outcome is None and score is None:
        found = audit_runs(sources, groups, protected, Correction(correction))
    else:
        table, *others = sources
        if others:
            raise click.UsageError("--decision, --outcome and --score are of one table: name one.")

        def named(text: str | None) -> NamedColumn | None:
            return None if text is None else NamedColumn.parse(text)

        columns = named(decision), named(outcome), named(score)
        found = audit_table(table, protected, *columns, Correction(correction))
    if json_file is not None:
        text = json.dumps(audit_json(found), ensure_ascii=False, indent=1, allow_nan=False)
        if str(json_file) == "-":
            click.echo(text)
            return
        write_text(json_file, text + "\n")
    if html_file is not None:
        write_text(html_file, audit_page(found))
    print_audit(found)
    for file in (json_file, html_file):
        if file is not None:
            click.echo(f"written: {file}", err=True)
