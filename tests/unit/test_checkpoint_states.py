"""Decisions that wait for people: who counts, what is refused and why, what time alone does."""

import pytest

from htfi.domain.time import NS_PER_S
from htfi.governance.checkpoints.config import DeadlineDefault
from htfi.governance.checkpoints.reasons import CheckpointCause, CheckpointReason
from htfi.governance.checkpoints.requests import AnswerKind, ApprovalQuestion
from htfi.governance.checkpoints.state import (
    Answered,
    CheckpointOutcome,
    CheckpointPhase,
    CheckpointState,
    CheckpointStep,
    StepKind,
    TimeReached,
    advance,
    apply_step,
    asked_step,
)

ASKED = 1_000 * NS_PER_S
DEADLINE = ASKED + 300 * NS_PER_S
ESCALATES = ASKED + 240 * NS_PER_S


def question(num_approvals: int = 1, default: DeadlineDefault = DeadlineDefault.WITHHOLD) -> ApprovalQuestion:
    reasons = (CheckpointReason(CheckpointCause.REGIME, "the regime is shock"),)
    return ApprovalQuestion(
        "SPX/1d@2008-10-10T20:00:00Z", "SPX", ASKED, DEADLINE, ESCALATES, num_approvals, default, reasons,
        "SPX falls",
    )  # fmt: skip


def waiting(num_approvals: int = 1, default: DeadlineDefault = DeadlineDefault.WITHHOLD) -> CheckpointState:
    return CheckpointState(question(num_approvals, default))


def answer(
    kind: AnswerKind, by: str = "Ann", after_s: float = 10.0, name: str = "", to: str = "", **changed: str
) -> Answered:
    at_ns = ASKED + round(after_s * NS_PER_S)
    event = Answered(name or f"{by}-{kind.value}-{after_s}", at_ns, kind, by, "reason", question().digest, to)
    return event._replace(**changed)


def after(
    state: CheckpointState, *events: Answered | TimeReached
) -> tuple[CheckpointState, list[CheckpointStep]]:
    steps: list[CheckpointStep] = []
    for event in events:
        state, taken = advance(state, event)
        steps += taken
    return state, steps


def two_question_answer(kind: AnswerKind, by: str, after_s: float = 10.0, to: str = "") -> Answered:
    return answer(kind, by, after_s, to=to)._replace(seen=question(2).digest)


def test_one_approval_releases_where_one_is_enough() -> None:
    state, steps = after(waiting(), answer(AnswerKind.APPROVE))
    assert (state.phase, state.outcome) == (CheckpointPhase.APPROVED, CheckpointOutcome.RELEASE)
    assert [(step.step, step.by, step.seen) for step in steps] == [
        (StepKind.APPROVED, "Ann", question().digest)
    ]


def test_two_person_rule_needs_two_people_and_refuses_the_first_ones_second_approval() -> None:
    state, steps = after(
        waiting(2),
        two_question_answer(AnswerKind.APPROVE, "Ann"),
        two_question_answer(AnswerKind.APPROVE, "Ann", 20.0),
    )
    assert state.phase is CheckpointPhase.APPROVED_ONCE
    assert state.outcome is None
    assert (steps[1].step, steps[1].detail) == (StepKind.REFUSED, "approve: Ann has approved it already")
    state, _ = after(state, two_question_answer(AnswerKind.APPROVE, "Bo", 30.0))
    assert (state.phase, state.approvers) == (CheckpointPhase.APPROVED, ("Ann", "Bo"))


def test_answer_at_the_deadline_counts_and_one_after_it_is_refused_as_late() -> None:
    in_time, _ = after(waiting(), answer(AnswerKind.APPROVE, after_s=300.0))
    assert in_time.phase is CheckpointPhase.APPROVED
    late, steps = after(waiting(), answer(AnswerKind.APPROVE, after_s=300.001))
    assert (late.phase, late.outcome) == (CheckpointPhase.EXPIRED_WITHHELD, CheckpointOutcome.WITHHOLD)
    assert [step.step for step in steps] == [StepKind.ESCALATED, StepKind.EXPIRED, StepKind.REFUSED]
    assert steps[2].detail.startswith("approve: too late: the deadline was ")


def test_answer_without_a_right_is_refused_with_the_reason_and_changes_nothing() -> None:
    before = waiting()
    state, steps = after(before, answer(AnswerKind.APPROVE, refusal="Ann may not: no rule allows it"))
    assert (state.phase, state.approvers) == (before.phase, ())
    assert [(step.step, step.detail) for step in steps] == [
        (StepKind.REFUSED, "approve: Ann may not: no rule allows it")
    ]


def test_answer_to_another_text_than_the_one_asked_about_is_refused() -> None:
    state, steps = after(waiting(), answer(AnswerKind.APPROVE, seen="0" * 64))
    assert state.phase is CheckpointPhase.ASKED
    assert steps[0].detail == "approve: what was seen is not what is asked"


def test_one_denial_withholds_also_after_ones_own_approval() -> None:
    state, _ = after(
        waiting(2),
        two_question_answer(AnswerKind.APPROVE, "Ann"),
        two_question_answer(AnswerKind.DENY, "Ann", 20.0),
    )
    assert (state.phase, state.outcome) == (CheckpointPhase.DENIED, CheckpointOutcome.WITHHOLD)


@pytest.mark.parametrize("kind", [AnswerKind.APPROVE, AnswerKind.DENY, AnswerKind.DELEGATE, AnswerKind.SEEN])
def test_nothing_changes_a_final_state(kind: AnswerKind) -> None:
    denied, _ = after(waiting(), answer(AnswerKind.DENY))
    state, steps = after(denied, answer(kind, "Bo", 20.0, to="Cy"), TimeReached(DEADLINE + 1))
    assert state.phase is CheckpointPhase.DENIED
    assert [(step.step, step.detail) for step in steps] == [
        (StepKind.REFUSED, f"{kind.value}: it is denied already")
    ]


def test_who_delegated_cannot_answer_and_the_delegate_can() -> None:
    state, steps = after(
        waiting(), answer(AnswerKind.DELEGATE, "Ann", to="Bo"), answer(AnswerKind.APPROVE, "Ann", 20.0)
    )
    assert [step.step for step in steps] == [StepKind.DELEGATED, StepKind.REFUSED]
    assert steps[1].detail == "approve: Ann has delegated it to Bo"
    state, _ = after(state, answer(AnswerKind.APPROVE, "Bo", 30.0))
    assert state.phase is CheckpointPhase.APPROVED


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("Ann", "delegate: it can be delegated to another person only"),
        ("", "delegate: it can be delegated to another person only"),
        ("Cy", "delegate: Cy has answered already"),
        ("Di", "delegate: Di has answered already"),
    ],
)
def test_delegation_to_oneself_or_to_who_has_answered_is_refused(to: str, reason: str) -> None:
    state, _ = after(
        waiting(2),
        two_question_answer(AnswerKind.APPROVE, "Cy"),
        two_question_answer(AnswerKind.DELEGATE, "Di", to="Ann"),
    )
    _, steps = after(state, two_question_answer(AnswerKind.DELEGATE, "Ann", 20.0, to))
    assert [(step.step, step.detail) for step in steps] == [(StepKind.REFUSED, reason)]


def test_escalation_comes_before_the_deadline_once() -> None:
    state, steps = after(waiting(), TimeReached(ESCALATES - 1), TimeReached(ESCALATES), TimeReached(DEADLINE))
    assert [(step.step, step.at_ns) for step in steps] == [(StepKind.ESCALATED, ESCALATES)]
    assert (state.is_escalated, state.next_ns) == (True, DEADLINE)


@pytest.mark.parametrize(
    ("default", "outcome"),
    [
        (DeadlineDefault.WITHHOLD, CheckpointOutcome.WITHHOLD),
        (DeadlineDefault.LOWER_RUNG, CheckpointOutcome.RELEASE_LOWER_RUNG),
    ],
)
def test_deadline_brings_the_default(default: DeadlineDefault, outcome: CheckpointOutcome) -> None:
    state, steps = after(waiting(default=default), TimeReached(DEADLINE + 1))
    assert (state.outcome, state.next_ns) == (outcome, None)
    assert steps[-1].detail == f"default: {default.value}"


def test_answer_that_was_taken_is_not_taken_again() -> None:
    state, _ = after(waiting(2), two_question_answer(AnswerKind.APPROVE, "Ann"))
    again, steps = after(state, two_question_answer(AnswerKind.APPROVE, "Ann"))
    assert (again, steps) == (state, [])


def test_recorded_steps_alone_give_the_state_again() -> None:
    events = (
        two_question_answer(AnswerKind.SEEN, "Ann", 1.0),
        two_question_answer(AnswerKind.DELEGATE, "Bo", 2.0, to="Cy"),
        two_question_answer(AnswerKind.APPROVE, "Bo", 3.0),
        two_question_answer(AnswerKind.APPROVE, "Ann", 4.0),
        TimeReached(ESCALATES),
        two_question_answer(AnswerKind.APPROVE, "Cy", 250.0),
    )
    lived, steps = after(waiting(2), *events)
    assert lived.phase is CheckpointPhase.APPROVED
    replayed = CheckpointState(lived.question)
    for step in (asked_step(lived.question), *steps):
        replayed = apply_step(replayed, step)
    assert replayed == lived


def test_text_that_people_see_is_canonical_and_states_what_is_asked() -> None:
    assert question().text == (
        "Decision: SPX/1d@2008-10-10T20:00:00Z\n"
        "Asked: 1970-01-01T00:16:40Z\n"
        "Deadline: 1970-01-01T00:21:40Z, then it is withheld\n"
        "Approvals needed: 1\n"
        "Why it waits: the regime is shock\n"
        "\n"
        "SPX falls\n"
    )
    assert question().digest != question(2).digest
