"""The states of a decision that waits for people: pure, `(state, event) → (state, actions)`.

What happens is a series of steps, each recorded; `apply_step` alone changes the state, so that a replay of the recorded
steps comes to the same one. An answer that cannot count is a step as well: refused, with its reason.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace as replace_fields

from htfi.domain.time import format_ns
from htfi.governance.checkpoints.config import DeadlineDefault
from htfi.governance.checkpoints.requests import AnswerKind, ApprovalQuestion


class CheckpointPhase(StrEnum):
    """Where a question stands. The last four are final."""

    ASKED = "asked"
    SEEN = "seen"
    APPROVED_ONCE = "approved_once"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED_WITHHELD = "expired_withheld"
    EXPIRED_LOWER_RUNG = "expired_lower_rung"


FINAL_PHASES = frozenset((
    CheckpointPhase.APPROVED,
    CheckpointPhase.DENIED,
    CheckpointPhase.EXPIRED_WITHHELD,
    CheckpointPhase.EXPIRED_LOWER_RUNG,
))  # fmt: skip


class StepKind(StrEnum):
    """What happened to a question."""

    ASKED = "asked"
    SEEN = "seen"
    APPROVED = "approved"
    DENIED = "denied"
    DELEGATED = "delegated"
    ESCALATED = "escalated"
    EXPIRED = "expired"
    REFUSED = "refused"


class CheckpointStep(msgspec.Struct, frozen=True, tag_field="kind", tag="step"):
    """One thing that happened to a question, as it is recorded. Times are UTC; `answer` is the id of what caused it.

    `to` is whom it was delegated to; `detail` says what was refused and why.
    """

    decision: str
    at_ns: int
    step: StepKind
    by: str = ""
    why: str = ""
    seen: str = ""
    to: str = ""
    detail: str = ""
    answer: str = ""


class CheckpointOutcome(StrEnum):
    """What follows for the decision: it is released, its lower rung is, or it stays withheld."""

    RELEASE = "release"
    RELEASE_LOWER_RUNG = "release_lower_rung"
    WITHHOLD = "withhold"


class Answered(NamedTuple):
    """An answer arrived at `at_ns`, UTC. `refusal` says why its author has no right to it; empty: has it."""

    id: str
    at_ns: int
    answer: AnswerKind
    by: str
    why: str
    seen: str
    to: str = ""
    refusal: str = ""


class TimeReached(NamedTuple):
    """It is `at_ns`, UTC."""

    at_ns: int


CheckpointEvent = Answered | TimeReached


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """A question and what has happened to it. `approvers` in order; `passed_on`: who delegated, to whom."""

    question: ApprovalQuestion
    phase: CheckpointPhase = CheckpointPhase.ASKED
    approvers: tuple[str, ...] = ()
    passed_on: tuple[tuple[str, str], ...] = ()
    is_escalated: bool = False
    answers: frozenset[str] = frozenset()  # ids of those that were taken

    @property
    def is_final(self) -> bool:
        return self.phase in FINAL_PHASES

    @property
    def outcome(self) -> CheckpointOutcome | None:
        """What follows; None while it waits."""
        match self.phase:
            case CheckpointPhase.APPROVED:
                return CheckpointOutcome.RELEASE
            case CheckpointPhase.DENIED | CheckpointPhase.EXPIRED_WITHHELD:
                return CheckpointOutcome.WITHHOLD
            case CheckpointPhase.EXPIRED_LOWER_RUNG:
                return CheckpointOutcome.RELEASE_LOWER_RUNG
            case CheckpointPhase.ASKED | CheckpointPhase.SEEN | CheckpointPhase.APPROVED_ONCE:
                return None

    @property
    def next_ns(self) -> int | None:
        """When time alone changes it next, UTC; None once it is final."""
        if self.is_final:
            return None
        question = self.question
        waits_to_escalate = question.escalate_ns and not self.is_escalated
        return question.escalate_ns if waits_to_escalate else question.deadline_ns


def advance(
    state: CheckpointState, event: CheckpointEvent
) -> tuple[CheckpointState, tuple[CheckpointStep, ...]]:
    """The state after an event, and the steps to record before anything that follows from it is done."""
    steps: list[CheckpointStep] = []

    def take(step: CheckpointStep) -> None:
        nonlocal state
        steps.append(step)
        state = apply_step(state, step)

    for step in _due_steps(state, event.at_ns):
        take(step)
    if isinstance(event, Answered) and event.id not in state.answers:
        take(_answer_step(state, event))
    return state, tuple(steps)


def apply_step(state: CheckpointState, step: CheckpointStep) -> CheckpointState:
    """The state after a recorded step."""
    if step.answer:
        state = replace(state, answers=state.answers | {step.answer})
    match step.step:
        case StepKind.ASKED | StepKind.REFUSED:
            return state
        case StepKind.SEEN:
            first = state.phase is CheckpointPhase.ASKED
            return replace(state, phase=CheckpointPhase.SEEN) if first else state
        case StepKind.APPROVED:
            approvers = (*state.approvers, step.by)
            enough = len(approvers) >= state.question.num_approvals
            phase = CheckpointPhase.APPROVED if enough else CheckpointPhase.APPROVED_ONCE
            return replace(state, phase=phase, approvers=approvers)
        case StepKind.DENIED:
            return replace(state, phase=CheckpointPhase.DENIED)
        case StepKind.DELEGATED:
            return replace(state, passed_on=(*state.passed_on, (step.by, step.to)))
        case StepKind.ESCALATED:
            return replace(state, is_escalated=True)
        case StepKind.EXPIRED:
            withholds = state.question.on_deadline is DeadlineDefault.WITHHOLD
            return replace(
                state,
                phase=CheckpointPhase.EXPIRED_WITHHELD if withholds else CheckpointPhase.EXPIRED_LOWER_RUNG,
            )


def asked_step(question: ApprovalQuestion) -> CheckpointStep:
    """The first step of a question."""
    return CheckpointStep(
        question.decision,
        question.asked_ns,
        StepKind.ASKED,
        seen=question.digest,
        detail="; ".join(reason.words for reason in question.reasons),
    )


def _due_steps(state: CheckpointState, now_ns: int) -> list[CheckpointStep]:
    """What time alone has brought about until now. An answer at the very deadline is in time."""
    question = state.question
    if state.is_final:
        return []
    due: list[CheckpointStep] = []
    if question.escalate_ns and not state.is_escalated and now_ns >= question.escalate_ns:
        due.append(CheckpointStep(question.decision, now_ns, StepKind.ESCALATED))
    if now_ns > question.deadline_ns:
        due.append(
            CheckpointStep(
                question.decision, now_ns, StepKind.EXPIRED, detail=f"default: {question.on_deadline.value}"
            )
        )
    return due


def _answer_step(state: CheckpointState, event: Answered) -> CheckpointStep:
    """The step that an answer makes: what it says, or its refusal."""
    step = CheckpointStep(
        state.question.decision,
        event.at_ns,
        _STEPS[event.answer],
        event.by,
        event.why,
        event.seen,
        event.to,
        answer=event.id,
    )
    refusal = _refusal(state, event)
    if not refusal:
        return step
    return replace_fields(step, step=StepKind.REFUSED, detail=f"{event.answer.value}: {refusal}")


def _refusal(state: CheckpointState, event: Answered) -> str:
    """Why an answer does not count; empty where it does."""
    if event.refusal:
        return event.refusal
    if state.phase in (CheckpointPhase.EXPIRED_WITHHELD, CheckpointPhase.EXPIRED_LOWER_RUNG):
        return f"too late: the deadline was {format_ns(state.question.deadline_ns)}"
    if state.is_final:
        return f"it is {state.phase.value} already"
    if event.seen != state.question.digest:
        return "what was seen is not what is asked"
    if event.answer is AnswerKind.SEEN:
        return ""
    if event.by in state.approvers and event.answer is not AnswerKind.DENY:  # who has doubts since may deny
        return f"{event.by} has approved it already"
    passed_on = dict(state.passed_on)
    if event.by in passed_on:
        return f"{event.by} has delegated it to {passed_on[event.by]}"
    if event.answer is not AnswerKind.DELEGATE:
        return ""
    if not event.to or event.to == event.by:
        return "it can be delegated to another person only"
    if event.to in state.approvers or event.to in passed_on:
        return f"{event.to} has answered already"
    return ""


_STEPS = {
    AnswerKind.SEEN: StepKind.SEEN,
    AnswerKind.APPROVE: StepKind.APPROVED,
    AnswerKind.DENY: StepKind.DENIED,
    AnswerKind.DELEGATE: StepKind.DELEGATED,
}
