"""Decisions that wait for people on the main path: what is asked, what the answers come to, what is released then.

A step is logged before anything follows from it. Where the log holds the steps of a question, so does every run that
reads it: a decision is asked about once, and a release that a crash kept back is made up for.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision, checkpoint_release_id
from htfi.domain.governance import CheckpointRelease, HoldKind
from htfi.domain.time import NS_PER_S, format_ns
from htfi.governance.checkpoints.answers import AnswerRights, judge_answer
from htfi.governance.checkpoints.config import CheckpointConfig
from htfi.governance.checkpoints.reasons import facts_of, why_checked
from htfi.governance.checkpoints.requests import ApprovalAnswer, ApprovalQuestion
from htfi.governance.checkpoints.state import (
    CheckpointEvent,
    CheckpointOutcome,
    CheckpointState,
    CheckpointStep,
    StepKind,
    TimeReached,
    advance,
    apply_step,
    asked_step,
)
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import CheckpointMoved
from htfi.governance.policy import judge
from htfi.narrative.rationale.amendment import rationale_without_news
from htfi.narrative.rationale.versions import phrasing_of
from htfi.pipeline.record.wording import with_words
from htfi.pipeline.weighing import numeric_quantiles

_LogStep = Callable[[CheckpointMoved], None]


class WaitingDecisions:
    """The questions of a run, and where in the ledger the decisions stand whose outcome is not dealt with yet."""

    def __init__(self, logged: Iterable[CheckpointMoved], log: _LogStep, clock: Callable[[], int]) -> None:
        self._states: dict[str, CheckpointState] = {}
        self._places: dict[str, int] = {}
        self._log, self._clock = log, clock
        for entry in logged:
            fold_entry(self._states, entry)

    @property
    def is_waiting(self) -> bool:
        """Whether any decision waits, or its outcome is to be dealt with."""
        return bool(self._places)

    def ask(
        self, decision: Decision, index: int, config: CheckpointConfig, desks: tuple[str, ...], before: int
    ) -> None:
        """Note a recorded decision that waits; it is asked about unless the log has the question.

        Raises: LedgerUnavailable.
        """
        self._places[decision.id] = index
        if decision.id in self._states:
            return
        question = question_of(decision, config, desks, self._clock())
        self._states[question.decision] = CheckpointState(question)
        self._log(_entry_of(asked_step(question), before, question))

    def take(self, answer: ApprovalAnswer, rights: AnswerRights, before: int) -> None:
        """Take an answer, which may be refused; one to nothing that was asked is passed over.

        Raises: LedgerUnavailable.
        """
        state = self._states.get(answer.decision)
        if state is not None and answer.id not in state.answers:
            self._advance(state, judge_answer(answer, state, rights, self._clock()), before)

    def pass_time(self, before: int) -> None:
        """Escalate and expire what is due. Raises: LedgerUnavailable."""
        now_ns = self._clock()
        for name in self._places:
            state = self._states[name]
            if state.next_ns is not None and now_ns >= state.next_ns:
                self._advance(state, TimeReached(now_ns), before)

    def due(self) -> list[int]:
        """The places of decisions to release, oldest first. What stays withheld is forgotten."""
        due: list[int] = []
        for name, index in list(self._places.items()):
            outcome = self._states[name].outcome
            if outcome is CheckpointOutcome.WITHHOLD:
                del self._places[name]
            elif outcome is not None:
                due.append(index)
        return sorted(due)

    def place_of(self, name: str) -> int | None:
        """Where the decision of that id stands, where its outcome is not dealt with yet."""
        return self._places.get(name)

    def mark_released(self, name: str) -> None:
        """Note that a decision was released."""
        self._places.pop(name, None)

    def _advance(self, state: CheckpointState, event: CheckpointEvent, before: int) -> None:
        after, steps = advance(state, event)
        for step in steps:
            self._log(_entry_of(step, before))
        self._states[state.question.decision] = after

    def state(self) -> dict[str, Any]:
        return {"places": dict(self._places)}

    def restore(self, state: dict[str, Any]) -> None:
        self._places = {name: index for name, index in state["places"].items() if name in self._states}


def fold_entry(states: dict[str, CheckpointState], entry: CheckpointMoved) -> None:
    """Take a logged step into the states of all questions, by the id of their decision."""
    if entry.question is not None:
        states[entry.decision] = CheckpointState(entry.question)
    elif entry.decision in states:
        states[entry.decision] = apply_step(states[entry.decision], step_of(entry))


def step_of(entry: CheckpointMoved) -> CheckpointStep:
    """The step that an entry of the governance log holds."""
    return CheckpointStep(
        entry.decision, entry.at_ns, StepKind(entry.step), entry.by, entry.why, entry.seen, entry.to,
        entry.detail, entry.answer,
    )  # fmt: skip


def _entry_of(step: CheckpointStep, before: int, question: ApprovalQuestion | None = None) -> CheckpointMoved:
    return CheckpointMoved(
        step.at_ns, before, step.decision, step.step.value, step.by, step.why, step.seen,
        question.deadline_ns if question is not None else 0, step.detail, step.to, step.answer, question,
    )  # fmt: skip


def waits_for_people(decision: Decision, policy: PolicyConfig) -> bool:
    """Whether people are asked about it: only its checkpoint holds it back, and no amendment is to follow."""
    facts = decision.governance
    if facts is UNSET or decision.awaits_amendment or decision.is_checkpoint_release:
        return False
    others = tuple(hold for hold in facts.holds if hold.kind is not HoldKind.CHECKPOINT)
    if others or not facts.holds:
        return False
    without = replace(decision, governance=replace(facts, holds=()))
    return judge(without, policy).outcome is not decision.verdict.outcome


def question_of(
    decision: Decision, config: CheckpointConfig, desks: tuple[str, ...], asked_ns: int
) -> ApprovalQuestion:
    """What people are asked about a decision at an instant, UTC."""
    deadline_ns = asked_ns + round(config.deadline_s * NS_PER_S)
    escalate_ns = deadline_ns - round(config.escalate_before_s * NS_PER_S) if config.escalate_before_s else 0
    return ApprovalQuestion(
        decision=decision.id,
        symbol=decision.symbol,
        asked_ns=asked_ns,
        deadline_ns=deadline_ns,
        escalate_ns=escalate_ns,
        num_approvals=config.num_approvals,
        on_deadline=config.on_deadline,
        reasons=why_checked(facts_of(decision), config),
        summary="\n".join(_summary(with_words(decision))),
        desks=desks,
    )


def _summary(decision: Decision) -> Iterator[str]:
    low, high = decision.forecast.central_band
    yield f"Series: {decision.series} at {format_ns(decision.as_of_ns)}, last price {decision.last_price:.10g}"
    yield f"90% band of the next bar: {low:+.4%} to {high:+.4%} in log return"
    yield f"Regime: {decision.regime.value}; rung: {decision.plan.rung.value}"
    yield f"Verdict without the checkpoint: {_policy_words(decision)}"
    if decision.rationale.text:
        yield f"Rationale: {decision.rationale.text}"
    if decision.view is not None and decision.view.cited:
        yield f"News: {', '.join(decision.view.cited)}"


def _policy_words(decision: Decision) -> str:
    reasons = [reason for reason in decision.verdict.reasons if not reason.startswith("governance: ")]
    return "; ".join(reasons) or "no objection"


def as_released(first: Decision, release: CheckpointRelease) -> Decision:
    """A decision in the form in which it is released, not yet judged: as it was, or from numbers alone.

    The generation trace is recorded once, with the first. Its `governance` is still that of the first.
    """
    released = replace(first, id=checkpoint_release_id(first.id), amends=first.id)
    if release.approvers:
        view = None if first.view is None else replace(first.view, trace=None)
        return replace(released, view=view)
    forecast = replace(first.forecast, quantiles=numeric_quantiles(first.forecast), tilt=None)
    low, high = forecast.central_band
    governed = first.governance
    return replace(
        released,
        view=None,
        forecast=forecast,
        rationale=rationale_without_news(
            first.rationale,
            last_price=first.last_price,
            low=low,
            high=high,
            phrasing=phrasing_of(first.models),
        ),
        governance=governed if governed is UNSET else replace(governed, swaps=UNSET),
    )


def release_facts(state: CheckpointState | None) -> CheckpointRelease | None:
    """What a release states of the question about its decision; None where that gives no right to release."""
    outcome = state.outcome if state is not None else None
    if state is None or outcome in (None, CheckpointOutcome.WITHHOLD):
        return None
    approvers = state.approvers if outcome is CheckpointOutcome.RELEASE else ()
    return CheckpointRelease(approvers, state.question.digest)
