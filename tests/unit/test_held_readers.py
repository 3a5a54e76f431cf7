"""A stopped or tripped reader: its view does not count, the numbers alone decide, and auditors derive that again."""

from functools import lru_cache
from typing import Any

import pytest
from msgspec.structs import replace
from test_pipeline_loop import days

from htfi.domain.decision import Decision, PolicyOutcome, Rung
from htfi.domain.events import News
from htfi.domain.governance import BreakerState, GovernanceFacts, HoldKind
from htfi.domain.news_view import NewsView, ViewPart
from htfi.domain.time import NS_PER_DAY
from htfi.governance.control.entries import (
    BreakerMoved,
    GovernanceEntry,
    StopCause,
    Stopped,
    encode_governance,
)
from htfi.governance.control.state import (
    ControlState,
    HoldSubject,
    apply,
    holds_on,
    readers_of,
    view_holds_on,
)
from htfi.governance.policy import judge
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.pipeline.weighing import forecast_problems, numeric_quantiles
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override
from memory_run import ListFeed, MemoryLedger, MemoryOutlet

SETTINGS = override(load_settings(environment={}), "narrative", symbol_names={"A": "Zorvane"})
HEADLINE = "Zorvane cuts its full-year outlook as sales slump"


def stopped(scope: str) -> Stopped:
    return Stopped(1, 0, scope, "Ann", "a drill", StopCause.COMMAND, "stop-1")


def tripped(scope: str) -> BreakerMoved:
    return BreakerMoved(
        1, 0, "views_shift", scope, BreakerState.OPEN, 9.0, 5.0, "views are not the usual ones"
    )


def run(*entries: GovernanceEntry) -> tuple[list[Decision], list[str]]:
    """The decisions of a run over one item of news, and what an auditor finds."""
    log = NoGovernanceLog([(encode_governance(entry), "leaf") for entry in entries])
    items = list(days("A"))
    item = News(items[-4].available_at_ns - NS_PER_DAY // 2, 0, "wire", 1, "n1", HEADLINE, ("A",))
    items.insert(len(items) - 4, replace(item, event_time_ns=item.available_at_ns))
    ledger = MemoryLedger([])
    governance = RunGovernance(SETTINGS.policy, log)
    build_loop(SETTINGS, ListFeed(items), ledger, MemoryOutlet([]), governance=governance).run(lambda: None)
    decisions = [decode_entry(entry) for entry in ledger.entries]
    auditor = GovernanceAuditor(SETTINGS.policy, log.recorded())
    return decisions, [found for one in decisions for found in auditor.problems(one) + forecast_problems(one)]


@lru_cache(maxsize=1)
def free_run() -> list[Decision]:
    return [one for one in run()[0] if one.view is not None and one.forecast.tilt is not None]


def facts(decision: Decision) -> GovernanceFacts:
    assert isinstance(decision.governance, GovernanceFacts)
    return decision.governance


def names() -> list[str]:
    view = free_run()[0].view
    assert view is not None
    return [view.reader, view.parts[0].reader, f"reader.{free_run()[0].plan.rung.value}"]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["version", "part", "rung"])
@pytest.mark.parametrize("cause", [stopped, tripped])
def test_the_numbers_alone_decide_where_a_reader_is_held(place: int, cause: Any) -> None:
    decisions, problems = run(cause(f"model:{names()[place]}"))
    held = [one for one in decisions if one.view is not None]
    assert len(held) >= len(free_run()) > 0
    assert problems == []
    assert {one.verdict.outcome for one in held} == {PolicyOutcome.CAUTION}
    for one in held:
        assert one.forecast.tilt is None
        assert one.forecast.quantiles == numeric_quantiles(one.forecast)
        assert one.verdict.reasons[-1].endswith(": the view does not count, the numbers alone decide")
        assert facts(one).holds == ()
        assert decode_entry(encode_entry(one)) == one
        assert judge(one, SETTINGS.policy) == one.verdict


def test_where_the_experts_are_held_too_nothing_is_trusted_and_the_decision_is_withheld() -> None:
    decisions, problems = run(stopped(f"model:{names()[0]}"), tripped("model:ewma"))
    held = [one for one in decisions if one.view is not None]
    assert len(held) > 0
    assert {one.verdict.outcome for one in held} == {PolicyOutcome.WITHHOLD}
    assert problems == []


def test_a_view_that_was_weighed_before_its_reader_was_held_withholds_the_decision() -> None:
    state = apply(ControlState(), stopped("model:target"))
    subject = HoldSubject("A/1d", ("ewma",), readers=("target",), is_view_weighed=True)
    assert [hold.kind for hold in holds_on(state, subject)] == [HoldKind.STOP]
    unweighed = subject._replace(is_view_weighed=False)
    assert holds_on(state, unweighed) == ()
    assert [hold.scope for hold in view_holds_on(state, unweighed)] == ["model:target"]


def test_what_a_view_was_set_aside_for_stands_though_its_breaker_closes_at_that_very_point() -> None:
    closed = replace(tripped("model:target"), before=1, state=BreakerState.CLOSED)
    log = NoGovernanceLog([(encode_governance(one), "leaf") for one in (tripped("model:target"), closed)])
    governance = RunGovernance(SETTINGS.policy, log)
    subject = HoldSubject("A/1d", ("ewma",), readers=("target",))
    held = governance.view_holds(0, subject)
    assert [hold.scope for hold in held] == ["model:target"]
    subject = subject._replace(set_aside=held)
    facts = governance.facts(1, 2, lambda _: subject, lambda _: [True, True], {1})
    found = [facts.at(place) for place in range(2)]
    assert [isinstance(one, GovernanceFacts) and one.set_aside for one in found] == [(), held]
    weighed = governance.fact(1, subject._replace(is_view_weighed=True))
    assert isinstance(weighed, GovernanceFacts)
    assert weighed.set_aside == ()


def test_an_auditor_finds_a_view_that_counts_though_its_reader_is_held_and_one_that_was_set_aside() -> None:
    entry = stopped(f"model:{names()[0]}")
    decisions, _ = run(entry)
    place = next(place for place, one in enumerate(decisions) if one.view is not None)
    free = free_run()[0]
    weighed = replace(decisions[place], forecast=free.forecast)
    assert "the change of the forecast does not follow from the view" in forecast_problems(weighed)
    log = [(encode_governance(entry), "leaf")]
    auditor = GovernanceAuditor(SETTINGS.policy, log)
    for one in decisions[:place]:
        auditor.problems(one)
    assert auditor.problems(weighed) == [
        "what it states of governance does not follow from the governance log"
    ]
    unheld = replace(decisions[place], governance=free.governance)
    assert "the change of the forecast does not follow from the view" in forecast_problems(unheld)


def test_scopes_name_the_readers_of_a_views_parts() -> None:
    part = ViewPart("facts", 1.0, 1.0, 1.0, 0.5, ("n1",), 0, 1)
    view = NewsView(1.0, 1.0, 1.0, 0.5, ("n1",), 0, 1, reader="target, with facts", parts=(part,))
    assert readers_of(view, Rung.EDGE) == {"reader.edge", "target, with facts", "facts"}
    assert readers_of(None, Rung.EDGE) == frozenset()
