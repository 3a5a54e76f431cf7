"""Decisions that wait for people, in a run in memory: questions, releases, a rerun, an audit."""

import pytest
from msgspec.structs import replace
from test_pipeline_loop import days

from htfi.adapters.keys.ed25519 import verify_signature
from htfi.domain.decision import Decision, PolicyOutcome
from htfi.domain.errors import IntegrityError
from htfi.domain.events import FeedItem
from htfi.domain.governance import HoldKind
from htfi.domain.time import NS_PER_S
from htfi.governance.bundles.bundle import BundleHead, BundleKind, parse_bundle, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.checkpoints.answers import local_rights
from htfi.governance.checkpoints.config import CheckpointConfig, DeadlineDefault
from htfi.governance.checkpoints.requests import AnswerKind, ApprovalAnswer
from htfi.governance.control.entries import (
    BundleAdopted,
    CheckpointMoved,
    decode_governance,
    encode_governance,
)
from htfi.governance.control.requests import StopRequest
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.audit.triggers import TriggerAuditor
from htfi.pipeline.governance_ports import NoGovernanceLog, RequestQueue
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override, settings_digest
from memory_run import ListFeed, MemoryLedger, MemoryOutlet

NOW_NS = 1_700_000_000 * NS_PER_S
OVER_A = CheckpointConfig(notional={"A": 2e6}, max_notional=1e6)
RIGHTS = local_rights("run-key", verify_signature)


class CheckedRun:
    """A run over daily bars of two symbols, in memory, under a bundle with checkpoints."""

    def __init__(
        self,
        config: CheckpointConfig = OVER_A,
        log: NoGovernanceLog | None = None,
        ledger: MemoryLedger | None = None,
        group_ms: float = 0.0,
    ) -> None:
        text = write_bundle(BundleHead(1, "", BundleKind.QUORUM, "Ann", 0), BundleTables(checkpoints=config))
        adopted = encode_governance(BundleAdopted(1, 0, parse_bundle(text).digest, 1, text))
        self.log = log or NoGovernanceLog([(adopted, "leaf")])
        self.queue, self.now_ns = RequestQueue(), NOW_NS
        self.settings = override(load_settings(environment={}), "pipeline", group_ms=group_ms)
        self.governance = RunGovernance(
            self.settings.policy, self.log, self.queue, lambda: RIGHTS, lambda: self.now_ns
        )
        self.ledger, self.outlet = ledger or MemoryLedger([]), MemoryOutlet([])
        self.items: list[FeedItem] = days("A", "B")
        self.loop: DecisionLoop = build_loop(
            self.settings, ListFeed(self.items), self.ledger, self.outlet, governance=self.governance
        )
        self.num_answered = 0

    @property
    def moves(self) -> list[CheckpointMoved]:
        entries = [decode_governance(entry) for entry, _ in self.log.recorded()]
        return [entry for entry in entries if isinstance(entry, CheckpointMoved)]

    @property
    def decisions(self) -> list[Decision]:
        return [decode_entry(entry) for entry in self.ledger.entries]

    def answer(
        self, question: CheckpointMoved, kind: AnswerKind = AnswerKind.APPROVE, by: str = "Ann"
    ) -> None:
        self.num_answered += 1
        self.queue.push(
            ApprovalAnswer(
                f"answer-{question.decision}-{self.num_answered}", self.now_ns, question.decision, kind, by,
                "checked", question.seen,
            )
        )  # fmt: skip

    def go(self, answered: int | None = None, kind: AnswerKind = AnswerKind.APPROVE) -> list[Decision]:
        """Run to the end; the question of that number, from 0, is answered as soon as it is asked."""

        def look() -> None:
            if answered is not None and not self.num_answered and len(self.moves) > answered:
                self.answer(self.moves[answered], kind)

        self.loop.run(look)
        return self.decisions

    def audit(self) -> list[str]:
        """What an auditor of the whole record finds."""
        digest = settings_digest(self.settings)
        amendments = AmendmentAuditor(self.ledger.entries.__getitem__)
        triggers = TriggerAuditor(self.settings.triggers, self.ledger.entries.__getitem__)
        governance = GovernanceAuditor(self.settings.policy, self.log.recorded())
        found = [
            problem
            for entry in self.ledger.entries
            for problem in check_entry(
                entry, digest, self.settings.policy, amendments, triggers=triggers, governance=governance
            )
        ]
        return found + governance.last_problems()


def withheld(decisions: list[Decision]) -> set[str]:
    return {one.symbol for one in decisions if one.verdict.outcome is PolicyOutcome.WITHHOLD}


def test_decisions_over_a_limit_wait_and_no_other_series_does() -> None:
    run = CheckedRun()
    decisions = run.go()
    assert len(decisions) == 42
    assert withheld(decisions) == {"A"}
    of_a = [one for one in decisions if one.symbol == "A"]
    assert all([hold.kind for hold in one.governance.holds] == [HoldKind.CHECKPOINT] for one in of_a)  # type: ignore[union-attr]
    assert of_a[0].verdict.reasons == [
        "governance: checkpoint of series:A/1d: waits for people: the notional is 2,000,000, limit 1,000,000"
    ]
    assert [move.decision for move in run.moves] == [one.id for one in of_a]
    assert {move.step for move in run.moves} == {"asked"}
    assert run.audit() == []


def test_approved_decision_is_released_by_a_second_one_that_amends_it() -> None:
    run = CheckedRun()
    decisions = run.go(answered=2)
    asked = run.moves[2].decision
    (released,) = [one for one in decisions if one.amends]
    first = next(one for one in decisions if one.id == asked)
    assert (released.id, released.amends) == (f"{asked}/released", asked)
    assert released.verdict.outcome is PolicyOutcome.RELEASE
    assert released.forecast == first.forecast
    assert released.governance.release.approvers == ("Ann",)  # type: ignore[union-attr]
    assert released.governance.release.seen == run.moves[2].seen  # type: ignore[union-attr]
    assert run.audit() == []
    place = decisions.index(released)
    assert decisions.index(first) < place < 42, "it came while the run went on"


def test_denied_decision_stays_withheld() -> None:
    run = CheckedRun()
    decisions = run.go(answered=2, kind=AnswerKind.DENY)
    assert len(decisions) == 42
    assert [move.step for move in run.moves].count("denied") == 1
    assert run.audit() == []


def test_two_people_release_and_one_alone_does_not() -> None:
    config = CheckpointConfig(notional={"A": 2e6}, max_notional=1e6, num_approvals=2)
    run = CheckedRun(config)
    assert len(run.go(answered=0)) == 42
    (question,) = [move for move in run.moves if move.decision == run.moves[0].decision and move.question]
    run.answer(question, by="Ann")
    run.loop.release_answered()
    assert run.moves[-1].detail == "approve: Ann has approved it already"
    run.answer(question, by="Bo")
    run.loop.release_answered()
    assert run.decisions[-1].governance.release.approvers == ("Ann", "Bo")  # type: ignore[union-attr]
    assert run.audit() == []


def test_deadline_withholds_by_default_and_a_late_approval_changes_nothing() -> None:
    run = CheckedRun()
    run.go()
    run.now_ns += 301 * NS_PER_S
    run.answer(run.moves[0])
    run.loop.release_answered()
    assert len(run.decisions) == 42
    steps = [move.step for move in run.moves]
    assert steps.count("expired") == steps.count("asked") == steps.count("escalated")
    assert steps.count("refused") == 1
    assert not run.governance.waiting.is_waiting
    assert run.audit() == []


def test_deadline_releases_numbers_alone_where_the_bundle_says_so() -> None:
    config = CheckpointConfig(notional={"A": 2e6}, max_notional=1e6, on_deadline=DeadlineDefault.LOWER_RUNG)
    run = CheckedRun(config)
    num_asked = sum(one.symbol == "A" for one in run.go())
    run.now_ns += 301 * NS_PER_S
    run.loop.release_answered()
    released = run.decisions[42:]
    assert len(released) == num_asked
    assert {one.verdict.outcome for one in released} == {PolicyOutcome.CAUTION}
    assert all(one.verdict.reasons[-1].startswith("governance: the deadline for people") for one in released)
    assert all(one.view is None and one.forecast.tilt is None for one in released)
    assert run.audit() == []


def test_stop_withholds_what_people_have_approved() -> None:
    run = CheckedRun()
    run.go()
    run.queue.push(StopRequest("stop-1", NOW_NS, "firm", "Bo", "a drill"))
    run.answer(run.moves[0])
    run.loop.release_answered()
    released = run.decisions[-1]
    assert released.amends == run.moves[0].decision
    assert released.verdict.outcome is PolicyOutcome.WITHHOLD
    assert run.audit() == []


def test_run_made_again_from_its_logs_comes_to_the_same_entries_and_asks_nothing_again() -> None:
    run = CheckedRun()
    run.go(answered=2)
    num_moves, entries = len(run.moves), list(run.ledger.entries)
    again = CheckedRun(log=run.log, ledger=run.ledger)
    again.now_ns = NOW_NS + NS_PER_S
    again.go()
    assert again.ledger.entries == entries
    assert len(again.moves) == num_moves


@pytest.mark.parametrize("num_lost", [1, 5, 20])
def test_release_that_a_kill_kept_back_is_made_up_for(num_lost: int) -> None:
    """Killed after the approval was logged, before the release and what came with it was recorded."""
    run = CheckedRun()
    decisions = run.go(answered=2)
    place = next(place for place, one in enumerate(decisions) if one.amends)
    approved = next(at for at, move in enumerate(run.moves) if move.step == "approved")
    logged = run.log.recorded()[: approved + 2]  # the bundle, then what was logged up to the approval
    kept = MemoryLedger([])
    kept.entries = run.ledger.entries[: max(place - num_lost + 1, 0)]
    again = CheckedRun(log=NoGovernanceLog(logged), ledger=kept)
    done = again.go()
    released = [one for one in done if one.amends]
    assert [one.id for one in released] == [decisions[place].id]
    assert len(done) == 43
    assert again.audit() == []


def test_saved_state_goes_on_with_what_waits() -> None:
    run = CheckedRun()
    run.go()
    state, again = run.loop.state(), CheckedRun(log=run.log, ledger=run.ledger)
    again.loop.restore(state)
    assert again.governance.waiting.is_waiting
    again.answer(run.moves[3])
    again.loop.release_answered()
    assert again.decisions[-1].amends == run.moves[3].decision
    assert again.audit() == []


def test_what_waits_in_an_open_group_is_asked_about_once_it_is_durable() -> None:
    run = CheckedRun(group_ms=1e6)
    decisions = run.go()
    assert [move.decision for move in run.moves] == [one.id for one in decisions if one.symbol == "A"]
    assert {move.before for move in run.moves} == {42}
    assert run.audit() == []


def test_auditor_finds_a_release_without_an_approval_and_one_that_was_changed() -> None:
    run = CheckedRun()
    decisions = run.go(answered=2)
    place = next(place for place, one in enumerate(decisions) if one.amends)

    def found(released: Decision, log: list[tuple[bytes, str]]) -> list[str]:
        auditor = GovernanceAuditor(run.settings.policy, log)
        for one in decisions[:place]:
            auditor.problems(one)
        return auditor.problems(released)

    log = list(run.log.recorded())
    assert found(decisions[place], log) == []
    changed = replace(decisions[place], last_price=decisions[place].last_price * 2)
    assert found(changed, log) == [f"it is not {decisions[place].amends} as it was answered: last_price"]
    unapproved = [one for one in log if b'"approved"' not in one[0]]
    assert found(decisions[place], unapproved) == [
        f"the governance log holds no answer that releases {decisions[place].amends}"
    ]
    forged = replace(decisions[place], amends=decisions[1].id, id=f"{decisions[1].id}/released")
    assert "which did not wait for people" in found(forged, log)[0]


def test_auditor_finds_steps_that_do_not_follow() -> None:
    run = CheckedRun(CheckpointConfig(notional={"A": 2e6}, max_notional=1e6, num_approvals=2))
    run.go()
    run.answer(run.moves[0])
    run.loop.release_answered()
    approved = run.moves[-1]
    assert approved.step == "approved"

    def found(*entries: CheckpointMoved) -> list[str]:
        log = [*run.log.recorded()[:-1], *((encode_governance(entry), "") for entry in entries)]
        auditor = GovernanceAuditor(run.settings.policy, log)
        for decision in run.decisions:
            assert auditor.problems(decision) == []
        return [problem.partition(f" of {approved.decision}: ")[2] for problem in auditor.last_problems()]

    late = replace(approved, at_ns=approved.at_ns + 301 * NS_PER_S)
    other, third = (
        replace(approved, by="Bo", answer="answer-2"),
        replace(approved, by="Cy", answer="answer-3"),
    )
    assert found(approved) == found(approved, other) == []
    wrong = ["does not follow from the steps before it"]
    assert found(late) == wrong
    assert found(approved, replace(approved, answer="answer-2")) == wrong
    assert found(replace(approved, seen="0" * 64)) == wrong
    assert found(approved, other, third) == wrong


def test_auditor_finds_a_question_that_shows_something_else() -> None:
    run = CheckedRun()
    run.go()
    asked = run.moves[0]
    assert asked.question is not None
    question = replace(asked.question, summary="nothing to see")
    changed = replace(asked, question=question, seen=question.digest)
    log = [
        (encode_governance(changed), "") if decode_governance(one[0]) == asked else one
        for one in run.log.recorded()
    ]
    auditor = GovernanceAuditor(run.settings.policy, log)
    found = [problem for one in run.decisions for problem in auditor.problems(one)]
    assert (
        f"governance log: step 'asked' of {asked.decision}: what people were shown does not follow from the decision"
        in found
    )


def test_ledger_whose_approval_is_gone_is_not_gone_on_with() -> None:
    run = CheckedRun()
    run.go(answered=2)
    log = NoGovernanceLog([one for one in run.log.recorded() if b'"approved"' not in one[0]])
    with pytest.raises(IntegrityError, match=r"holds no answer that releases it|use a new folder"):
        CheckedRun(log=log, ledger=run.ledger).go()


def test_entry_of_a_release_is_read_back_as_it_was() -> None:
    run = CheckedRun()
    released = next(one for one in run.go(answered=0) if one.amends)
    assert decode_entry(encode_entry(released)) == released
    assert released.is_checkpoint_release


@pytest.mark.parametrize(
    "config",
    [
        CheckpointConfig(max_novelty=0.3),
        CheckpointConfig(max_expert_spread=0.003),
        CheckpointConfig(max_band_width=0.035),
        CheckpointConfig(default_notional=1e6, max_loss=1.8e4),
    ],
)
def test_each_limit_holds_back_what_is_beyond_it_and_the_audit_agrees(config: CheckpointConfig) -> None:
    run = CheckedRun(config)
    decisions = run.go()
    num_held = sum(one.verdict.outcome is PolicyOutcome.WITHHOLD for one in decisions)
    assert 0 < num_held < 42
    assert len(run.moves) == num_held
    assert run.audit() == []
