"""Decisions of a run that wait for people, for the command line: list them, find one, answer."""

from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from msgspec.structs import replace

from htfi.adapters.keys.ed25519 import verify_signature
from htfi.adapters.stores.control_folder import CONTROL_FOLDER, read_requests, write_request
from htfi.domain.errors import AccessDenied, HtfiError, InvalidInput
from htfi.domain.time import Clock
from htfi.governance.checkpoints.answers import judge_answer, local_rights, statement_of
from htfi.governance.checkpoints.requests import MIN_SEEN_DIGITS, AnswerKind, ApprovalAnswer
from htfi.governance.checkpoints.state import CheckpointState, CheckpointStep, StepKind, advance
from htfi.governance.control.entries import CheckpointMoved
from htfi.governance.people import identify, sign_statement
from htfi.narrative.text import clean
from htfi.pipeline.checkpoints import fold_entry, step_of
from htfi.pipeline.operator_actions import MAX_REASON_CHARS
from htfi.wiring.authorisation import (
    Requester,
    answer_rights,
    check_named,
    key_of,
    open_access,
    read_statement,
    run_key,
)
from htfi.wiring.control import governance_entries
from htfi.wiring.ledger import DATABASE, is_running
from htfi.wiring.request_token import RequestToken, new_token

_WAIT_S = 2.0  # for a run to record an answer


class UnknownQuestion(InvalidInput):
    """The run asks nothing about such a decision."""


class RecordedQuestion(NamedTuple):
    """A question, where it stands, and its steps in order."""

    state: CheckpointState
    steps: tuple[CheckpointStep, ...]


class ListedQuestion(NamedTuple):
    """A question with its place in the list, from 1 on, and how many answers wait for the run to take them."""

    number: int
    recorded: RecordedQuestion
    num_waiting: int


class GivenAnswer(NamedTuple):
    """An answer as it was left, and the step that it makes.

    `is_recorded`: the run has recorded the step; else it is what is expected of a run that `goes_on`, or that resumes
    before `deadline_ns`, UTC.
    """

    answer: ApprovalAnswer
    step: CheckpointStep
    goes_on: bool
    is_recorded: bool
    deadline_ns: int


def read_approvals(folder: Path) -> dict[str, RecordedQuestion]:
    """The questions in a run's governance log by the id of their decision, oldest first.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    states: dict[str, CheckpointState] = {}
    steps: dict[str, list[CheckpointStep]] = {}
    for entry in governance_entries(folder):
        if isinstance(entry, CheckpointMoved):
            fold_entry(states, entry)
            steps.setdefault(entry.decision, []).append(step_of(entry))
    return {name: RecordedQuestion(state, tuple(steps[name])) for name, state in states.items()}


def waiting_answers(folder: Path) -> list[ApprovalAnswer]:
    """The answers that lie in a run's control folder, taken or not, oldest first; what is none is left out."""
    requests, _ = read_requests(folder / CONTROL_FOLDER)
    return [one for one in requests if isinstance(one, ApprovalAnswer)]


def list_questions(folder: Path) -> list[ListedQuestion]:
    """All questions of a run, oldest first. Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
    _require_questions(folder)
    taken = [
        ListedQuestion(number, recorded, 0)
        for number, recorded in enumerate(read_approvals(folder).values(), 1)
    ]
    waiting = [answer.decision for answer in waiting_answers(folder) if not _is_taken(answer, taken)]
    return [one._replace(num_waiting=waiting.count(one.recorded.state.question.decision)) for one in taken]


def find_question(folder: Path, which: str) -> ListedQuestion:
    """The question about a decision, by the decision's id or the question's number.

    Raises: InvalidInput where there is none, and as `list_questions`.
    """
    asked = list_questions(folder)
    for one in asked:
        if which in (one.recorded.state.question.decision, str(one.number)):
            return one
    raise UnknownQuestion(
        f"{folder} asks nothing about '{clean(which, 60)}': `htfi approvals list {folder}` lists what it asks"
    )


def give_answer(
    folder: Path,
    which: str,
    kind: AnswerKind,
    requester: Requester,
    *,
    seen: str,
    why: str = "",
    to: str = "",
    clock: Clock | None = None,
    token: RequestToken | None = None,
) -> GivenAnswer:
    """Leave a person's answer for the run, which judges it once more and records it, refusals included.

    `seen` are the first digits, at least `MIN_SEEN_DIGITS`, of the digest of what was shown.
    Raises: InvalidInput, AccessDenied where it will be refused, IntegrityError, DependencyUnavailable.
    """
    state = find_question(folder, which).recorded.state
    digest = _seen_digest(state, seen, folder, which)
    reason = clean(why, MAX_REASON_CHARS)
    if kind is not AnswerKind.SEEN and not reason:
        raise InvalidInput("--why: a reason is required: the record states who decided and why")
    token = token or new_token(clock)
    run, now_ns = run_key(folder), token.at_ns
    at_ns = read_statement(requester.note, clock).at_ns if requester.note else now_ns
    access = open_access(requester.governance) if requester.governance is not None else None
    if access is None:
        check_named(requester)
    key = key_of(requester, access.directory) if access is not None and not requester.note else None
    by = requester.by
    if access is not None and requester.note:
        by = identify(requester.note, access.directory, verify_signature)[0].id
    elif access is not None and key is not None:
        by = access.directory.by_key[key.verifier_key].id
    answer = ApprovalAnswer(
        token.named("answer"), at_ns, state.question.decision, kind,
        clean(by, MAX_REASON_CHARS), reason, digest, clean(to, MAX_REASON_CHARS), requester.note,
    )  # fmt: skip
    if key is not None:
        note = sign_statement(statement_of(answer, run), key.verifier_key, key)
        answer = replace(answer, signed=note)
    if (step := _step_of(folder, answer)) is not None:
        return GivenAnswer(answer, _counted(step), is_running(folder), True, state.question.deadline_ns)
    if all(one.id != answer.id for one in waiting_answers(folder)):
        write_request(folder / CONTROL_FOLDER, answer)
    rights = (
        local_rights(run, verify_signature)
        if requester.governance is None
        else answer_rights(folder, requester.governance)
    )
    _, steps = advance(state, judge_answer(answer, state, rights, now_ns))
    goes_on = is_running(folder)
    recorded = _await_step(folder, answer) if goes_on else None
    step = _counted(recorded or steps[-1])
    return GivenAnswer(answer, step, goes_on, recorded is not None, state.question.deadline_ns)


def _counted(step: CheckpointStep) -> CheckpointStep:
    """Raises: AccessDenied where an answer did not count."""
    if step.step is StepKind.REFUSED:
        refusal = step.detail.partition(": ")[2]
        raise AccessDenied(f"refused: {refusal}; the run records that it was tried")
    return step


def _await_step(folder: Path, answer: ApprovalAnswer) -> CheckpointStep | None:
    """The step that a run that goes on records of an answer; None where it has recorded none for a while."""
    until_s = monotonic() + _WAIT_S
    while monotonic() < until_s:
        with suppress(HtfiError):  # the log is being written
            if (step := _step_of(folder, answer)) is not None:
                return step
        sleep(0.02)
    return None


def _step_of(folder: Path, answer: ApprovalAnswer) -> CheckpointStep | None:
    """What is recorded of an answer."""
    steps = read_approvals(folder)[answer.decision].steps
    return next((step for step in steps if step.answer == answer.id), None)


def _is_taken(answer: ApprovalAnswer, asked: list[ListedQuestion]) -> bool:
    return any(answer.id in one.recorded.state.answers for one in asked)


def _seen_digest(state: CheckpointState, seen: str, folder: Path, which: str) -> str:
    digest = state.question.digest
    if len(seen) < MIN_SEEN_DIGITS or not digest.startswith(seen.lower()):
        raise InvalidInput(
            f"--seen: '{clean(seen, 64)}' is not what is asked: `htfi approvals show {folder} {clean(which, 60)}` "
            f"shows it with its digest, of which {MIN_SEEN_DIGITS} digits are enough"
        )
    return digest


def _require_questions(folder: Path) -> None:
    if not (folder / DATABASE).is_file():
        raise InvalidInput(f"{folder} is not the folder of a run: name one that `htfi run --out` made")
