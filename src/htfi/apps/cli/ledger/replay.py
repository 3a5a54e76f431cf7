"""`htfi ledger replay`: a recorded reading written again, token for token, by the model that wrote it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import UnsetType

from htfi.apps.cli.ledger.entries import find
from htfi.apps.cli.ledger.options import DRAFT, FOLDER, TARGET
from htfi.domain.decision import decode_decision
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.narrative.audit import rule_note
from htfi.wiring.ledger import open_ledger_readonly

if TYPE_CHECKING:
    from htfi.pipeline.audit.replay import ReplayedReading


@click.command("replay", short_help="Reproduce a recorded reading token by token.")
@FOLDER
@click.argument("which", metavar="[N|ID]", required=False)
@TARGET
@DRAFT
def replay_command(folder: Path, which: str | None, target: Path | None, draft: Path | None) -> None:
    """Reproduce a model's reading for a decision, from the record and the model alone; without N or ID, the newest.

    The seed is derived from symbol and instant, the prompt rebuilt from the decision's news and from the returns that
    its series had by then, and both compared with what is recorded; so is who read, of how many items, and what is
    cited. A token that differs is named by its place.
    The target decodes once plainly and once along the recorded drafts; both must give the recorded tokens, each
    draft must fare as recorded, and the view must follow. Of a provisional reading the target must begin with what it
    had settled, and the draft must write the rest. Where the view was read for an earlier decision, that
    one's reading is replayed. Under another acceptance rule than the shared noise the draft samples its drafts again,
    and the target decodes along them alone. Exit status 1, and one line that says what differs, where anything does.

    \b
    Examples:
      htfi ledger replay DIR
      htfi ledger replay DIR SPX/1d@2013-10-09T20:00:00Z
      htfi ledger replay DIR 1204 --target ~/models/my-target
    """
    from htfi.apps.display.tables import print_line
    from htfi.pipeline.audit.replay import newest_reading, reading_of
    from htfi.wiring.verification import replay_reading, run_settings, unsupported_views

    log = open_ledger_readonly(folder)
    try:
        if which is None:
            decision = read_for = newest_reading(log.entries())
            index = log.size - 1
        else:
            index, entry = find(log, which)
            try:
                decision = decode_decision(entry)
            except ValueError as error:
                raise InvalidInput(f"entry {index} is no decision of this version: {error}") from error
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
        print_line(f"not held against the decision: {what}")
    if problems:
        raise IntegrityError("; ".join(problems))
    print_line(
        "replayed: the same tokens, the same fate of each draft, the same view; seed, prompt, items and citations "
        "are those of the decision's news, prices and symbol"
    )


def _show(asked: str, read_for: str, done: "ReplayedReading") -> None:
    from htfi.apps.display.draft_rounds import legend, round_lines
    from htfi.apps.display.tables import console, print_line

    trace = done.trace
    if read_for != asked:
        print_line(f"{asked} keeps the view that was read for {read_for}")
    num_drafted = sum(len(one.drafted) for one in trace.rounds)
    num_stood = sum(len(one.accepted) for one in trace.rounds)
    guessed = f"{trace.draft} drafted ({trace.strategy})" if trace.draft else "no model drafted"
    print_line(f"{trace.target} wrote, {guessed}; seed {trace.seed}, temperature {trace.temperature:g}")
    print_line(
        f"{len(trace.tokens)} tokens after {len(trace.prompt)} of the prompt, in {len(trace.rounds)} passes; "
        f"{num_stood} of {num_drafted} drafted tokens were accepted"
    )
    if not isinstance(trace.rule, UnsetType):
        print_line(rule_note(trace.rule))
    if trace.place:
        print_line(f"written in {trace.place}" if trace.num_verified < 0 else f"written by the {trace.place}")
    if trace.num_verified >= 0:
        print_line(f"provisional: {trace.num_verified} tokens are the target's, the others the draft's")
    to = console()
    to.print(legend())
    for line in round_lines(trace.tokens, trace.rounds, done.vocabulary):
        to.print(line)
