"""DORA: interruptions that the record shows, classified as far as it goes by the criteria of RTS 2024/1772."""

from htfi.domain.decision import PolicyOutcome
from htfi.domain.time import NS_PER_S
from htfi.governance.regulation.check import Check, CheckDefinition
from htfi.governance.regulation.findings import FindingLog, RuleRegime, Severity, Where
from htfi.governance.regulation.record import GovernanceRecord, RecordedDecision, RecordReader

HOUR_NS = 3600 * NS_PER_S
MAJOR_DURATION_NS = 24 * HOUR_NS  # RTS 2024/1772 art. 9(1)(a)
MAJOR_DOWNTIME_NS = 2 * HOUR_NS  # art. 9(1)(b): of services that support critical functions
MIN_WITHHELD = 20  # decisions in a row kept back, before that counts as an interruption
MAX_OPEN = 10_000
OUTSIDE = "clients, reputation, places, lost data and costs of an incident are not in the record"


class IncidentCheck(Check):
    """Stops, open breakers and runs of withheld decisions, each with its duration and class."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._open: dict[str, tuple[int, str]] = {}  # what → since, cause
        self._withheld: tuple[int, int, int] | None = None  # first ns, first entry, count
        self._num_incidents = 0
        self._last: tuple[int, int] = (0, 0)  # ns, entry

    def governance(self, entry: GovernanceRecord) -> None:
        scope, why = str(entry.fields.get("scope", "")), str(entry.fields.get("why", ""))
        self.log.judged()
        if entry.kind == "stopped" and len(self._open) < MAX_OPEN:
            self._open.setdefault(f"stop of {scope}", (entry.at_ns, why))
        elif entry.kind == "reenabled":
            self._close(f"stop of {scope}", entry.at_ns)
        elif entry.kind == "breaker":
            what = f"breaker {entry.fields.get('breaker', '')} of {scope}"
            if entry.fields.get("state") == "closed":
                self._close(what, entry.at_ns)
            elif len(self._open) < MAX_OPEN:
                self._open.setdefault(what, (entry.at_ns, str(entry.fields.get("evidence", ""))))

    def decision(self, recorded: RecordedDecision) -> None:
        at_ns = recorded.decision.as_of_ns
        self.log.judged()
        if recorded.decision.verdict.outcome is PolicyOutcome.WITHHOLD:
            first_ns, first, num = self._withheld or (at_ns, recorded.index, 0)
            self._withheld = (first_ns, first, num + 1)
        else:
            self._end_withheld(at_ns)
        self._last = (at_ns, recorded.index)

    def finish(self, end_ns: int) -> None:
        self._end_withheld(end_ns)
        for what in list(self._open):
            self._close(what, end_ns, is_over=False)
        if self._num_incidents:
            self.log.cannot_judge(OUTSIDE, self._num_incidents)

    def _end_withheld(self, at_ns: int) -> None:
        withheld, self._withheld = self._withheld, None
        if withheld is None or withheld[2] < MIN_WITHHELD:
            return
        first_ns, first, num = withheld
        self._report(f"{num:,} decisions in a row were withheld", first_ns, at_ns, (first, self._last[1]))

    def _close(self, what: str, at_ns: int, *, is_over: bool = True) -> None:
        opened = self._open.pop(what, None)
        if opened is not None:
            cause = f": {opened[1][:120]}" if opened[1] else ""
            state = "" if is_over else ", not ended when the record ends"
            self._report(f"{what}{cause}{state}", opened[0], at_ns)

    def _report(self, what: str, start_ns: int, end_ns: int, entries: tuple[int, ...] = ()) -> None:
        self._num_incidents += 1
        lasted_ns = end_ns - start_ns
        is_major = lasted_ns >= MAJOR_DOWNTIME_NS
        grade = "meets the criterion of duration" if is_major else "below the criterion of duration"
        self.log.found(
            Severity.REVIEW if is_major else Severity.NOTICE,
            f"{what}; {grade}",
            Where(start_ns, end_ns, entries=entries),
            {
                "hours": round(lasted_ns / HOUR_NS, 3),
                "downtime_over_2_h": int(is_major),
                "duration_over_24_h": int(lasted_ns >= MAJOR_DURATION_NS),
            },
        )


INCIDENT_CHECKS = (
    CheckDefinition(
        "incidents", "Incidents, by class",
        {RuleRegime.EU: "DORA art. 17–19; RTS 2024/1772 art. 9"},
        "decisions, governance: stopped, reenabled, breaker",
        "clients, reputation, geography, data losses and costs of an incident", IncidentCheck,
    ),
)  # fmt: skip
