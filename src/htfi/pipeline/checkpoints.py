"""Decisions that wait for people on the main path: what is asked, what the answers come to, what is released then.

A step is logged before anything follows from it. Where the log holds the steps of a question, so does every run that
reads it: a decision is asked about once, and a release that a crash kept back is made up for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision, checkpoint_release_id
from htfi.domain.errors import HtfiError
from htfi.domain.governance import CheckpointRelease, HoldKind
from htfi.domain.time import NS_PER_S, format_ns
from htfi.governance.checkpoints.answers import AnswerRights, judge_answer, key_of_note, refused_answer
from htfi.governance.checkpoints.config import CheckpointConfig
from htfi.governance.checkpoints.reasons import facts_of, why_checked
from htfi.governance.checkpoints.requests import ApprovalAnswer, ApprovalQuestion
from htfi.governance.checkpoints.state import (
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
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import CheckpointMoved
from htfi.governance.policy import judge
from htfi.narrative.rationale.amendment import rationale_without_news
from htfi.narrative.rationale.versions import phrasing_of
from htfi.pipeline.record.wording import with_words
from htfi.pipeline.weighing import numeric_quantiles

OpenRights = Callable[[], AnswerRights]
"""By what an answer is judged, as it stands when the answer comes. Raises: HtfiError."""

_LogSteps = Callable[[Sequence[CheckpointMoved]], None]


class WaitingDecision(NamedTuple):
    """A recorded decision that waits, its place in the ledger and the desks that its symbol belongs to."""

    place: int
    decision: Decision
    desks: tuple[str, ...]


class WaitingDecisions:
    """The questions of a run, and where in the ledger the decisions stand whose outcome is not dealt with yet."""

    def __init__(self, logged: Iterable[CheckpointMoved], log: _LogSteps, clock: Callable[[], int]) -> None:
        self._states: dict[str, CheckpointState] = {}
        self._places: dict[str, int] = {}
        self._times: list[tuple[int, str]] = []  # heap: when time alone may change a question
        self._outcomes: list[str] = []  # questions that have one, which is not dealt with yet
        self._log, self._clock = log, clock
        for entry in logged:
            fold_entry(self._states, entry)

    @property
    def is_waiting(self) -> bool:
        """Whether any decision waits, or its outcome is to be dealt with."""
        return bool(self._places)

    @property
    def num_waiting(self) -> int:
        """How many decisions wait."""
        return len(self._places)

    def counts(self) -> dict[CheckpointPhase, int]:
        """How many questions stand in each phase."""
        return Counter(state.phase for state in self._states.values())

    def ask(self, waiting: Sequence[WaitingDecision], config: CheckpointConfig, before: int) -> None:
        """Note recorded decisions that wait; those are asked about whose question the log does not have.

        Raises: LedgerUnavailable.
        """
        asked: list[CheckpointMoved] = []
        for one in waiting:
            name = one.decision.id
            if name not in self._states:
                question = question_of(one.decision, config, one.desks, self._clock())
                self._states[name] = CheckpointState(question)
                asked.append(_entry_of(asked_step(question), before, question=question))
            self._places[name] = one.place
            self._await(self._states[name])
        if asked:
            self._log(asked)

    def take(self, answer: ApprovalAnswer, open_rights: OpenRights, before: int) -> None:
        """Take an answer, which may be refused; one to nothing that was asked is passed over.

        Raises: LedgerUnavailable.
        """
        state = self._states.get(answer.decision)
        if state is None or answer.id in state.answers:
            return
        now_ns, key = self._clock(), ""
        try:
            rights = open_rights()
            event = judge_answer(answer, state, rights, now_ns)
            key = key_of_note(answer.signed, rights) if answer.signed else ""
        except HtfiError as error:  # what cannot be judged does not count
            event = refused_answer(answer, now_ns, str(error))
        after, steps = advance(state, event)
        self._log([_entry_of(step, before, answer=answer, key=key) for step in steps])
        self._move(after)

    def pass_time(self, before: int) -> None:
        """Escalate and expire what is due. Raises: LedgerUnavailable."""
        now_ns = self._clock()
        moved: list[CheckpointMoved] = []
        while self._times and self._times[0][0] <= now_ns:
            _, name = heappop(self._times)
            state = self._states[name]
            if name not in self._places or state.is_final:
                continue
            after, steps = advance(state, TimeReached(now_ns))
            moved += [_entry_of(step, before) for step in steps]
            if not steps:  # the very instant of the deadline, at which an answer is in time
                heappush(self._times, (now_ns + 1, name))
                continue
            self._move(after)
        if moved:
            self._log(moved)

    def due(self) -> list[int]:
        """The places of decisions to release, oldest first. What stays withheld is forgotten."""
        if not self._outcomes:
            return []
        names, self._outcomes = self._outcomes, []
        due: list[int] = []
        for name in names:
            if self._states[name].outcome is CheckpointOutcome.WITHHOLD:
                self._places.pop(name, None)
            elif name in self._places:
                due.append(self._places[name])
        return sorted(set(due))

    def place_of(self, name: str) -> int | None:
        """Where the decision of that id stands, where its outcome is not dealt with yet."""
        return self._places.get(name)

    def mark_released(self, name: str) -> None:
        """Note that a decision was released."""
        self._places.pop(name, None)

    def _move(self, after: CheckpointState) -> None:
        self._states[after.question.decision] = after
        self._await(after)

    def _await(self, state: CheckpointState) -> None:
        name = state.question.decision
        if state.outcome is not None:
            self._outcomes.append(name)
        elif state.next_ns is not None:
            heappush(self._times, (state.next_ns, name))

    def state(self) -> dict[str, Any]:
        return {"places": dict(self._places)}

    def restore(self, state: dict[str, Any]) -> None:
        self._places = {name: index for name, index in state["places"].items() if name in self._states}
        self._times.clear()
        self._outcomes.clear()
        for name in self._places:
            self._await(self._states[name])


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


def _entry_of(
    step: CheckpointStep,
    before: int,
    *,
    question: ApprovalQuestion | None = None,
    answer: ApprovalAnswer | None = None,
    key: str = "",
) -> CheckpointMoved:
    """The entry of a step; `answer` is what was given, which only the step that it caused quotes."""
    signed = answer.signed if answer is not None and answer.id == step.answer else ""
    return CheckpointMoved(
        step.at_ns, before, step.decision, step.step.value, step.by, step.why, step.seen,
        question.deadline_ns if question is not None else 0, step.detail, step.to, step.answer, question,
        signed, key if signed else "",
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
