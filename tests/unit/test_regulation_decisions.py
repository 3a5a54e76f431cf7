"""Checks on decisions and governance entries: logging, oversight, changes, incidents, duties that people attest."""

from collections.abc import Sequence
from hashlib import sha256

import pytest
from msgspec.structs import replace

from htfi.domain.decision import Decision, PolicyOutcome, PolicyVerdict, Receipt
from htfi.domain.governance import BreakerState
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.control.entries import (
    Attested,
    BreakerMoved,
    BundleAdopted,
    CheckpointMoved,
    Reenabled,
    StopCause,
    Stopped,
    encode_governance,
)
from htfi.governance.regulation.checks.decisions import PROMOTED_MODELS, SUBJECTS
from htfi.governance.regulation.findings import CheckOutcome, Severity
from htfi.governance.regulation.record import (
    GovernanceRecord,
    MarkedFile,
    RecordedDecision,
    governance_record,
)
from order_streams import found, is_clear, judge, new

HOUR_NS = 3_600 * NS_PER_S


def recorded(decisions: Sequence[Decision]) -> list[RecordedDecision]:
    leaves = (sha256(one.id.encode()).hexdigest() for one in decisions)
    return [
        RecordedDecision(index, leaf, one)
        for index, (leaf, one) in enumerate(zip(leaves, decisions, strict=True))
    ]


def entry(change: object, index: int = 0) -> GovernanceRecord:
    record = governance_record(index, encode_governance(change))  # type: ignore[arg-type]
    assert record is not None
    return record


def stopped(at_ns: int, before: int, scope: str = "firm") -> GovernanceRecord:
    return entry(Stopped(at_ns, before, scope, "Ann Lee", "a test", StopCause.COMMAND, "r1"))


def reenabled(at_ns: int, before: int, by: str = "Bob", scope: str = "firm") -> GovernanceRecord:
    return entry(Reenabled(at_ns, before, scope, by, "checked", "r2"))


@pytest.fixture
def items(make_decisions) -> list[RecordedDecision]:
    return recorded(make_decisions(30))


def changed(item: RecordedDecision, **fields) -> RecordedDecision:
    return RecordedDecision(item.index, item.leaf_hash, replace(item.decision, **fields))


def test_decisions_record_what_they_were_made_from(items) -> None:
    assert is_clear("ai-logging", items)
    bare = replace(items[3].decision.inputs, digest="")
    assert found("ai-logging", [*items[:3], changed(items[3], inputs=bare, models={})]) == [
        "the decision does not record a digest of its inputs, its models"
    ]
    assert "earlier instant" in found("ai-logging", [items[5], items[2]])[0]


@pytest.mark.parametrize("ending", ["amended", "released"])
def test_what_amends_or_releases_a_decision_later_is_of_its_instant(items, ending: str) -> None:
    first = items[2].decision
    late = changed(items[2], id=f"{first.id}/{ending}", amends=first.id)
    assert is_clear("ai-logging", [*items[:6], late])


def test_orders_act_on_a_decision_that_stands_in_the_ledger(items) -> None:
    second, after_s = items[1], 1.0
    linked = [new("o", after_s, decision=Receipt(1, second.leaf_hash))]
    assert is_clear("decision-link", [*items, *linked])
    assert "another leaf hash" in found("decision-link", [*items, new("o", 1, decision=Receipt(1, "00"))])[0]
    late = new("o", 1, decision=Receipt(99, second.leaf_hash))
    assert "not in the ledger before it" in found("decision-link", [*items, late])[0]
    assert "name no decision" in found("decision-link", [*items, *linked, new("p", 2)])[0]
    assert judge("decision-link", [*items, new("p", 2)]).outcome is CheckOutcome.NOT_JUDGED
    assert [one.reason for one in judge("decision-link", items).unjudged] == ["no order was sent in the span"]
    before_span = [*items[5:], new("o", 1, decision=Receipt(1, second.leaf_hash))]
    assert (
        judge("decision-link", before_span).unjudged[0].reason
        == "the decision of an order lies before the span"
    )


def test_nothing_is_released_under_a_stop(items) -> None:
    at_ns = items[9].decision.as_of_ns
    withheld = [
        changed(item, verdict=PolicyVerdict(PolicyOutcome.WITHHOLD, ["stop"]))
        if 10 <= item.index < 20
        else item
        for item in items
    ]
    again_ns = items[19].decision.as_of_ns
    stop, end = stopped(at_ns, 10), reenabled(again_ns, 20)
    assert is_clear("ai-oversight", [*withheld[:10], stop, *withheld[10:20], end, *withheld[20:]])
    released = judge("ai-oversight", [*items[:10], stop, *items[10:12]])
    assert [one.where.entries for one in released.findings] == [(10,), (11,)]
    assert released.findings[0].severity is Severity.BREACH
    other = stopped(at_ns, 10, "series:OTHER/1d")
    assert is_clear("ai-oversight", [*items[:10], other, *items[10:12]])


def test_a_stop_is_ended_by_a_named_person(items) -> None:
    stop = stopped(items[0].decision.as_of_ns, 1)
    assert "without a named person" in found("ai-oversight", [stop, reenabled(2, 1, by=" ")])[0]
    assert judge("ai-oversight", items).unjudged[0].reason.startswith("the run has no governance log")
    late = stopped(items[-1].decision.as_of_ns + 1, len(items))
    (reason,) = judge("ai-oversight", [*items, late]).unjudged
    assert (reason.reason.split(":")[0], reason.num) == (
        "the governance log begins after the decisions", len(items),
    )  # fmt: skip


def test_an_approval_names_the_person_and_what_was_seen(items) -> None:
    def approval(by: str, seen: str) -> GovernanceRecord:
        return entry(CheckpointMoved(1, 0, items[0].decision.id, "approved", by=by, why="fine", seen=seen))

    assert is_clear("ai-oversight", [approval("Ann", "ab" * 32)])
    assert len(found("ai-oversight", [approval("", "ab" * 32), approval("Ann", "")])) == 2


def test_changes_need_an_entry_of_governance(items) -> None:
    later = [changed(item, settings_digest="f" * 64) for item in items[10:]]
    assert is_clear("change-control", items)
    assert "settings from" in found("change-control", [*items[:10], *later])[0]
    adopted = entry(BundleAdopted(items[9].decision.as_of_ns, 10, "ab" * 32, 1, "bundle"))
    assert is_clear("change-control", [*items[:10], adopted, *later])
    name = next(iter(items[0].decision.models))
    model = [changed(item, models={**item.decision.models, name: "other/9"}) for item in items[10:]]
    assert f"{name} from" in found("change-control", [*items[:10], *model])[0]


def test_what_serves_has_a_verdict_that_it_passed(items) -> None:
    view = NewsView(1.0, 1.0, 1.0, 0.5, ("n1",), 1, 1, reader="target-int8@0123456789ab")
    served = [changed(item, view=view) for item in items]

    def verdict(digest: str, failed: str = "[]") -> GovernanceRecord:
        data = f'{{"kind":"sandbox_verdict","at_ns":1,"candidate":"m","digest":"{digest}","failed":{failed}}}'
        record = governance_record(0, data.encode())
        assert record is not None
        return record

    assert is_clear("tested-before-use", [verdict("0123456789ab" + "c" * 52), *served])
    assert "no verdict of the sandbox names it" in found("tested-before-use", [verdict("f" * 64), *served])[0]
    assert judge("tested-before-use", [verdict("0123456789ab", '["slow"]'), *served]).unjudged
    assert judge("tested-before-use", served).outcome is CheckOutcome.NOT_JUDGED


def test_promoted_pair_is_tested_under_the_digest_that_decisions_name(items) -> None:
    def verdict(digest: str, at_ns: int = 1) -> GovernanceRecord:
        text = (
            f'{{"kind":"sandbox_verdict","at_ns":{at_ns},"digest":"{digest}","candidate":"pair","failed":[]}}'
        )
        record = governance_record(0, text.encode())
        assert record is not None
        return record

    def served(promoted: str) -> list[RecordedDecision]:
        view = NewsView(1.0, 1.0, 1.0, 0.5, ("n1",), 1, 1, reader="target-int8@0123456789ab")
        return [changed(item, view=view, models={PROMOTED_MODELS: promoted}) for item in items]

    pair, second = "d" * 64, "e" * 64
    assert is_clear("tested-before-use", [verdict(pair), *served(pair[:12])])
    assert is_clear(
        "tested-before-use", [verdict(pair), verdict(second), *served(f"{pair[:12]},{second[:12]}")]
    )
    assert found("tested-before-use", [verdict(pair), *served(f"{pair[:12]},{second[:12]}")])


def test_attested_duties_are_judged_by_their_age(items) -> None:
    end_ns = items[-1].decision.as_of_ns

    def attested(days: int, subject: str = "annual-validation") -> GovernanceRecord:
        return entry(Attested(end_ns - days * NS_PER_DAY, 0, subject, "Ann Lee", "done"))

    assert is_clear("annual-validation", [attested(20), *items])
    assert "older than a year" in found("annual-validation", [attested(400), *items])[0]
    assert (
        judge("annual-validation", [attested(20, "stress-test"), *items]).outcome is CheckOutcome.NOT_JUDGED
    )


@pytest.mark.parametrize(
    ("check", "subject"),
    [
        ("annual-validation", "annual-validation"),
        ("stress-test", "stress-test"),
        ("continuity", "continuity-test"),
        ("security", "security-test"),
        ("supervision", "supervisory-review"),
        ("certification", "executive-certification"),
    ],
)
def test_each_duty_has_attestations_of_its_own(items, check: str, subject: str) -> None:
    end_ns = items[-1].decision.as_of_ns

    def attested(days: int, of: str) -> GovernanceRecord:
        return entry(Attested(end_ns - days * NS_PER_DAY, 0, of, "Ann Lee", "done"))

    others = [attested(1, one) for one in SUBJECTS if one != subject]
    assert len(others) == len(SUBJECTS) - 1
    assert judge(check, [*others, *items]).outcome is CheckOutcome.NOT_JUDGED
    assert is_clear(check, [attested(400, subject), attested(365, subject), *others, *items])
    assert f"of {subject} is older than a year" in found(check, [attested(367, subject), *others, *items])[0]


def test_incidents_have_a_duration_and_a_class(items) -> None:
    start_ns = items[0].decision.as_of_ns

    def breaker(at_ns: int, state: BreakerState) -> GovernanceRecord:
        return entry(BreakerMoved(at_ns, 0, "frozen_feed", "firm", state, 4.0, 3.0, "no quotes"))

    short = judge(
        "incidents", [breaker(start_ns, BreakerState.OPEN), breaker(start_ns + HOUR_NS, BreakerState.CLOSED)]
    )
    assert [(one.severity, one.evidence["downtime_over_2_h"]) for one in short.findings] == [
        (Severity.NOTICE, 0)
    ]
    long = judge("incidents", [stopped(start_ns, 0), reenabled(start_ns + 25 * HOUR_NS, 0)])
    assert [one.evidence["duration_over_24_h"] for one in long.findings] == [1]
    assert long.unjudged[0].reason.startswith("clients, reputation")
    assert is_clear("incidents", items)


def test_a_long_row_of_withheld_decisions_is_an_interruption(items) -> None:
    withheld = [changed(item, verdict=PolicyVerdict(PolicyOutcome.WITHHOLD, ["stale"])) for item in items]
    (what,) = found("incidents", withheld)
    assert what.startswith("30 decisions in a row were withheld")
    assert is_clear("incidents", [*withheld[:10], *items[10:]])


def test_files_with_generated_text_are_marked() -> None:
    marked, bare = MarkedFile("decisions.jsonl", True), MarkedFile("report.html", False)
    assert judge("content-marking", [], outputs=[marked]).outcome is CheckOutcome.NOTHING_FOUND
    assert len(judge("content-marking", [], outputs=[marked, bare]).findings) == 1


def test_what_is_no_governance_entry_is_left_out() -> None:
    assert governance_record(0, b"\xff") is None
    assert governance_record(0, b'{"kind":3,"at_ns":1}') is None
    assert governance_record(0, b'{"kind":"stopped"}') is None
