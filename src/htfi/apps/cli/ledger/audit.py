"""`htfi ledger audit`: what became of the news in a decision, or in all of them, in words. `htfi ledger` joins it."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
import msgspec

from htfi.apps.cli.ledger.entries import progress, report_unread, show_statements
from htfi.apps.cli.ledger.options import FOLDER, reading_options
from htfi.domain.content_marking import FIELD, content_marking
from htfi.domain.decision import Decision
from htfi.library.ledgers import explain_entry
from htfi.narrative.audit import AuditSection
from htfi.narrative.audit_summary import AuditSummary
from htfi.pipeline.record.unread import UnreadEntries
from htfi.wiring.ledger import open_ledger_readonly

_TITLE_STYLE = "bold cyan"


@click.command("audit", short_help="What was read, set aside and weighed.")
@FOLDER
@click.argument("which", metavar="[N|ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--target",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the reading model, if not a shipped one: prints its tokens as text.",
)
@reading_options
def audit_command(folder: Path, which: str | None, as_json: bool, target: Path | None) -> None:
    """Show what happened to the news of one decision, given by number or id, or of all decisions.

    It lists what was read and by which model, what was set aside and why, what moved the view and by how much, where
    draft and target differed, what contradicted what, and whether manipulation was suspected. All of it comes from
    the record.

    \b
    Examples:
      htfi ledger audit DIR
      htfi ledger audit DIR SPX/1d@2008-10-10T20:15:00Z
      htfi ledger audit DIR 12 --json
    """
    log = open_ledger_readonly(folder)
    decision: Decision | None = None
    unread = UnreadEntries()
    try:
        if which is None:
            with progress(f"reading {folder}", log.size) as advance:
                entries = _advancing(log.entries(), log.size, advance)
                decisions = (found for _, found in unread.decisions(entries))
                sections = AuditSummary.of(decisions).sections()
            subject = {"run": folder.name}
        else:
            decision, sections = explain_entry(log, which, target)
            subject = {"id": decision.id}
    finally:
        log.close()
    if as_json:
        body = [{"title": one.title, "lines": one.lines} for one in sections]
        marked = {**subject, "sections": body, FIELD: content_marking()}
        click.echo(msgspec.json.format(msgspec.json.encode(marked), indent=2))
    else:
        _show(subject.get("id", f"all decisions of {folder}"), sections)
        if decision is not None:
            show_statements(folder, decision)
    report_unread(unread)


def _advancing(entries: Iterable[bytes], total: int, advance: Callable[[int, int], None]) -> Iterator[bytes]:
    for done, entry in enumerate(entries, 1):
        yield entry
        advance(done, total)


def _show(title: str, sections: Iterable[AuditSection]) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(title, "bold"))
    for section in sections:
        console.print(Text(section.title, _TITLE_STYLE))
        for line in section.lines:
            console.print(Padding(Text(line), (0, 0, 0, 2)))
