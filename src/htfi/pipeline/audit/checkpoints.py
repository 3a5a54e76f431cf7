"""Whether what the governance log holds of decisions that waited for people follows from them and from each other.

Each step is derived again from the question and the steps before it, so that an approval that came late, twice or
from a person who had passed it on is found. What only the people and rules of that time could tell is taken as logged:
that an answer was refused for lack of a right.
"""

from typing import NamedTuple

from htfi.domain.decision import Decision
from htfi.domain.errors import HtfiError
from htfi.governance.checkpoints.answers import statement_of
from htfi.governance.checkpoints.config import CheckpointConfig
from htfi.governance.checkpoints.requests import AnswerKind, ApprovalAnswer
from htfi.governance.checkpoints.state import (
    Answered,
    CheckpointState,
    CheckpointStep,
    StepKind,
    TimeReached,
    advance,
    asked_step,
)
from htfi.governance.control.entries import CheckpointMoved
from htfi.governance.ledger.note import parse_note, parse_verifier_key
from htfi.governance.people import statement_in
from htfi.governance.ports import VerifySignature
from htfi.pipeline.checkpoints import fold_entry, question_of, step_of

_ANSWERS = {
    StepKind.SEEN: AnswerKind.SEEN,
    StepKind.APPROVED: AnswerKind.APPROVE,
    StepKind.DENIED: AnswerKind.DENY,
    StepKind.DELEGATED: AnswerKind.DELEGATE,
}


class AuditedSignatures(NamedTuple):
    """How signatures are verified, and the verifier key of the run's ledger, which signed answers name."""

    verify: VerifySignature
    run: str


class WaitingDecisionRecord(NamedTuple):
    """A recorded decision that waits, with the checkpoints that were in force for it and its symbol's desks."""

    decision: Decision
    config: CheckpointConfig
    desks: tuple[str, ...]


class CheckpointAuditor:
    """Derives the steps of questions again, in the log's order."""

    def __init__(self, signatures: AuditedSignatures | None = None) -> None:
        """Without `signatures` the signatures of answers are not verified."""
        self._states: dict[str, CheckpointState] = {}
        self._waiting: dict[str, WaitingDecisionRecord] = {}
        self._signatures = signatures
        self.has_gaps = False  # decisions were deleted, so that what was asked about them cannot be derived

    def add_waiting(self, record: WaitingDecisionRecord) -> None:
        """Note a recorded decision that waits for people."""
        self._waiting[record.decision.id] = record

    def problems(self, entry: CheckpointMoved) -> list[str]:
        """What of a logged step does not follow; empty where all does."""
        wrong = self._wrong(entry)
        fold_entry(self._states, entry)
        return [f"governance log: step '{entry.step}' of {entry.decision}: {wrong}"] if wrong else []

    def _wrong(self, entry: CheckpointMoved) -> str:
        if entry.question is not None:
            return self._wrong_question(entry)
        state = self._states.get(entry.decision)
        if state is None:
            return "is about a decision that nothing was asked about"
        step = step_of(entry)
        if not _follows(step, state):
            return "does not follow from the steps before it"
        return self._wrong_signature(entry, step) if entry.signed else ""

    def _wrong_question(self, entry: CheckpointMoved) -> str:
        record = self._waiting.get(entry.decision)
        if record is None or entry.question is None:
            return "" if self.has_gaps else "is about a decision that does not wait for people"
        if entry.decision in self._states:
            return "was asked before"
        question = question_of(record.decision, record.config, record.desks, entry.question.asked_ns)
        if entry.question != question:
            return "what people were shown does not follow from the decision"
        return "" if step_of(entry) == asked_step(question) else "does not quote what people were shown"

    def _wrong_signature(self, entry: CheckpointMoved, step: CheckpointStep) -> str:
        """Whether what was signed is what the step says; a refused answer may be signed by anybody."""
        if step.step is StepKind.REFUSED or self._signatures is None:
            return ""
        try:
            note, key = parse_note(entry.signed), parse_verifier_key(entry.key)
            statement = statement_in(note.text)
        except HtfiError as error:
            return f"its signature cannot be verified: {error}"
        if not any(
            self._signatures.verify(key.public_key, note.text.encode(), one.payload)
            for one in note.signatures_of(key)
        ):
            return f"its signature is not that of {entry.key}"
        answer = ApprovalAnswer(
            step.answer, statement.at_ns, step.decision, _ANSWERS[step.step], step.by, step.why, step.seen,
            step.to,
        )  # fmt: skip
        same = statement == statement_of(answer, self._signatures.run)
        return "" if same else "what was signed is not what it says"


def _follows(step: CheckpointStep, state: CheckpointState) -> bool:
    """Whether it is the next step of a question in this state."""
    kind, refusal = _ANSWERS.get(step.step), ""
    if step.step is StepKind.REFUSED:
        words, _, refusal = step.detail.partition(": ")
        kind = next((one for one in AnswerKind if one.value == words), None)
    if kind is None:
        event = TimeReached(step.at_ns)
    else:
        event = Answered(step.answer, step.at_ns, kind, step.by, step.why, step.seen, step.to, refusal)
    return advance(state, event)[1][:1] == (step,)
