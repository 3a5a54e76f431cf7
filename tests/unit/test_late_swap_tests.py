"""What a reader answers late is put to the swap test before it amends: recorded, derived again, resumed."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace
from test_pipeline_loop import days
from test_swap_tests_in_a_run import bundle, swaps_of

from htfi.domain.decision import Decision, PolicyOutcome, Rung
from htfi.domain.events import News, TimePassed
from htfi.domain.generation import RequestRefused
from htfi.domain.governance import HoldKind
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.governance.fairness.config import FairnessConfig
from htfi.narrative.ports import NewsReader
from htfi.narrative.question import Question, question_id
from htfi.narrative.readers import TemplateReader
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override
from memory_run import ListFeed, MemoryLedger, MemoryOutlet

SETTINGS = override(load_settings(environment={}), "narrative", symbol_names={"A": "Apple"})
SETTINGS = override(SETTINGS, "encoding", model="none")
SETTINGS = override(SETTINGS, "pipeline", group_ms=0.0, late_poll_ms=0.0, late_wait_ms=0.0)
SETTINGS = override(SETTINGS, "scheduling", min_influence=0.0)
LIMITS = FairnessConfig(test_views=True, num_swaps=1)
Opinion = Callable[[Question], float]


def fair(question: Question) -> float:
    del question
    return 0.6


def famous(question: Question) -> float:
    """For Apple, against all others."""
    return 0.6 if "Apple" in question.items[0].headline else -0.6


def view(question: Question, direction: float, reader: str, *, provisional: bool = False) -> NewsView:
    cited = tuple(item.id for item in question.items)
    return NewsView(
        1.0 if direction > 0 else -1.0, abs(direction), 1.0, 0.7, cited, question.as_of_ns, NS_PER_DAY,
        reader=reader, provisional=provisional,
    )  # fmt: skip


class Draft:
    version, speculation_stats = "draft/1", None

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        del deadline_ms
        return [view(one, 0.6, self.version) for one in questions]


class LateTarget:
    """Answers nothing in time; `answers` says how many later answers come, others are refused where `refuses`."""

    version, speculation_stats = "target/1", None

    def __init__(self, opinion: Opinion, num_answers: int = 1_000, *, refuses: bool = False) -> None:
        self._opinion, self._left, self._refuses = opinion, num_answers, refuses
        self._waiting: dict[str, Question] = {}
        self.requested: list[str] = []

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        del deadline_ms
        self._waiting |= {question_id(one): one for one in questions}
        return [view(one, 0.6, "target/1 with draft/1", provisional=True) for one in questions]

    def request_views(self, questions: Sequence[Question]) -> None:
        self.requested += [one.items[0].headline for one in questions]
        self._waiting |= {question_id(one): one for one in questions}

    def take_late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        found: list[tuple[str, NewsView | RequestRefused]] = []
        for name, question in list(self._waiting.items()):
            if self._left > 0:
                found.append((name, view(question, self._opinion(question), self.version)))
            elif self._refuses:
                found.append((name, RequestRefused("no cloud has it")))
            else:
                break
            self._left -= 1
            del self._waiting[name]
        return found


class Run:
    """A run over one item of news by a target that answers late, under a bundle that has swaps tested."""

    def __init__(self, target: LateTarget, ledger: MemoryLedger | None = None) -> None:
        self.log = NoGovernanceLog([(bundle(LIMITS), "leaf")])
        items = list(days("A"))
        at_ns = items[-4].available_at_ns - NS_PER_DAY // 2
        items.insert(
            len(items) - 4, News(at_ns, at_ns, "wire", 1, "n1", "Apple raises its full-year outlook", ("A",))
        )
        items += [TimePassed(items[-1].available_at_ns + number) for number in range(1, 9)]
        self.ledger = ledger or MemoryLedger([])
        readers: dict[Rung, NewsReader] = {
            Rung.TEMPLATE: TemplateReader(SETTINGS.narrative), Rung.EDGE: Draft(), Rung.SPECULATIVE: target,
        }  # fmt: skip
        self.loop = build_loop(
            SETTINGS, ListFeed(items), self.ledger, MemoryOutlet([]), readers=readers,
            governance=RunGovernance(SETTINGS.policy, self.log),
        )  # fmt: skip
        self.loop.run(lambda: None)
        self.decisions = [decode_entry(entry) for entry in self.ledger.entries]

    @property
    def amended(self) -> list[Decision]:
        return [one for one in self.decisions if one.amends]

    def problems(self, changed: Decision | None = None) -> list[str]:
        auditor = GovernanceAuditor(SETTINGS.policy, self.log.recorded())
        entries = [
            encode_entry(changed) if changed is not None and changed.id == one.id else entry
            for one, entry in zip(self.decisions, self.ledger.entries, strict=True)
        ]
        amendments = AmendmentAuditor(entries.__getitem__)
        digest = self.decisions[0].settings_digest
        return [
            problem
            for entry in entries
            for problem in check_entry(entry, digest, SETTINGS.policy, amendments, governance=auditor)
        ]


def movers(decision: Decision) -> set[str]:
    swaps = swaps_of(decision)
    return {move.reader for move in swaps.moves} if swaps is not None else set()


def test_a_late_view_that_a_swap_turns_round_is_recorded_with_its_test_and_withheld() -> None:
    run = Run(LateTarget(famous))
    assert len(run.amended) > 0
    first = run.amended[0]
    assert {"edge draft/1", "speculative target/1"} <= movers(first)
    swaps = swaps_of(first)
    assert swaps is not None
    assert swaps.weight == 0.0
    assert {round(one.after, 2) for one in swaps.moves if one.reader == "speculative target/1"} >= {-0.42}
    assert first.verdict.outcome is PolicyOutcome.WITHHOLD
    assert first.governance.holds[-1].kind is HoldKind.FAIRNESS  # type: ignore[union-attr]
    assert run.problems() == []


def test_a_fair_late_view_is_released_with_its_test_which_decisions_that_keep_it_have_too() -> None:
    run = Run(LateTarget(fair))
    first = run.amended[0]
    assert "speculative target/1" in movers(first)
    assert first.verdict.outcome is not PolicyOutcome.WITHHOLD
    assert first.forecast.tilt is not None
    place = run.decisions.index(first)
    kept = [one for one in run.decisions[place + 1 :] if one.view is not None and not one.amends]
    assert len(kept) > 0
    assert all("speculative target/1" in movers(one) for one in kept)
    assert run.problems() == []


def test_an_amendment_waits_for_the_answers_of_its_test_and_none_is_made_without_them() -> None:
    target = LateTarget(fair, num_answers=1)
    run = Run(target)
    assert len(target.requested) > 0
    assert run.amended == []
    assert run.loop.late.is_waiting
    refused = Run(LateTarget(fair, num_answers=1, refuses=True))
    assert refused.amended == []
    assert refused.loop.late.pending.num_abandoned > 0
    assert refused.problems() == run.problems() == []


@pytest.mark.parametrize("opinion", [fair, famous])
def test_a_run_that_ended_goes_on_and_tests_what_its_ledger_does_not_hold(opinion: Opinion) -> None:
    whole = Run(LateTarget(opinion))
    num = len(whole.ledger.entries)
    for cut in (num, num - 1, whole.decisions.index(whole.amended[0]), num - 5):
        ledger = MemoryLedger([])
        ledger.entries = whole.ledger.entries[:cut]
        again = Run(LateTarget(opinion), ledger)
        assert again.ledger.entries[:cut] == whole.ledger.entries[:cut]
        assert again.amended[0] == whole.amended[0]
        assert again.problems() == []


def test_an_auditor_finds_a_late_view_that_was_not_tested_and_a_test_of_another_view() -> None:
    run = Run(LateTarget(fair))
    first = run.amended[0]
    swaps = swaps_of(first)
    assert swaps is not None
    others = tuple(one for one in swaps.moves if one.reader != "speculative target/1")
    untested = replace(first, governance=replace(first.governance, swaps=replace(swaps, moves=others)))
    assert "the view of target/1 was not put to the swaps that the draft was put to" in run.problems(untested)
    moves = tuple(
        replace(one, before=0.1, after=0.1) if one.reader == "speculative target/1" else one
        for one in swaps.moves
    )
    other = replace(first, governance=replace(first.governance, swaps=replace(swaps, moves=moves)))
    assert "the swap test of target/1 is not of the view that it gave" in run.problems(other)
