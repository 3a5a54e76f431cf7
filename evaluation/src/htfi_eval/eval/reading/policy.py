"""How well central banks' decisions are read: from headlines in many notations, and from statements of every era.

A reading is right if the bank, the move and the size are; where the text states a level, that too. A size may follow
from what stood before: a level alone makes 'raised to 5.25%' right if the level is.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from htfi.narrative.facts.policy.action import PolicyAction, PolicyInstrument, PolicyModality, PolicyMove
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.sanitising.config import MAX_BODY_CHARS
from htfi.narrative.sanitising.deobfuscation import deobfuscate
from htfi_eval.eval.reading.notations import decision_headlines, prospect_headlines
from htfi_eval.eval.reading.official import official_documents
from htfi_eval.eval.reading.policy_truth import (
    CALENDAR,
    NO_RATE_DECISION,
    RateDecision,
    calendar_decisions,
    fed_decision,
)

_MAX_EXAMPLES = 40


@dataclass(slots=True)
class PolicyPart:
    """Readings of one part of the texts: how many, how many right, and the wrong ones with what was read."""

    name: str
    num: int = 0
    num_right: int = 0
    by_group: Counter[str] = field(default_factory=Counter[str])
    right_by_group: Counter[str] = field(default_factory=Counter[str])
    wrong: list[tuple[str, PolicyAction | None]] = field(
        default_factory=list[tuple[str, PolicyAction | None]]
    )

    @property
    def right(self) -> float:
        return self.num_right / max(self.num, 1)

    def count(self, is_right: bool, groups: tuple[str, ...], text: str, read: PolicyAction | None) -> None:
        self.num += 1
        self.num_right += is_right
        self.by_group.update(groups)
        if is_right:
            self.right_by_group.update(groups)
        elif len(self.wrong) < _MAX_EXAMPLES:
            self.wrong.append((text, read))


@dataclass(frozen=True, slots=True)
class PolicyReading:
    """The parts: headlines of decisions, statements, and headlines on prospects, which are no decisions."""

    headlines: PolicyPart
    statements: PolicyPart
    prospects: PolicyPart

    @property
    def right(self) -> float:
        """The figure policy_action_right of reading: the mean of the parts, each counting alike."""
        parts = (self.headlines, self.statements, self.prospects)
        return sum(part.right for part in parts) / len(parts)


def evaluate_policy(data: Path) -> PolicyReading | None:
    """Read every decision of the calendar in every notation, and every statement; None where the data are missing."""
    if not (data / CALENDAR).exists() or not (data / "central_bank").is_dir():
        return None
    headlines, prospects = PolicyPart("headlines"), PolicyPart("prospects")
    for decision in calendar_decisions(data):
        for line in decision_headlines(decision):
            read = find_policy_action(line.text)
            is_right = _is_right(read, decision, states_size=line.states_size, states_level=line.states_level)
            headlines.count(is_right, (decision.bank, line.notation), line.text, read)
        for text in prospect_headlines(decision):
            read = find_policy_action(text)
            is_right = read is None or read.modality is not PolicyModality.DID
            prospects.count(is_right, (decision.bank,), text, read)
    return PolicyReading(headlines, _statements(data), prospects)


def _statements(data: Path) -> PolicyPart:
    part = PolicyPart("statements")
    for document in official_documents(data):
        if document.kind != "statement":
            continue
        decision = fed_decision(document.released)
        text = deobfuscate(document.text, MAX_BODY_CHARS).text  # as a run's items come from the sanitiser
        era = f"{document.released.year // 10}0s"
        for headline in ("", document.title):
            read = find_policy_action(headline, text, "fed")
            if document.released in NO_RATE_DECISION:
                is_right = (
                    read is None
                    or read.instrument is not PolicyInstrument.RATE
                    or read.move is PolicyMove.HOLD
                )
            else:
                is_right = _is_right(read, decision, states_size=False, states_level=False)
            part.count(is_right, (era,), f"{document.released}: {document.text[:300]}", read)
    return part


def _is_right(
    read: PolicyAction | None, truth: RateDecision, *, states_size: bool, states_level: bool
) -> bool:
    if (
        read is None
        or read.instrument is not PolicyInstrument.RATE
        or read.modality is not PolicyModality.DID
    ):
        return False
    if read.bank != truth.bank or read.move is not truth.move:
        return False
    if read.size_bp != abs(truth.change_bp) and (states_size or read.size_bp is not None):
        return False
    if read.high is None or read.low is None:
        return not states_level
    return abs(read.high - truth.level) < 0.011 and (
        abs(read.low - truth.low) < 0.011 or read.low == read.high
    )


def describe(part: PolicyPart) -> Iterator[str]:
    """Lines on a part: its figure, then that of each group."""
    yield f"{part.name}: {part.num_right} of {part.num} right ({part.right:.2%})"
    for group in sorted(part.by_group):
        yield f"  {group}: {part.right_by_group[group]} of {part.by_group[group]}"
