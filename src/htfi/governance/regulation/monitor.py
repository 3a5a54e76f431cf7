"""Runs the checks over a record in one pass and gives their results."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from htfi.domain.orders import OrderEvent
from htfi.governance.regulation.check import Check, CheckDefinition
from htfi.governance.regulation.findings import CheckOutcome, Finding, FindingLog, RuleRegime, Unjudged
from htfi.governance.regulation.record import GovernanceRecord, MarkedFile, RecordedDecision, RecordReader

RecordItem = RecordedDecision | GovernanceRecord | OrderEvent


class CheckResult(msgspec.Struct, frozen=True):
    """What a check has judged and found, with the articles of the regimes that were asked for.

    Findings beyond the kept ones are counted in `num_found`.
    """

    id: str
    title: str
    articles: dict[RuleRegime, str]
    outcome: CheckOutcome
    num_judged: int
    num_found: int
    findings: list[Finding]
    unjudged: list[Unjudged]
    reads: str
    not_judged: str


class RecordCounts(msgspec.Struct, frozen=True):
    """How much was read, and from when to when (UTC ns; 0 where nothing was)."""

    num_decisions: int
    num_governance_entries: int
    num_order_events: int
    start_ns: int
    end_ns: int


class Span(msgspec.Struct, frozen=True):
    """From when to when findings count, UTC ns, the end excluded. What came before the start is read for its state."""

    start_ns: int = 0
    end_ns: int = 1 << 62


def item_time_ns(item: RecordItem) -> int:
    """When an item of the record was: of a decision the instant it is as of."""
    return item.decision.as_of_ns if isinstance(item, RecordedDecision) else item.at_ns


def run_checks(
    items: Iterable[RecordItem],
    definitions: Sequence[CheckDefinition],
    regimes: Collection[RuleRegime] = tuple(RuleRegime),
    span: Span | None = None,
    outputs: Sequence[MarkedFile] = (),
) -> tuple[list[CheckResult], RecordCounts]:
    """Judge the items, which come in order of time. Memory does not grow with their number."""
    span = span or Span()
    reader = RecordReader()
    chosen = [one for one in definitions if any(regime in one.articles for regime in regimes)]
    logs = [FindingLog(one.id) for one in chosen]
    checks = [one.make(log, reader) for one, log in zip(chosen, logs, strict=True)]
    of_decisions = [check.decision for check in checks if type(check).decision is not Check.decision]
    of_governance = [check.governance for check in checks if type(check).governance is not Check.governance]
    of_orders = [check.order for check in checks if type(check).order is not Check.order]
    for file in outputs:
        for check in checks:
            check.output(file)
    num_decisions = num_governance = num_orders = start_ns = end_ns = 0
    is_before = False
    for item in items:
        at_ns = item_time_ns(item)
        if at_ns >= span.end_ns:
            continue
        if (at_ns < span.start_ns) is not is_before:
            is_before = at_ns < span.start_ns
            for log in logs:
                log.is_muted = is_before
        if not is_before:
            start_ns = min(start_ns, at_ns) if start_ns else at_ns
            end_ns = max(end_ns, at_ns)
        if isinstance(item, RecordedDecision):
            num_decisions += not is_before
            for take in of_decisions:
                take(item)
        elif isinstance(item, GovernanceRecord):
            num_governance += not is_before
            for take in of_governance:
                take(item)
        else:
            num_orders += not is_before
            seen = reader.observe(item)
            for take in of_orders:
                take(seen)
    for log in logs:
        log.is_muted = False
    if reader.num_forgotten:
        for log in logs:
            log.cannot_judge("more open orders than can be followed at once", reader.num_forgotten)
    for check in checks:
        check.finish(end_ns)
    for check in checks:
        if not num_orders and _reads_orders_alone(check) and not (check.log.num_judged or check.log.unjudged):
            check.log.cannot_judge("the record has no order events of this span")
    results = [
        CheckResult(
            one.id, one.title,
            {regime: one.articles[regime] for regime in RuleRegime if regime in one.articles and regime in regimes},
            log.outcome, log.num_judged, log.num_found, log.findings, list(log.unjudged), one.reads, one.not_judged,
        )
        for one, log in zip(chosen, logs, strict=True)
    ]  # fmt: skip
    return results, RecordCounts(num_decisions, num_governance, num_orders, start_ns, end_ns)


def _reads_orders_alone(check: Check) -> bool:
    kind = type(check)
    return kind.order is not Check.order and kind.decision is Check.decision
