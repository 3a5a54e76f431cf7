"""`htfi ledger replay`: a recorded reading written again, token for token, by the model that wrote it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import UnsetType

from htfi.apps.cli.ledger.entries import report_unread
from htfi.apps.cli.ledger.options import DRAFT, FOLDER, TARGET, reading_options
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.library.ledgers import decision_of, find_entry
from htfi.narrative.audit import rule_note
from htfi.pipeline.record.unread import UnreadEntries
from htfi.wiring.ledger import open_ledger_readonly

if TYPE_CHECKING:
    from htfi.pipeline.audit.replay import ReplayedReading


@click.command("replay", short_help="Reproduce a recorded reading token by token.")
@FOLDER
@click.argument("which", metavar="[N|ID]", required=False)
@TARGET
@DRAFT
@reading_options
def replay_command(folder: Path, which: str | None, target: Path | None, draft: Path | None) -> None:
    """Reproduce a model's reading for a decision from the record and the model alone; without N or ID, the newest one.

    The seed is derived again from symbol and instant, and the prompt is rebuilt from the decision's news and the
    earlier returns of its series. Both must equal the record, and so must the reader, the number of items and the
    citations.

    The target decodes once alone and once along the recorded drafts. Both must give the recorded tokens, each draft
    must be accepted or rejected as recorded, and the view must follow from the tokens. For a provisional reading, the
    target must begin with the tokens that it had verified, and the draft must generate the rest. Under an acceptance
    rule other than the shared noise, the draft samples its drafts again, and the target decodes only along them.

    A view that was read for an earlier decision is replayed from that decision. Exit status 1 if anything differs,
    with one line that names it, such as the position of the first different token.

    \b
    Examples:
      htfi ledger replay DIR
      htfi ledger replay DIR SPX/1d@2008-10-10T20:15:00Z
      htfi ledger replay DIR 1204 --target ~/models/my-target
    """
    from htfi.apps.display.tables import print_line
    from htfi.pipeline.audit.replay import newest_reading, reading_of
    from htfi.wiring.verification import replay_reading, run_settings, unsupported_views

    unread = UnreadEntries()
    log = open_ledger_readonly(folder)
    try:
        if which is None:
            decision = read_for = newest_reading(log.entries(), unread)
            index = log.size - 1
        else:
            index, entry = find_entry(log, which)
            decision = decision_of(index, entry)
            read_for = reading_of(decision, log.entries(0, index))
        named = [path for path in (target, draft) if path is not None]
        problems, undone = unsupported_views(
            log.entries(0, index + 1), [decision, read_for], run_settings(folder, decision), named
        )
    finally:
        log.close()
    try:
        done = replay_reading(read_for, folder, target, draft)
    except (IntegrityError, InvalidInput) as error:
        if not problems:
            raise
        raise IntegrityError("; ".join([*problems, str(error)])) from error
    problems += [f"{read_for.id}: {problem}" for problem in done.problems]
    _show(decision.id, read_for.id, done)
    for what in undone:
        print_line(f"not checked: {what}")
    report_unread(unread)
    if problems:
        raise IntegrityError("; ".join(problems))
    print_line(
        "replayed: tokens, acceptance of each draft and view are the same; seed, prompt, items and citations follow "
        "from the decision's news, prices and symbol"
    )


def _show(asked: str, read_for: str, done: "ReplayedReading") -> None:
    from htfi.apps.display.draft_rounds import legend, print_rounds, round_lines
    from htfi.apps.display.tables import console, print_line

    trace = done.trace
    if read_for != asked:
        print_line(f"{asked} uses the view that was read for {read_for}")
    num_drafted = sum(len(one.drafted) for one in trace.rounds)
    num_stood = sum(len(one.accepted) for one in trace.rounds)
    guessed = f"{trace.draft} drafted ({trace.strategy})" if trace.draft else "no model drafted"
    print_line(f"{trace.target} generated, {guessed}; seed {trace.seed}, temperature {trace.temperature:g}")
    print_line(
        f"{len(trace.tokens)} tokens after a prompt of {len(trace.prompt):,}, in {len(trace.rounds)} passes; "
        f"{num_stood} of {num_drafted} drafted tokens were accepted"
    )
    if not isinstance(trace.rule, UnsetType):
        print_line(rule_note(trace.rule))
    if trace.place:
        print_line(f"placement: {trace.place}")
    if trace.num_verified >= 0:
        print_line(f"provisional: {trace.num_verified} tokens are the target's, the others the draft's")
    to = console()
    for line in legend():
        to.print(line)
    print_rounds(to, round_lines(trace.tokens, trace.rounds, done.vocabulary))
