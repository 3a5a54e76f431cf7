"""Bodies of governance: limits, breakers, stops, approvals, quarantine, suspicion."""

from typing import Any

import msgspec

from htfi.domain.news import ScreeningFinding


class ProposedBundle(msgspec.Struct, frozen=True):
    """A bundle that was put before the officers and is not in force."""

    number: int
    digest: str
    author: str
    signers: list[str]
    at: str


class PolicyBody(msgspec.Struct, frozen=True):
    """The limits that a run goes by: of the policy bundle that its log names last, else of its settings.

    `signers` and `note`, the bundle with its officers' signatures, are those of the governance folder; None where the
    service has none, or the folder does not know the bundle. `stale` says why nothing may be released.
    """

    by: str
    words: str
    number: int | None
    digest: str
    stale: str
    limits: dict[str, Any]
    signers: list[str] | None
    note: str | None
    proposed: list[ProposedBundle]


class BreakerBody(msgspec.Struct, frozen=True):
    """A breaker of a scope, as it changed last; `before` is the index of the first decision that this applies to."""

    breaker: str
    scope: str
    state: str
    statistic: float
    threshold: float
    evidence: str
    at: str
    before: int


class BreakersBody(msgspec.Struct, frozen=True):
    """The breakers of a run that have ever changed; `settings` are those of the bundle in force, None without one."""

    items: list[BreakerBody]
    settings: dict[str, Any] | None


class StopBody(msgspec.Struct, frozen=True):
    """A stop in force."""

    scope: str
    by: str
    why: str
    cause: str
    at: str
    before: int


class WaitingRequest(msgspec.Struct, frozen=True):
    """What lies in the run's control folder and is not in its log yet."""

    id: str
    kind: str
    by: str
    why: str


class ControlBody(msgspec.Struct, frozen=True):
    """What holds a run back. `run_key` is the verifier key that signed requests name; `has_people` that they must be.

    Statistics and thresholds are those of each breaker's rule (docs/governance.md).
    """

    is_running: bool
    is_clear: bool
    stops: list[StopBody]
    open_breakers: list[BreakerBody]
    waiting: list[WaitingRequest]
    has_stop_file: bool
    run_key: str
    has_people: bool


class StopQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Release nothing of a scope: firm, desk:NAME, model:NAME or series:SYMBOL[/interval]."""

    why: str
    by: str = ""
    scope: str = "firm"


class ReenableQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End the stops of a scope and close its breakers, or the one of a name. `signed` is a person's signed request."""

    why: str
    by: str = ""
    scope: str = "firm"
    breaker: str = ""
    signed: str = ""


class AnswerQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's answer; `seen` are 8 digits or more of the digest of what was shown."""

    seen: str
    why: str = ""
    by: str = ""
    signed: str = ""


class DelegateQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same, handing the decision to another person."""

    seen: str
    to: str
    why: str
    by: str = ""
    signed: str = ""


class ControlAnswer(msgspec.Struct, frozen=True):
    """What became of a stop or its end: the run has logged it, or when it will. `detail` says it in words."""

    outcome: str
    scope: str
    detail: str


class QuestionBody(msgspec.Struct, frozen=True):
    """A decision that waits for people, or has waited. Times are UTC."""

    number: int
    decision: str
    symbol: str
    phase: str
    is_final: bool
    is_escalated: bool
    asked: str
    deadline: str
    on_deadline: str
    num_approvals: int
    approvers: list[str]
    num_waiting_answers: int
    reasons: list[str]
    digest: str
    text: str
    steps: list[dict[str, Any]]


class QuestionPage(msgspec.Struct, frozen=True):
    """Questions, oldest first; `next` is the number to ask for those after, None on the last page."""

    items: list[QuestionBody]
    next: int | None


class AnswerBody(msgspec.Struct, frozen=True):
    """What an answer came to. Unless it `is_recorded`, it is what is expected of the run."""

    decision: str
    step: str
    by: str
    is_recorded: bool
    detail: str


class AdmissionQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who admits an item and why. `signed` is a person's signed request, where the governance folder has people."""

    why: str
    by: str = ""
    signed: str = ""


class ClearingQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who ends a suspicion and why: of a symbol, or of everything."""

    why: str
    by: str = ""
    symbol: str = ""
    signed: str = ""


class QuarantineBody(msgspec.Struct, frozen=True):
    """An item that is held back. `headline` and `body` are cleaned; `as_it_came` is untrusted text, to show as data.

    `status` is held, asked (a person has admitted it, the run has not taken it yet) or released.
    """

    number: int
    id: str
    status: str
    source: str
    publisher: str
    symbols: list[str]
    arrived: str
    headline: str
    body: str
    as_it_came: dict[str, str]
    findings: list[ScreeningFinding]
    admitted_by: str
    admitted_for: str
    entered: str  # when it entered the run, in the run's time


class QuarantinePage(msgspec.Struct, frozen=True):
    """Items, newest first; `next` is the number to ask for those before, None on the last page."""

    items: list[QuarantineBody]
    next: int | None


class AdmissionBody(msgspec.Struct, frozen=True):
    """An item that a person has admitted, and when it enters the run."""

    number: int
    id: str
    by: str
    detail: str


class SuspectedBody(msgspec.Struct, frozen=True):
    """A symbol that is or was suspected at its newest decision, and how many decisions were made so."""

    symbol: str
    why: str
    as_of: str
    num_decisions: int


class ClearedBody(msgspec.Struct, frozen=True):
    """A person's word that ends a suspicion; `took_effect` in the run's time, None: not yet."""

    symbol: str  # empty: of everything
    by: str
    why: str
    took_effect: str | None


class SuspicionBody(msgspec.Struct, frozen=True):
    """What is suspected of manipulation, what was, and what people have cleared, the newest first."""

    current: list[SuspectedBody]
    past: list[SuspectedBody]
    cleared: list[ClearedBody]


class ClearingBody(msgspec.Struct, frozen=True):
    """A suspicion that a person ends, and when that takes effect."""

    symbol: str
    by: str
    detail: str
