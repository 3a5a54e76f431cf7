"""Where the reader of a rung is held the next lower one that is trusted reads; auditors derive the rung again."""

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from test_held_readers import SETTINGS, stopped, tripped
from test_pipeline_loop import days
from test_pipeline_reading import Recording

from htfi.domain.decision import Decision, PolicyOutcome, Rung
from htfi.domain.events import News
from htfi.domain.governance import BreakerState, GovernanceFacts, Hold, HoldKind
from htfi.domain.plan import PlanReason
from htfi.domain.time import NS_PER_DAY
from htfi.governance.control.entries import (
    BreakerMoved,
    GovernanceEntry,
    Reenabled,
    decode_governance,
    encode_governance,
)
from htfi.governance.control.requests import ReenableRequest, StopRequest
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.audit.recompute import check_entry
from htfi.pipeline.governance_ports import NoGovernanceLog, RequestQueue
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.scheduling.fidelity import is_watched
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import Settings, override
from memory_run import ListFeed, MemoryLedger, MemoryOutlet

UNWATCHED = next(name for number in range(100) if not is_watched(name := f"n{number}"))
WATCHED = next(name for number in range(100) if is_watched(name := f"n{number}"))
TARGET, DRAFT = "model:speculative/1", "model:edge/1"


class HeldRun:
    """A run over one item of news with readers at three rungs, and what an auditor finds."""

    def __init__(
        self,
        *entries: GovernanceEntry,
        item: str = UNWATCHED,
        ledger: MemoryLedger | None = None,
        log: NoGovernanceLog | None = None,
        queue: RequestQueue | None = None,
        target: Recording | None = None,
        settings: Settings = SETTINGS,
    ) -> None:
        self.log = log or NoGovernanceLog([(encode_governance(entry), "leaf") for entry in entries])
        self.readers = {rung: Recording(f"{rung.value}/1") for rung in (Rung.TEMPLATE, Rung.EDGE)}
        self.readers[Rung.SPECULATIVE] = target or Recording("speculative/1")
        items = list(days("A"))
        at_ns = items[-4].available_at_ns - NS_PER_DAY // 2
        items.insert(len(items) - 4, News(at_ns, at_ns, "wire", 1, item, "Zorvane cuts its outlook", ("A",)))
        self.ledger = ledger or MemoryLedger([])
        governance = RunGovernance(SETTINGS.policy, self.log, queue)
        build_loop(
            settings,
            ListFeed(items),
            self.ledger,
            MemoryOutlet([]),
            readers=self.readers,
            governance=governance,
        ).run(lambda: None)
        self.decisions = [decode_entry(entry) for entry in self.ledger.entries]

    @property
    def first(self) -> Decision:
        """The first decision with news."""
        return next(one for one in self.decisions if one.view is not None)

    def problems(self, changed: Decision | None = None, max_group: int = 1) -> list[str]:
        auditor = GovernanceAuditor(SETTINGS.policy, self.log.recorded(), max_group=max_group)
        entries = [
            encode_entry(changed) if changed is not None and changed.id == one.id else entry
            for one, entry in zip(self.decisions, self.ledger.entries, strict=True)
        ]
        digest = self.first.settings_digest
        return [
            problem
            for entry in entries
            for problem in check_entry(
                entry, digest, SETTINGS.policy, fidelity=SETTINGS.scheduling, governance=auditor
            )
        ]


@pytest.mark.parametrize("cause", [stopped, tripped])
@pytest.mark.parametrize("name", [TARGET, "model:reader.speculative"])
def test_the_draft_reads_where_the_target_is_held_and_its_view_counts(cause: Any, name: str) -> None:
    run = HeldRun(cause(name))
    found = run.first
    assert (found.plan.rung, found.plan.reasons) == (Rung.EDGE, (PlanReason.NORMAL, PlanReason.HELD))
    assert found.plan.inputs is not UNSET
    assert found.plan.inputs.held == (Rung.SPECULATIVE,)
    assert found.forecast.tilt is not None
    assert found.verdict.outcome is not PolicyOutcome.WITHHOLD
    assert run.readers[Rung.SPECULATIVE].asked == []
    assert run.problems() == []


def test_where_no_model_is_trusted_the_lowest_rung_remains() -> None:
    run = HeldRun(stopped(TARGET), replace(stopped(DRAFT), request="stop-2"))
    assert run.first.plan.rung is Rung.TEMPLATE
    assert [run.readers[rung].asked for rung in (Rung.EDGE, Rung.SPECULATIVE)] == [[], []]
    assert run.problems() == []


def test_the_target_reads_where_the_draft_alone_is_held() -> None:
    run = HeldRun(tripped(DRAFT))
    assert (run.first.plan.rung, run.first.plan.reasons) == (Rung.SPECULATIVE, (PlanReason.NORMAL,))
    assert run.first.forecast.tilt is not None
    assert run.problems() == []


def test_a_reader_whose_breaker_is_open_is_watched_now_and_then_and_a_stopped_one_is_not() -> None:
    run = HeldRun(tripped(TARGET), item=WATCHED)
    assert (run.first.plan.rung, run.first.forecast.tilt) == (Rung.SPECULATIVE, None)
    assert len(run.readers[Rung.SPECULATIVE].asked) == 1
    assert run.problems() == []
    assert HeldRun(stopped(TARGET), item=WATCHED).first.plan.rung is Rung.EDGE


def test_a_reader_whose_breaker_is_half_open_reads_and_does_not_count() -> None:
    run = HeldRun(tripped(TARGET), replace(tripped(TARGET), state=BreakerState.HALF_OPEN))
    assert (run.first.plan.rung, run.first.forecast.tilt) == (Rung.SPECULATIVE, None)
    assert run.problems() == []


def test_a_run_made_again_takes_the_rungs_that_were_recorded() -> None:
    run = HeldRun(tripped(TARGET))
    again = HeldRun(tripped(TARGET), ledger=run.ledger)
    assert again.decisions == run.decisions


def test_an_auditor_finds_a_rung_that_is_left_out_without_a_hold_and_one_that_does_not_follow() -> None:
    run = HeldRun(tripped(TARGET))
    plan = run.first.plan
    assert plan.inputs is not UNSET
    unheld = replace(run.first, plan=replace(plan, inputs=replace(plan.inputs, held=UNSET)))
    assert "the rung edge does not follow from deadline and load" in run.problems(unheld)
    run.log = NoGovernanceLog([(encode_governance(tripped("model:other")), "leaf")])
    expected = (
        "it leaves out the reader of the rung speculative, which nothing in the governance log holds back"
    )
    assert expected in run.problems()


def test_a_hold_that_a_person_ended_while_the_decision_waited_is_no_problem_and_one_ended_before_is() -> None:
    run = HeldRun(tripped(TARGET))
    place = run.decisions.index(run.first)
    ended = Reenabled(2, place, TARGET, "Ann", "seen to", "reenable-1")
    held = run.log.recorded()
    run.log = NoGovernanceLog([*held, (encode_governance(ended), "leaf")])
    found = [one for one in run.problems() if "leaves out" in one]
    assert len(found) == sum(bool(one.plan.left_out) for one in run.decisions[place + 1 :]) > 1
    run.log = NoGovernanceLog([*held, (encode_governance(replace(ended, before=place - 1)), "leaf")])
    assert len([one for one in run.problems() if "leaves out" in one]) == len(found) + 1
    assert len([one for one in run.problems(max_group=2) if "leaves out" in one]) == len(found)


def test_an_auditor_finds_a_plan_that_does_not_leave_out_a_reader_that_is_held() -> None:
    run = HeldRun(tripped(TARGET))
    plan = run.first.plan
    assert plan.inputs is not UNSET
    unheld = replace(
        run.first,
        plan=replace(
            plan,
            rung=Rung.SPECULATIVE,
            reason_codes=(PlanReason.NORMAL,),
            inputs=replace(plan.inputs, held=UNSET),
        ),
    )
    expected = "it does not leave out the reader of the rung speculative, which the governance log holds back"
    assert expected in run.problems(unheld)
    late = replace(tripped(TARGET), before=run.decisions.index(run.first), at_ns=run.first.as_of_ns)
    run.log = NoGovernanceLog([(encode_governance(late), "leaf")])
    assert expected not in run.problems(unheld)  # it trips at this very point
    run.log = NoGovernanceLog([(encode_governance(replace(late, at_ns=late.at_ns - 1)), "leaf")])
    assert expected in run.problems(unheld)


def test_a_ledger_from_before_left_out_readers_were_recorded_is_told_by_what_it_does_instead() -> None:
    run = HeldRun(tripped(TARGET))
    free = HeldRun().first
    hold = Hold(HoldKind.BREAKER, TARGET, "views_shift is open: views are not the usual ones")
    governed = run.first.governance
    assert isinstance(governed, GovernanceFacts)
    older = replace(run.first, plan=free.plan, governance=replace(governed, view_holds=(hold,)))
    (found,) = [one for one in run.problems(older) if "does not leave out" in one]
    assert found.endswith(
        "holds back; its view is set aside instead, as by development versions of htfi 0.1.0 before commit 9842f199, "
        "which did not record the readers that are left out: such a ledger cannot be derived again by this version, "
        "but by the one that made it; all else of it is verified without --recompute"
    )


def test_an_auditor_finds_a_view_that_is_kept_though_its_reader_is_held() -> None:
    free = HeldRun()
    place = next_with_news(free)
    run = HeldRun(replace(stopped(TARGET), before=place - 1))
    kept = replace(
        free.decisions[place],
        governance=run.decisions[place].governance,
        verdict=run.decisions[place].verdict,
    )
    expected = "it keeps the view of the reader of the rung speculative, which the governance log holds back"
    assert expected in run.problems(kept)
    assert expected not in run.problems()


def test_a_run_made_again_weighs_the_view_whose_reader_was_stopped_before_it_was_recorded() -> None:
    queue, ledger, log = RequestQueue(), MemoryLedger([]), NoGovernanceLog()

    class Stopping(Recording):
        def read(self, questions: Any, deadline_ms: float) -> Any:
            queue.push(StopRequest("stop-1", 5, TARGET, "Ann", "a drill"))
            return super().read(questions, deadline_ms)

    run = HeldRun(ledger=ledger, log=log, queue=queue, target=Stopping("speculative/1"))
    assert (run.first.plan.rung, run.first.verdict.outcome) == (Rung.SPECULATIVE, PolicyOutcome.WITHHOLD)
    assert run.first.forecast.tilt is not None
    assert run.problems(max_group=SETTINGS.pipeline.group_entries) == []
    again = HeldRun(ledger=ledger, log=NoGovernanceLog(log.recorded()))
    assert again.decisions == run.decisions


def next_with_news(run: HeldRun) -> int:
    """The place of the second decision with a view: it keeps the view of the first."""
    return [place for place, one in enumerate(run.decisions) if one.view is not None][1]


@pytest.mark.parametrize("cause", [stopped, tripped])
def test_news_that_a_reader_had_read_before_it_was_held_is_read_by_the_next_lower_one(cause: Any) -> None:
    place = next_with_news(HeldRun())
    run = HeldRun(replace(cause(TARGET), before=place))
    before, after = run.decisions[place - 1], run.decisions[place]
    assert (before.plan.rung, after.plan.rung) == (Rung.SPECULATIVE, Rung.EDGE)
    assert PlanReason.HELD in after.plan.reasons
    assert after.forecast.tilt is not None
    assert [len(run.readers[rung].asked) for rung in (Rung.SPECULATIVE, Rung.EDGE)] == [1, 1]
    assert run.problems() == []


def test_once_a_person_has_re_enabled_a_reader_it_reads_what_another_had_read_for_it() -> None:
    place = next_with_news(HeldRun())
    ended = Reenabled(2, place + 1, TARGET, "Ann", "seen to", "reenable-1")
    run = HeldRun(replace(stopped(TARGET), before=place), ended)
    rungs = [one.plan.rung for one in run.decisions[place - 1 : place + 2]]
    assert rungs == [Rung.SPECULATIVE, Rung.EDGE, Rung.SPECULATIVE]
    assert run.problems() == []


def test_a_view_that_was_read_before_every_reader_was_held_is_left_to_the_lowest_rung() -> None:
    place = next_with_news(HeldRun())
    run = HeldRun(
        replace(stopped(TARGET), before=place), replace(stopped(DRAFT), before=place, request="stop-2")
    )
    after = run.decisions[place]
    assert after.plan.rung is Rung.TEMPLATE
    assert after.view is not None
    assert after.view.reader.startswith("facts ")
    assert after.forecast.tilt is not None
    assert run.problems() == []


def test_a_run_made_again_keeps_the_view_of_a_decision_that_was_planned_before_its_reader_was_stopped() -> (
    None
):
    place = next_with_news(HeldRun())
    ledger, log = MemoryLedger([]), NoGovernanceLog()

    class AtCommit(RequestQueue):
        """Asks for a stop after the decision at `place` was planned, before it is recorded."""

        num_asked = 0

        @property
        def has_new(self) -> bool:
            self.num_asked += ledger.size == place
            if self.num_asked == 2:
                self.push(StopRequest("stop-1", 5, TARGET, "Ann", "a drill"))
            return super().has_new

    at_once = override(SETTINGS, "pipeline", group_ms=0.0)
    run = HeldRun(ledger=ledger, log=log, queue=AtCommit(), settings=at_once)
    assert [one.plan.rung for one in run.decisions[place : place + 2]] == [Rung.SPECULATIVE, Rung.EDGE]
    assert run.decisions[place].verdict.outcome is PolicyOutcome.WITHHOLD
    assert run.problems() == []
    again = HeldRun(ledger=ledger, log=NoGovernanceLog(log.recorded()))
    assert again.decisions == run.decisions


def test_a_view_stays_set_aside_where_its_hold_ends_while_the_decision_waits() -> None:
    queue, ledger = RequestQueue(), MemoryLedger([])
    log = NoGovernanceLog([(encode_governance(tripped(TARGET)), "leaf")])

    class Reenabling(Recording):
        """Has a person end the hold while the news is read."""

        def read(self, questions: Any, deadline_ms: float) -> Any:
            queue.push(ReenableRequest("re-1", 5, TARGET, "Ann", "seen to"))
            return super().read(questions, deadline_ms)

    run = HeldRun(item=WATCHED, ledger=ledger, log=log, queue=queue, target=Reenabling("speculative/1"))
    place = run.decisions.index(run.first)
    assert [type(decode_governance(entry)) for entry, _ in log.recorded()] == [BreakerMoved, Reenabled]
    assert (run.first.plan.rung, run.first.forecast.tilt) == (Rung.SPECULATIVE, None)
    assert run.first.verdict.outcome is PolicyOutcome.CAUTION
    assert "the view does not count" in run.first.verdict.reasons[-1]
    assert run.decisions[place + 1].forecast.tilt is not None
    assert run.problems(max_group=SETTINGS.pipeline.group_entries) == []
    again = HeldRun(item=WATCHED, ledger=ledger, log=NoGovernanceLog(log.recorded()))
    assert again.decisions == run.decisions


def test_an_auditor_finds_a_view_that_is_set_aside_for_nothing() -> None:
    run = HeldRun(tripped("model:other"))
    first = run.first
    assert isinstance(first.governance, GovernanceFacts)
    hold = Hold(HoldKind.BREAKER, TARGET, "views_shift is open: views are not the usual ones")
    forged = replace(first, governance=replace(first.governance, view_holds=(hold,)))
    expected = "its view is set aside, though nothing in the governance log holds its readers so"
    assert expected in run.problems(forged)
    run.log = NoGovernanceLog([(encode_governance(tripped(TARGET)), "leaf")])
    assert expected not in run.problems(forged)
