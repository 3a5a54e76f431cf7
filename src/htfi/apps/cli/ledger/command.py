"""`htfi ledger`: verify, show and export the record of a run; the commands of evidence and replay join it here.

Each opens the ledger beside a running writer, so that it may be used during the run.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from htfi.apps.cli.ledger import entries as view
from htfi.apps.cli.ledger.audit import audit_command
from htfi.apps.cli.ledger.explain import explain_command
from htfi.apps.cli.ledger.monitor import monitor_command
from htfi.apps.cli.ledger.options import (
    DRAFT,
    FOLDER,
    KEY,
    NUM_WITNESSES,
    TARGET,
    WITNESS,
    reading_options,
    require_cosignatures,
    require_key,
    write_file,
)
from htfi.apps.cli.ledger.proofs import check_proof_command, cosign_command, keygen_command, prove_command
from htfi.apps.cli.ledger.readers import readers_command
from htfi.apps.cli.ledger.replay import replay_command
from htfi.domain.content_marking import MARKING_FILE, TEXT_FIELDS, marking_file
from htfi.domain.counts import counted
from htfi.domain.decision import encode_decision
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.governance.ledger.export import json_line, static_files
from htfi.library.ledgers import find_entry, verify_log
from htfi.pipeline.record.entry import entry_json, is_json, try_decode_entry
from htfi.pipeline.record.unread import UnreadEntries
from htfi.wiring.ledger import open_ledger_readonly

if TYPE_CHECKING:
    from htfi.wiring.verification import RecomputeSummary


@click.group("ledger", short_help="Verify, show, replay, prove and export the record.")
def command() -> None:
    """Verify, prove, show, export and cosign the record of a run.

    DIR is the folder of a run, as `htfi run --out DIR` made it.

    \b
    Examples:
      htfi ledger verify DIR             recompute hashes, check signatures
      htfi ledger show DIR 12            one decision
      htfi ledger audit DIR 12           what happened to its news
      htfi ledger prove DIR --index 12   a proof that outlives the ledger
      htfi ledger replay DIR ID          a model's reading, token by token
    """


@command.command(short_help="Recompute every hash, check every signature.")
@FOLDER
@KEY
@WITNESS
@NUM_WITNESSES
@click.option("--recompute", is_flag=True, help="Also derive every decision again from its record.")
@TARGET
@DRAFT
@reading_options
def verify(
    folder: Path,
    key_text: str | None,
    witnesses: tuple[str, ...],
    need: int | None,
    recompute: bool,
    target: Path | None,
    draft: Path | None,
) -> None:
    """Verify the whole ledger: recompute its hashes, check every signature, compare the files beside it.

    With --recompute every decision is also derived again from its record: forecast, rationale, verdict, and for each
    reading its seed, prompt, items, citations and model; so is what circuit breakers did. No model is loaded;
    `htfi ledger replay` runs one again.

    Exit status 1 if anything fails: one line names the first bad entry, and one line each file that differs from the
    ledger or from what the run wrote.

    \b
    Examples:
      htfi ledger verify DIR
      htfi ledger verify DIR --recompute
      htfi ledger verify DIR --key htfi.example/run+bd1cfb4f+AV0R…
      htfi ledger verify DIR --witness W1 --witness W2 --witness W3 --need 2
    """
    log = open_ledger_readonly(folder)
    try:
        require_key(log.key, key_text)
        with view.progress(f"verifying {folder}", log.size) as advance:
            audit, note, held, wrong = verify_log(folder, log, advance)
        done = None
        if recompute:
            from htfi.wiring.verification import recompute_all  # imports the forecasting packages

            with view.progress(f"recomputing {folder}", audit.size) as advance:
                named = [path for path in (target, draft) if path is not None]
                done = recompute_all(folder, log, audit.size, advance, named)
    finally:
        log.close()
    found = require_cosignatures(note, witnesses, need)
    from htfi.apps.display.tables import print_line

    num_left = audit.size - audit.num_deleted
    print_line(f"{counted(num_left, 'entry', 'entries')}, each as it was recorded")
    if audit.num_deleted:
        print_line(
            f"of {counted(audit.num_deleted, 'deleted entry', 'deleted entries')} the leaf hash stands under the root"
        )
    if done is not None:
        print_line(
            "the quantiles, rationale and verdict of each follow from its record and settings.json"
            if num_left
            else "nothing to compute again: every entry is deleted"
        )
        if done.num_readings:
            print_line(
                f"{counted(done.num_readings, 'reading')} checked against the decisions' news, prices and symbols"
            )
        if done.num_apart:
            print_line(
                f"not checked in {counted(done.num_apart, 'decision')}: readings, amendments and triggers, which "
                "follow from earlier entries, some of which are deleted"
            )
        for line in _breaker_lines(done):
            print_line(line)
        for what, num in done.num_not_checked.items():
            print_line(f"not checked in {counted(num, 'reading')}: {what}")
        if done.num_pending:
            print_line(
                f"decisions with a provisional view that no amendment has replaced: {done.num_pending:,}"
            )
    print_line(f"root {audit.root.hex()}")
    print_line(f"{counted(audit.num_checkpoints, 'checkpoint')} signed by {log.key}")
    if audit.num_cosignatures or witnesses:
        by = f", the newest by {', '.join(found)}" if found else ""
        print_line(f"{counted(audit.num_cosignatures, 'cosignature')}{by}")
    for line in held:
        print_line(line)
    if wrong:
        raise IntegrityError("\nhtfi: ".join(wrong))


def _breaker_lines(done: "RecomputeSummary") -> list[str]:
    """What was derived again of circuit breakers, and what was not, a line each."""
    if done.breakers is None:
        return []
    lines = [
        f"{counted(done.breakers.num_derived, 'change')} of circuit breakers derived again from the decisions"
    ]
    if done.breakers.num_of_items:
        lines.append(
            f"not derived again: {counted(done.breakers.num_of_items, 'change')} of quarantine_swells and "
            "headline_reach, which watch news that the ledger does not hold; compared with their limits"
        )
    if done.breakers.num_after:
        lines.append(
            f"not derived again: {counted(done.breakers.num_after, 'change')} after the last decision"
        )
    return lines


@command.command(short_help="One decision, or the ledger's head.")
@FOLDER
@click.argument("which", metavar="[N|ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the entry's exact bytes.")
@reading_options
def show(folder: Path, which: str | None, as_json: bool) -> None:
    """Show one decision, given by number or id, or the head of the ledger.

    \b
    Examples:
      htfi ledger show DIR
      htfi ledger show DIR 12
      htfi ledger show DIR SPX/1d@2008-10-10T20:15:00Z
      htfi ledger show DIR 12 --json | python -m json.tool
    """
    log = open_ledger_readonly(folder)
    try:
        if which is None:
            if as_json:
                raise InvalidInput("--json needs an entry: htfi ledger show DIR N --json")
            view.show_head(log)
            return
        index, entry = find_entry(log, which)
    finally:
        log.close()
    if as_json:
        click.echo(_as_json(index, entry))
    else:
        view.show_entry(index, entry)
        if (decision := try_decode_entry(entry)) is not None:
            view.show_statements(folder, decision)


def _as_json(index: int, entry: bytes) -> bytes:
    """The decision of an entry as JSON, or what stands in place of a deleted one. Raises: InvalidInput."""
    try:
        return entry_json(entry)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"entry {index} is not a decision of this version: {error}") from error


def _exported(index: int, entry: bytes, unread: UnreadEntries) -> bytes:
    """The line of an entry; with the decision as JSON beside an entry of a form that people cannot read."""
    line = json_line(index, entry)
    if is_json(entry):
        return line
    decision = try_decode_entry(entry)
    if decision is None:
        unread.add(index, entry)
        return line
    return line[:-2] + b',"decision":' + encode_decision(decision) + b"}\n"


@command.command(short_help="Write static files that other tools can verify.")
@FOLDER
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@reading_options
def export(folder: Path, out: Path) -> None:
    """Write the ledger as static files that tools for C2SP tlog-tiles read, and entries.jsonl.

    \b
    Examples:
      htfi ledger export DIR public/
      python -m http.server --directory public
    """
    log = open_ledger_readonly(folder)
    try:
        size = log.size
        with view.progress(f"exporting {folder}", size) as advance:
            for path, content in static_files(log, size, advance):
                write_file(out / path, content)
        unread = UnreadEntries()
        lines = (_exported(index, entry, unread) for index, entry in enumerate(log.entries(0, size)))
        _write_lines(out / "entries.jsonl", lines)
        write_file(out / MARKING_FILE, marking_file(["entries.jsonl", "tile/entries"], TEXT_FIELDS))
    finally:
        log.close()
    click.echo(
        f"{size:,} entries exported to {out}: checkpoint, tile/ and entries.jsonl, signed by {log.key}"
    )
    if unread.num_unknown:
        num = counted(unread.num_unknown, "entry stands", "entries stand")
        click.echo(
            f"htfi: {num} in entries.jsonl as bytes alone: not a decision of this version, the first at "
            f"{unread.first_unknown}: update htfi",
            err=True,
        )


for _evidence in (
    audit_command,
    explain_command,
    replay_command,
    readers_command,
    prove_command,
    check_proof_command,
    monitor_command,
    cosign_command,
    keygen_command,
):
    command.add_command(_evidence)


def _write_lines(file: Path, lines: Iterable[bytes]) -> None:
    try:
        with file.open("wb") as stream:
            stream.writelines(lines)
    except OSError as error:
        raise DependencyUnavailable(f"cannot write {file}: {error.strerror}") from error
