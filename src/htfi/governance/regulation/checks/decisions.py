"""Checks on the decisions themselves: what the AI Act asks of logging, oversight and marking, and RTS 6 of changes.

Governance entries are read by their kind: a stop, a re-enabling, a bundle, a
breaker, a checkpoint, a verdict of the sandbox, an attestation by a person.
"""

from collections import OrderedDict

from htfi.domain.decision import Decision, PolicyOutcome
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.regulation.check import Check, CheckDefinition
from htfi.governance.regulation.findings import FindingLog, RuleRegime, Severity, Where
from htfi.governance.regulation.record import GovernanceRecord, MarkedFile, RecordedDecision, RecordReader

MAX_SERIES = 50_000
MAX_MODELS = 1_000
CHANGE_KINDS = frozenset(
    {
        "bundle_adopted",
        "bundle_activated",
        "model_promoted",
        "model_rolled_back",
        "sandbox_verdict",
        "attested",
    }
)
NO_GOVERNANCE = "the run has no governance log"
YEAR_NS = 365 * NS_PER_DAY


def where_of(recorded: RecordedDecision, start_ns: int = 0) -> Where:
    decision = recorded.decision
    return Where(
        start_ns or decision.as_of_ns,
        decision.as_of_ns,
        instrument=decision.symbol,
        entries=(recorded.index,),
    )


class LoggingCheck(Check):
    """Every decision is a record of its own: inputs by digest, settings, models, times that do not run backwards."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._newest: OrderedDict[str, int] = OrderedDict()

    def decision(self, recorded: RecordedDecision) -> None:
        decision = recorded.decision
        self.log.judged()
        missing = [
            name
            for name, value in (
                ("a digest of its inputs", decision.inputs.digest),
                ("the rows it was made from", decision.inputs.rows),
                ("its settings", decision.settings_digest),
                ("its models", decision.models),
            )
            if not value
        ]
        if missing:
            self.log.found(
                Severity.BREACH, f"the decision does not record {', '.join(missing)}", where_of(recorded)
            )
        if decision.amends:  # it is of the instant of its decision, which it amends or releases later
            return
        before = self._newest.get(decision.series, 0)
        if decision.as_of_ns < before:
            self.log.found(
                Severity.BREACH,
                "the decision is as of an earlier instant than the one recorded before it",
                where_of(recorded, before),
                {"back_s": (before - decision.as_of_ns) / NS_PER_S},
            )
        self._newest[decision.series] = max(before, decision.as_of_ns)
        self._newest.move_to_end(decision.series)
        if len(self._newest) > MAX_SERIES:
            self._newest.popitem(last=False)


class OversightCheck(Check):
    """People can stop the system and it stays stopped: nothing is released under a stop, and a person ends it."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._stops: dict[str, tuple[int, int]] = {}  # scope → index of the ledger's first decision, at
        self._has_log = False
        self._num_decisions = 0

    def governance(self, entry: GovernanceRecord) -> None:
        self._has_log = True
        scope = str(entry.fields.get("scope", ""))
        by, why = str(entry.fields.get("by", "")), str(entry.fields.get("why", ""))
        where = Where(entry.at_ns, entry.at_ns, scope=scope)
        if entry.kind == "stopped":
            self._stops.setdefault(scope, (_before(entry), entry.at_ns))
        elif entry.kind == "reenabled":
            self.log.judged()
            self._stops.pop(scope, None)
            if not by.strip() or not why.strip():
                self.log.found(Severity.BREACH, "a stop was ended without a named person and a reason", where)
        elif entry.kind == "checkpoint" and entry.fields.get("step") in ("approved", "denied"):
            self.log.judged()
            if not by.strip() or not entry.fields.get("seen"):
                self.log.found(
                    Severity.BREACH,
                    "a person's answer does not name the person and what the person saw",
                    where,
                )

    def decision(self, recorded: RecordedDecision) -> None:
        self._num_decisions += 1
        if not self._stops:
            if self._has_log:
                self.log.judged()
            return
        decision = recorded.decision
        stopped = next(
            (
                (scope, at_ns)
                for scope, (before, at_ns) in self._stops.items()
                if recorded.index >= before and _reaches(scope, decision)
            ),
            None,
        )
        self.log.judged()
        if stopped is not None and decision.verdict.outcome is not PolicyOutcome.WITHHOLD:
            self.log.found(
                Severity.BREACH,
                f"a forecast was released under the stop of {stopped[0]}",
                where_of(recorded, stopped[1]),
            )

    def finish(self, end_ns: int) -> None:
        del end_ns
        if not self._has_log and self._num_decisions:
            self.log.cannot_judge(
                f"{NO_GOVERNANCE}: no stop and no approval can be seen", self._num_decisions
            )
        elif self._num_decisions and not self.log.num_judged:
            self.log.cannot_judge(
                "the governance log begins after the decisions: no stop of their time can be seen",
                self._num_decisions,
            )
        if any(scope.startswith("desk:") for scope in self._stops):
            self.log.cannot_judge("which series belong to a desk is not in the record")


class GeneratedTextCheck(Check):
    """Generated text is attributable: its decision names the model, the seed and the tokens it was generated with."""

    def decision(self, recorded: RecordedDecision) -> None:
        view = recorded.decision.view
        if view is None or not view.words:
            return
        trace = view.trace
        if trace is None:
            if view.as_of_ns == recorded.decision.as_of_ns and view.reader:
                self.log.judged()
            return
        self.log.judged()
        if not view.reader or not trace.target or not trace.tokens:
            self.log.found(
                Severity.BREACH, "generated text whose model or tokens are not recorded", where_of(recorded)
            )


class ContentMarkingCheck(Check):
    """Files with generated text say so in a form that machines read."""

    def output(self, file: MarkedFile) -> None:
        self.log.judged()
        if not file.is_marked:
            self.log.found(
                Severity.BREACH,
                f"{file.name} holds generated text and is not marked in machine-readable form",
                Where(0, 0, scope=file.name),
            )


class ChangeCheck(Check):
    """Models, rules and settings change only with an entry of governance that says who changed what."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._settings = ""
        self._models: dict[str, str] = {}
        self._allowed = False

    def governance(self, entry: GovernanceRecord) -> None:
        if entry.kind in CHANGE_KINDS:
            self._allowed = True

    def decision(self, recorded: RecordedDecision) -> None:
        decision = recorded.decision
        self.log.judged()
        changed = [
            f"{name} from {self._models[name]} to {version}"
            for name, version in decision.models.items()
            if self._models.get(name, version) != version
        ]
        if self._settings and decision.settings_digest != self._settings:
            changed.append(f"settings from {self._settings[:12]} to {decision.settings_digest[:12]}")
        if changed and not self._allowed:
            self.log.found(
                Severity.REVIEW,
                f"changed without an entry of governance: {'; '.join(changed)[:300]}",
                where_of(recorded),
                {"changes": len(changed)},
            )
        if changed:
            self._allowed = False
        self._settings = decision.settings_digest
        for name, version in decision.models.items():
            if name in self._models or len(self._models) < MAX_MODELS:
                self._models[name] = version


class TestedCheck(Check):
    """What serves was tested in the sandbox before: a signed verdict names its digest."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._passed: set[str] = set()
        self._first: dict[str, RecordedDecision] = {}

    def governance(self, entry: GovernanceRecord) -> None:
        if (
            entry.kind == "sandbox_verdict"
            and not entry.fields.get("failed")
            and len(self._passed) < MAX_MODELS
        ):
            self._passed |= {str(entry.fields.get(name, "")) for name in ("digest", "candidate")}
            self._passed.discard("")

    def decision(self, recorded: RecordedDecision) -> None:
        view = recorded.decision.view
        if view is None or not view.reader or len(self._first) >= MAX_MODELS:
            return
        self._first.setdefault(view.reader, recorded)

    def finish(self, end_ns: int) -> None:
        del end_ns
        for reader, recorded in self._first.items():
            digest = reader.rpartition("@")[2]
            if not self._passed:
                self.log.cannot_judge("the governance log holds no verdict of the sandbox")
                continue
            self.log.judged()
            # A pair is tried and promoted under a digest of its own, which the decision names.
            promoted = recorded.decision.models.get(PROMOTED_MODELS, "").split(",")
            is_promoted = all(
                one and any(known.startswith(one) for known in self._passed) for one in promoted
            )
            if not is_promoted and not any(
                one == reader or digest in one or one in digest for one in self._passed
            ):
                self.log.found(
                    Severity.REVIEW,
                    f"{reader} serves, and no verdict of the sandbox names it",
                    where_of(recorded),
                )


class AttestationCheck(Check):
    """A duty that people fulfil outside the system, and attest in the governance log once a year."""

    subject = ""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._newest_ns = 0

    def governance(self, entry: GovernanceRecord) -> None:
        if entry.kind == "attested" and entry.fields.get("subject") == self.subject:
            self._newest_ns = max(self._newest_ns, entry.at_ns)

    def finish(self, end_ns: int) -> None:
        if not self._newest_ns:
            self.log.cannot_judge(f"the governance log holds no attestation of {self.subject}")
            return
        self.log.judged()
        if end_ns - self._newest_ns > YEAR_NS:
            self.log.found(
                Severity.BREACH,
                f"the newest attestation of {self.subject} is older than a year",
                Where(self._newest_ns, end_ns),
                {"age_days": (end_ns - self._newest_ns) // NS_PER_DAY},
            )


PROMOTED_MODELS = "promoted.models"  # among a decision's versions

SUBJECTS = (
    "annual-validation", "stress-test", "security-test", "continuity-test", "supervisory-review",
    "executive-certification",
)  # fmt: skip


class AnnualValidationCheck(AttestationCheck):
    """The annual self-assessment and validation."""

    subject = "annual-validation"


class StressTestCheck(AttestationCheck):
    """The stress test with twice the messages and twice the volume of the last six months' peak."""

    subject = "stress-test"


class AccessReviewCheck(AttestationCheck):
    """Security tests and limits to access."""

    subject = "security-test"


class ContinuityCheck(AttestationCheck):
    """The business continuity arrangements."""

    subject = "continuity-test"


class SupervisionCheck(AttestationCheck):
    """The supervisory review of algorithmic trading."""

    subject = "supervisory-review"


class CertificationCheck(AttestationCheck):
    """The chief executive's certification of the risk controls."""

    subject = "executive-certification"


def _before(entry: GovernanceRecord) -> int:
    before = entry.fields.get("before", 0)
    return before if isinstance(before, int) else 0


def _reaches(scope: str, decision: Decision) -> bool:
    """Desks are not known from the record, so that a desk's stop reaches nothing here."""
    level, _, name = scope.partition(":")
    if level == "firm":
        return True
    if level == "series":
        return name in (decision.series, decision.symbol)
    if level == "model":
        view = decision.view
        readers = {view.reader, f"reader.{decision.plan.rung.value}"} if view is not None else set[str]()
        return name in decision.forecast.weights or name in readers
    return False


_ATTESTED = "without an attestation in the governance log: the duty is fulfilled outside the system"

DECISION_CHECKS = (
    CheckDefinition(
        "ai-logging", "Every decision records its inputs, settings and models",
        {RuleRegime.EU: "AI Act art. 12, 19; RTS 6 art. 28"},
        "decisions", "without decisions in the span", LoggingCheck,
    ),
    CheckDefinition(
        "ai-oversight", "People can stop it, and it stays stopped",
        {RuleRegime.EU: "AI Act art. 14; RTS 6 art. 12(1)", RuleRegime.US: "FINRA 3110"},
        "decisions, governance: stopped, reenabled, checkpoint",
        "without a governance log; stops of a desk", OversightCheck,
    ),
    CheckDefinition(
        "generated-text", "Generated text is recorded with its model",
        {RuleRegime.EU: "AI Act art. 50(2), 12"},
        "decisions with a view in words", "where no text was generated", GeneratedTextCheck,
    ),
    CheckDefinition(
        "content-marking", "Generated content is marked for machines", {RuleRegime.EU: "AI Act art. 50(2)"},
        "files of the run", "without the folder of a run", ContentMarkingCheck,
    ),
    CheckDefinition(
        "change-control", "Changes are authorised",
        {RuleRegime.EU: "RTS 6 art. 11", RuleRegime.US: "FINRA 15-09 (code development); FINRA 3110"},
        "decisions, governance: bundles, sandbox_verdict, model_promoted, model_rolled_back, attested",
        "without decisions in the span",
        ChangeCheck,
    ),
    CheckDefinition(
        "tested-before-use", "What serves was tested before",
        {RuleRegime.EU: "RTS 6 art. 5–8", RuleRegime.US: "FINRA 15-09 (testing)"},
        "decisions with a reader, governance: sandbox_verdict", "without a verdict of the sandbox",
        TestedCheck,
    ),
    CheckDefinition(
        "annual-validation", "Annual self-assessment and validation", {RuleRegime.EU: "RTS 6 art. 9"},
        "governance: attested", _ATTESTED, AnnualValidationCheck,
    ),
    CheckDefinition(
        "stress-test", "Stress test at twice the six-month peak", {RuleRegime.EU: "RTS 6 art. 10"},
        "governance: attested", _ATTESTED, StressTestCheck,
    ),
    CheckDefinition(
        "continuity", "Business continuity arrangements", {RuleRegime.EU: "RTS 6 art. 14"},
        "governance: attested", _ATTESTED, ContinuityCheck,
    ),
    CheckDefinition(
        "security", "Security and limits to access", {RuleRegime.EU: "RTS 6 art. 18; DORA art. 24–25"},
        "governance: attested", _ATTESTED, AccessReviewCheck,
    ),
    CheckDefinition(
        "supervision", "Supervisory review of algorithmic trading",
        {RuleRegime.US: "FINRA 3110; SEC 15c3-5(e)(1)"}, "governance: attested", _ATTESTED, SupervisionCheck,
    ),
    CheckDefinition(
        "certification", "Annual certification by the chief executive", {RuleRegime.US: "SEC 15c3-5(e)(2)"},
        "governance: attested", _ATTESTED, CertificationCheck,
    ),
)  # fmt: skip
