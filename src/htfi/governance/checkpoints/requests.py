"""What travels between a run and people: what is asked about a decision, its text, and the answers.

A run writes `ApprovalQuestion` lines; `htfi approvals` drops `ApprovalAnswer` files into the run's control folder.
"""

from enum import StrEnum
from hashlib import sha256

import msgspec

from htfi.domain.time import format_ns
from htfi.governance.checkpoints.config import DeadlineDefault
from htfi.governance.checkpoints.reasons import CheckpointReason

MIN_SEEN_DIGITS = 8  # of a digest, that a person types


class AnswerKind(StrEnum):
    """What a person says. SEEN: the text was shown."""

    SEEN = "seen"
    APPROVE = "approve"
    DENY = "deny"
    DELEGATE = "delegate"


class ApprovalQuestion(msgspec.Struct, frozen=True, tag_field="kind", tag="question"):
    """A decision that waits: why, until when, and what people are shown of it. Times are UTC.

    `decision` is its id. `summary` is what it says, in lines; `num_approvals` people must approve before `deadline_ns`,
    from `escalate_ns` on further people may. 0: there is no escalation.
    """

    decision: str
    symbol: str
    asked_ns: int
    deadline_ns: int
    escalate_ns: int
    num_approvals: int
    on_deadline: DeadlineDefault
    reasons: tuple[CheckpointReason, ...]
    summary: str
    tenant: str = ""
    desks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What people are shown, canonical: the same question gives the same text."""
        lines = [
            f"Decision: {self.decision}",
            f"Asked: {format_ns(self.asked_ns)}",
            f"Deadline: {format_ns(self.deadline_ns)}, then {_DEFAULT_WORDS[self.on_deadline]}",
            f"Approvals needed: {self.num_approvals}",
            *(f"Why it waits: {reason.words}" for reason in self.reasons),
            "",
            *self.summary.splitlines(),
        ]
        return "\n".join(lines) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the text."""
        return sha256(self.text.encode()).hexdigest()


class ApprovalAnswer(msgspec.Struct, frozen=True, tag_field="kind", tag="answer"):
    """A person's answer, as it is left in a control folder. `id` names it and its file, `at_ns` is UTC.

    `seen` is the SHA-256 (hex) of the text that the person saw, `to` whom it is delegated to. `signed` is the signed
    note (`governance.people`), empty where there is no governance folder.
    """

    id: str
    at_ns: int
    decision: str
    answer: AnswerKind
    by: str
    why: str
    seen: str
    to: str = ""
    signed: str = ""


_DEFAULT_WORDS = {
    DeadlineDefault.WITHHOLD: "it is withheld",
    DeadlineDefault.LOWER_RUNG: "the forecast from numbers alone is released, marked as such",
}
