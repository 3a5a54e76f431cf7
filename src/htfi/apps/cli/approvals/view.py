"""What `htfi approvals` says of decisions that wait: a table, one in full, what an answer came to."""

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from htfi.domain.time import format_ns
from htfi.governance.checkpoints.state import CheckpointPhase, CheckpointStep
from htfi.wiring.approvals import GivenAnswer, ListedQuestion

_PHASE_WORDS = {
    CheckpointPhase.ASKED: "waits",
    CheckpointPhase.SEEN: "waits, seen",
    CheckpointPhase.APPROVED_ONCE: "waits, approved once",
    CheckpointPhase.APPROVED: "approved",
    CheckpointPhase.DENIED: "denied",
    CheckpointPhase.EXPIRED_WITHHELD: "expired, withheld",
    CheckpointPhase.EXPIRED_LOWER_RUNG: "expired, numbers alone released",
}


def as_json(one: ListedQuestion) -> str:
    """One line for machines: the question, what people are shown, where it stands, every step."""
    state = one.recorded.state
    row = {
        "number": one.number,
        "phase": state.phase,
        "is_escalated": state.is_escalated,
        "approvers": state.approvers,
        "num_waiting_answers": one.num_waiting,
        "digest": state.question.digest,
        "text": state.question.text,
        "question": state.question,
        "steps": one.recorded.steps,
    }
    return msgspec.json.encode(row).decode()


def show_list(listed: Sequence[ListedQuestion], folder: Path) -> None:
    """A table of questions."""
    from htfi.apps.display.tables import print_table

    if not listed:
        click.echo(f"{folder}: nothing waits for people")
        return
    columns = ("no.", "decision", "deadline", "status", "why")
    rows = [
        (
            str(one.number),
            one.recorded.state.question.decision,
            format_ns(one.recorded.state.question.deadline_ns),
            _status(one),
            "; ".join(reason.words for reason in one.recorded.state.question.reasons),
        )
        for one in listed
    ]
    print_table(columns, rows)


def as_text(one: ListedQuestion) -> str:
    """What people are shown, its digest, and what happened to the question."""
    question = one.recorded.state.question
    lines = [f"Digest of the above: {question.digest}", f"Status: {_status(one)}"]
    lines += [_step(step) for step in one.recorded.steps]
    return question.text + "\n" + "\n".join(lines) + "\n"


def answered(given: GivenAnswer, folder: Path) -> str:
    """What an answer came to."""
    answer = given.answer
    if given.is_recorded:
        when = f"the run in {folder} has recorded it"
    elif given.goes_on:
        when = f"the run in {folder} records it with its next event"
    else:
        deadline = format_ns(given.deadline_ns)
        when = f"the run in {folder} takes it when it resumes; it counts until {deadline}"
    why = f": {answer.why}" if answer.why else ""
    return f"{answer.decision}: {given.step.step.value} by {answer.by}{why}; {when}"


def _status(one: ListedQuestion) -> str:
    state = one.recorded.state
    words = _PHASE_WORDS[state.phase]
    if state.is_escalated and not state.is_final:
        words += ", escalated"
    if one.num_waiting:
        words += f", {one.num_waiting} answer{'s' * (one.num_waiting != 1)} not taken yet"
    return words


def _step(step: CheckpointStep) -> str:
    who = f" by {step.by}" if step.by else ""
    to = f" to {step.to}" if step.to else ""
    about = "; ".join(words for words in (step.why, step.detail) if words)
    return f"{format_ns(step.at_ns)} {step.step.value}{who}{to}{': ' if about else ''}{about}"
