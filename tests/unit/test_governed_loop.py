"""Governance on the main path, in memory: what is held back from where on, what is logged, what a rerun does."""

import pytest
from test_pipeline_loop import days

from htfi.domain.decision import Decision, PolicyOutcome
from htfi.domain.errors import IntegrityError, InvalidInput, LedgerUnavailable
from htfi.domain.events import FeedItem
from htfi.domain.governance import BreakerState, GovernanceFacts, HoldKind, parse_scope
from htfi.governance.bundles.bundle import BundleHead, BundleKind, write_bundle
from htfi.governance.bundles.tables import BundleTables, DesksConfig, PermittedModels
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import (
    BreakerMoved,
    BundleAdopted,
    StopCause,
    Stopped,
    decode_governance,
)
from htfi.governance.control.requests import BundleOffer, ControlRequest, ReenableRequest, StopRequest
from htfi.governance.control.state import ControlState, HoldSubject, apply, holds_on
from htfi.governance.policy import judge
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.governance_ports import NoGovernanceLog, RequestQueue
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override
from memory_run import ListFeed, MemoryLedger, MemoryOutlet


def stop(scope: str = "firm", name: str = "stop-1") -> StopRequest:
    return StopRequest(name, 5, scope, "Ann", "a drill")


class GovernedRun:
    """A run over daily bars of two symbols, in memory, with its governance."""

    def __init__(
        self, log: NoGovernanceLog | None = None, ledger: MemoryLedger | None = None, group_ms: float = 0.0
    ) -> None:
        self.log, self.queue = log or NoGovernanceLog(), RequestQueue()
        self.settings = override(load_settings(environment={}), "pipeline", group_ms=group_ms)
        self.governance = RunGovernance(self.settings.policy, self.log, self.queue)
        self.ledger, self.outlet = ledger or MemoryLedger([]), MemoryOutlet([])
        self.items: list[FeedItem] = days("A", "B")
        self.loop: DecisionLoop = build_loop(
            self.settings, ListFeed(self.items), self.ledger, self.outlet, governance=self.governance
        )

    def go(self, asked: dict[int, ControlRequest] | None = None) -> list[Decision]:
        """Run to the end; `asked` by the number of entries that the ledger then holds at least."""
        waiting = dict(asked or {})

        def ask() -> None:
            for size in [size for size in waiting if self.ledger.size >= size]:
                self.queue.push(waiting.pop(size))

        self.loop.run(ask)
        assert not waiting, "everything was asked"
        return [decode_entry(entry) for entry in self.ledger.entries]

    def audit(self) -> list[str]:
        auditor = GovernanceAuditor(self.settings.policy, self.log.recorded())
        return [problem for entry in self.ledger.entries for problem in auditor.problems(decode_entry(entry))]


def held(decisions: list[Decision]) -> list[int]:
    return [place for place, one in enumerate(decisions) if one.verdict.outcome is PolicyOutcome.WITHHOLD]


def test_a_run_without_governance_records_nothing_of_it() -> None:
    run = GovernedRun()
    decisions = run.go()
    assert len(decisions) == 42
    assert [one.governance for one in decisions].count(decisions[0].governance) == 42
    assert b"governance" not in run.ledger.entries[0]
    assert isinstance(decisions[0].governance, GovernanceFacts) is False


def test_a_stop_withholds_from_the_next_decision_on_until_a_named_person_ends_it() -> None:
    run = GovernedRun()
    decisions = run.go({10: stop(), 20: ReenableRequest("re-1", 9, "firm", "Bob", "looked at")})
    assert held(decisions) == list(range(10, 20))
    assert decisions[10].verdict.reasons == ["governance: stop of firm: command by Ann: a drill"]
    assert [decode_governance(entry).before for entry, _ in run.log.recorded()] == [10, 20]
    assert run.audit() == []


def test_a_stop_of_a_series_reaches_no_other_one() -> None:
    decisions = GovernedRun().go({10: stop("series:A")})
    assert held(decisions) == [
        place for place, one in enumerate(decisions) if one.symbol == "A" and place >= 10
    ]


def test_a_stop_of_a_model_reaches_the_decisions_that_used_it() -> None:
    assert held(GovernedRun().go({10: stop("model:ewma")})) == list(range(10, 42))
    assert held(GovernedRun().go({10: stop("model:reader.deep")})) == []


def test_what_waits_in_an_open_group_is_judged_again_when_a_stop_comes() -> None:
    run = GovernedRun(group_ms=1e6)  # all decisions are one group
    pushed: list[int] = []

    def ask() -> None:
        if run.loop.recorder.num_recorded >= 20 and not pushed:
            pushed.append(run.loop.recorder.num_recorded)
            run.queue.push(stop())

    run.loop.run(ask)
    decisions = [decode_entry(entry) for entry in run.ledger.entries]
    assert pushed == [20]
    assert run.ledger.size == 42
    assert held(decisions) == list(range(42)), "none had been released"
    assert run.loop.recorder.num_withheld == 42
    assert run.audit() == []


def test_decisions_made_again_are_judged_as_they_were() -> None:
    first = GovernedRun()
    decisions = first.go({7: stop("series:B"), 21: ReenableRequest("re", 9, "series:B", "Bob", "ok")})
    again = GovernedRun(first.log, first.ledger)
    assert again.go() == decisions


def test_a_request_is_taken_once() -> None:
    first = GovernedRun()
    first.go({10: stop()})
    again = GovernedRun(first.log, MemoryLedger([]))
    again.queue.push(stop())
    again.loop.run(lambda: None)
    assert len(first.log.recorded()) == 1


def test_a_saved_state_remembers_what_is_in_force_and_refuses_a_log_that_was_cut() -> None:
    run = GovernedRun()
    run.go({10: stop()})
    state = run.governance.state()
    resumed = RunGovernance(PolicyConfig(), run.log)
    resumed.restore(state)
    assert resumed.state_now == run.governance.state_now
    with pytest.raises(IntegrityError, match="the governance log holds 0 entries, but 1 were in force"):
        RunGovernance(PolicyConfig(), NoGovernanceLog()).restore(state)


class FullLog(NoGovernanceLog):
    def append(self, entry: bytes) -> object:  # type: ignore[override]
        raise LedgerUnavailable("the disk is full")


class MarkingQueue(RequestQueue):
    def __init__(self) -> None:
        super().__init__()
        self.marked: list[str] = []

    def mark_stopped(self, request: StopRequest) -> None:
        self.marked.append(request.id)


def test_a_stop_that_cannot_be_logged_stops_all_the_same() -> None:
    queue = MarkingQueue()
    governance = RunGovernance(PolicyConfig(), FullLog(), queue)
    ledger, outlet = MemoryLedger([]), MemoryOutlet([])
    settings = override(load_settings(environment={}), "pipeline", group_ms=0.0)
    loop = build_loop(settings, ListFeed(days("A")), ledger, outlet, governance=governance)

    def ask() -> None:
        if ledger.size == 5:
            queue.push(stop())

    with pytest.raises(LedgerUnavailable, match="stopped: firm, by Ann: a drill; nothing more is released"):
        loop.run(ask)
    assert (ledger.size, outlet.num_released, queue.marked) == (5, 5, ["stop-1"])


def test_an_auditor_finds_a_missing_an_added_and_an_altered_change() -> None:
    run = GovernedRun()
    run.go({10: stop()})
    recorded = run.log.recorded()
    audits = {
        "gone": [],
        "more": [*recorded, (recorded[0][0].replace(b'"before":10', b'"before":12'), "ff")],
        "altered": [(recorded[0][0].replace(b'"before":10', b'"before":11'), recorded[0][1])],
    }
    found = {
        name: [p for entry in run.ledger.entries for p in auditor.problems(decode_entry(entry))]
        for name, entries in audits.items()
        for auditor in [GovernanceAuditor(PolicyConfig(), entries)]
    }
    assert len(found["gone"]) == 32
    assert len(found["more"]) == 30
    assert found["altered"] == [
        "it names 1 changes of governance, but the governance log has 0 before it: entries are gone"
    ]


def test_an_entry_with_holds_comes_back_as_it_was_and_its_verdict_follows() -> None:
    decisions = GovernedRun().go({3: stop("series:A/1d")})
    one = decisions[4]
    assert isinstance(one.governance, GovernanceFacts)
    assert one.governance.holds[0].kind is HoldKind.STOP
    assert decode_entry(encode_entry(one)) == one
    assert judge(one, PolicyConfig()) == one.verdict


@pytest.mark.parametrize("text", ["", "Firm", "firm:x", "desk:", "series", "model: x", "room:a"])
def test_a_scope_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is none: write firm, desk:NAME"):
        parse_scope(text)


def test_breakers_and_stale_bundles_hold_until_they_end() -> None:
    state = apply(
        ControlState(),
        BreakerMoved(1, 0, "bands_left", "series:A/1d", BreakerState.OPEN, 31.0, 20.0, "12 of 20 outside"),
    )
    on_a, on_b = HoldSubject("A/1d", ()), HoldSubject("B/1d", ())
    (hold,) = holds_on(state, on_a)
    assert hold.words == "breaker of series:A/1d: bands_left is open: 12 of 20 outside"
    assert holds_on(state, on_b) == ()
    half = apply(
        state, BreakerMoved(2, 0, "bands_left", "series:A/1d", BreakerState.HALF_OPEN, 0, 20, "trying")
    )
    assert len(holds_on(half, on_a)) == 1
    closed = apply(half, BreakerMoved(3, 0, "bands_left", "series:A/1d", BreakerState.CLOSED, 0, 20, "fine"))
    assert closed.is_clear
    stale = apply(closed, BundleAdopted(4, 0, "aa", 3, "", "bundle 4 is known and not here"))
    assert [hold.kind for hold in holds_on(stale, on_b)] == [HoldKind.BUNDLE]


def test_a_desk_is_reached_through_the_symbols_that_a_bundle_gives_it() -> None:
    text = write_bundle(
        BundleHead(1, "", BundleKind.QUORUM, "ann", 0), BundleTables(desks=DesksConfig({"rates": ("ZN",)}))
    )
    state = apply(ControlState(), BundleAdopted(1, 0, "aa", 1, text))
    state = apply(state, Stopped(1, 0, "desk:rates", "x", "y", StopCause.PEER, "r"))
    assert [hold.words for hold in holds_on(state, HoldSubject("ZN/1d", ()))] == [
        "stop of desk:rates: peer by x: y"
    ]
    assert holds_on(state, HoldSubject("ES/1d", ())) == ()
    state = apply(state, Stopped(1, 0, "desk:default", "x", "y", StopCause.PEER, "s"))
    assert len(holds_on(state, HoldSubject("ES/1d", ()))) == 1


def test_a_model_that_the_bundle_does_not_permit_is_held() -> None:
    tables = BundleTables(models=PermittedModels(("ewma",)))
    text = write_bundle(BundleHead(1, "", BundleKind.QUORUM, "ann", 0), tables)
    state = apply(ControlState(), BundleAdopted(1, 0, "aa", 1, text))
    assert holds_on(state, HoldSubject("A/1d", ("ewma",))) == ()
    (hold,) = holds_on(state, HoldSubject("A/1d", ("ewma", "garch")))
    assert hold.words == "bundle of model:garch: the policy bundle does not permit this model"


def test_decisions_are_judged_by_the_limits_of_the_bundle_from_its_place_on() -> None:
    tables = BundleTables(policy=PolicyConfig(restricted_symbols=("B",)))
    text = write_bundle(BundleHead(1, "", BundleKind.QUORUM, "ann", 0), tables)
    run = GovernedRun()
    decisions = run.go({10: BundleOffer("b", 7, "aa" * 32, 1, text)})
    assert held(decisions) == [
        place for place, one in enumerate(decisions) if one.symbol == "B" and place >= 10
    ]
    assert {one.governance.bundle for one in decisions[10:]} == {"aa" * 32}  # type: ignore[union-attr]
    assert run.audit() == []
