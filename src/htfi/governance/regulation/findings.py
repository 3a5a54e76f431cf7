"""What a check says: findings with their evidence, how much was judged, and what the record does not let one judge."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

MAX_KEPT_FINDINGS = 1_000  # of a check; more are counted
MAX_KEPT_REASONS = 20


class RuleRegime(StrEnum):
    """Whose rules."""

    EU = "eu"
    US = "us"
    CN = "cn"


class Severity(StrEnum):
    """`NOTICE`: a duty follows, nothing is broken. `REVIEW`: a person has to look. `BREACH`: a rule is broken."""

    NOTICE = "notice"
    REVIEW = "review"
    BREACH = "breach"


class CheckOutcome(StrEnum):
    """The result of a check as a whole."""

    NOTHING_FOUND = "nothing found"
    FOUND = "found"
    NOT_JUDGED = "cannot be judged from the record"


class Where(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a finding is about: ids, and the first and last instant in UTC ns."""

    start_ns: int
    end_ns: int
    orders: tuple[str, ...] = ()
    instrument: str = ""
    venue: str = ""
    party: str = ""  # the client, account, trader or algo
    entries: tuple[int, ...] = ()  # of the ledger
    scope: str = ""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One thing found. `evidence` are the figures it rests on, by name with unit."""

    check: str
    severity: Severity
    what: str
    where: Where
    evidence: dict[str, float | int | str]


class Unjudged(msgspec.Struct, frozen=True, gc=False):
    """Something that the record does not let one judge, why, and how often."""

    reason: str
    num: int


@dataclass(slots=True)
class FindingLog:
    """What one check has said so far, bounded: later findings are counted, the first ones kept."""

    check: str
    findings: list[Finding] = field(default_factory=list[Finding])
    num_found: int = 0
    num_judged: int = 0
    is_muted: bool = False  # before the span: what is found there belongs to an earlier report
    _reasons: dict[str, int] = field(default_factory=dict[str, int])

    def judged(self, num: int = 1) -> None:
        """So many things were judged, whatever was found."""
        self.num_judged += 0 if self.is_muted else num

    def found(
        self,
        severity: Severity,
        what: str,
        where: Where,
        evidence: dict[str, float | int | str] | None = None,
    ) -> None:
        if self.is_muted:
            return
        self.num_found += 1
        if len(self.findings) < MAX_KEPT_FINDINGS:
            self.findings.append(Finding(self.check, severity, what, where, evidence or {}))

    def cannot_judge(self, reason: str, num: int = 1) -> None:
        if self.is_muted:
            return
        if reason in self._reasons or len(self._reasons) < MAX_KEPT_REASONS:
            self._reasons[reason] = self._reasons.get(reason, 0) + num

    @property
    def unjudged(self) -> Sequence[Unjudged]:
        return tuple(Unjudged(reason, num) for reason, num in self._reasons.items())

    @property
    def outcome(self) -> CheckOutcome:
        if self.num_found:
            return CheckOutcome.FOUND
        return CheckOutcome.NOTHING_FOUND if self.num_judged else CheckOutcome.NOT_JUDGED
