"""Tests that a run puts its views to the swap test where the bundle says so, and that an auditor derives it again."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from test_pipeline_loop import days

from htfi.domain.decision import Decision, FidelityPlan, Rung
from htfi.domain.events import News
from htfi.domain.governance import GovernanceFacts, HoldKind, SwapFacts, SwapMove
from htfi.domain.news import ItemReading
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.governance.bundles.bundle import BundleHead, BundleKind, parse_bundle, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.control.entries import BundleAdopted, encode_governance
from htfi.governance.control.state import ControlState, HoldSubject, holds_on
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.fairness.swap_test import judge_swaps, swap_hold
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.question import Question
from htfi.narrative.recent_news import NO_NEWS, NewsSelection
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.entry import decode_entry
from htfi.pipeline.swap_tests import SwapTests
from htfi.pipeline.view_cache import ReadRequest, ViewCache
from htfi.pipeline.weighing import fair_opinion, forecast_problems, recorded_opinion
from htfi.wiring.loop import build_loop
from htfi.wiring.news import build_news_processor
from htfi.wiring.settings import load_settings, override
from memory_run import ListFeed, MemoryLedger, MemoryOutlet

SETTINGS = load_settings(environment={})
POLICY = SETTINGS.policy
HEADLINE = "Zorvane cuts its full-year outlook as sales slump"


def bundle(config: FairnessConfig) -> bytes:
    head = BundleHead(1, "", BundleKind.QUORUM, "Ann", 0)
    text = write_bundle(head, BundleTables(fairness=config))
    return encode_governance(BundleAdopted(1, 0, parse_bundle(text).digest, 1, text))


def run(config: FairnessConfig) -> tuple[list[Decision], list[str], GovernanceAuditor]:
    log = NoGovernanceLog([(bundle(config), "leaf")])
    settings = override(load_settings(environment={}), "narrative", symbol_names={"A": "Zorvane"})
    items = list(days("A"))
    item = News(items[-4].available_at_ns - NS_PER_DAY // 2, 0, "wire", 1, "n1", HEADLINE, ("A",))
    items.insert(len(items) - 4, replace(item, event_time_ns=item.available_at_ns))
    ledger = MemoryLedger([])
    governance = RunGovernance(settings.policy, log)
    build_loop(settings, ListFeed(items), ledger, MemoryOutlet([]), governance=governance).run(lambda: None)
    decisions = [decode_entry(entry) for entry in ledger.entries]
    auditor = GovernanceAuditor(settings.policy, log.recorded())
    problems = [problem for one in decisions for problem in auditor.problems(one) + forecast_problems(one)]
    return decisions, problems, auditor


def swaps_of(decision: Decision) -> SwapFacts | None:
    governed = decision.governance
    return governed.swaps if isinstance(governed, GovernanceFacts) and governed.swaps is not UNSET else None


@pytest.fixture(scope="module")
def tested_run() -> tuple[list[Decision], list[str], GovernanceAuditor]:
    return run(FairnessConfig(test_views=True, num_swaps=1, min_weight=0.0))


def test_a_run_records_the_swap_test_of_its_views_and_an_auditor_derives_it_again(tested_run: Any) -> None:
    decisions, problems, _ = tested_run
    found = [swaps for one in decisions if (swaps := swaps_of(one)) is not None]
    assert problems == []
    assert found
    assert {move.reader.split()[0] for swaps in found for move in swaps.moves} == {"facts"}
    assert all(one.view is not None for one in decisions if swaps_of(one) is not None)


def readers_of(decisions: Sequence[Decision]) -> set[str]:
    """Who read the facts of the items that decisions considered."""
    considered = [
        item for one in decisions if one.news_context is not None for item in one.news_context.considered
    ]
    return {item.reading.reader for item in considered if item.reading is not UNSET}


def test_a_run_that_tests_its_views_reads_facts_with_neutral_names(tested_run: Any) -> None:
    decisions, _, _ = tested_run
    (reader,) = readers_of(decisions)
    moves = [move for one in decisions if (swaps := swaps_of(one)) is not None for move in swaps.moves]
    assert reader.endswith("+neutral/2")
    assert len(moves) > 0
    assert [move for move in moves if move.after != move.before] == []
    assert all(move.before < 0.0 for move in moves)


def test_an_auditor_finds_a_weight_that_does_not_follow_from_its_swaps(tested_run: Any) -> None:
    decisions, _, _ = tested_run
    place = next(place for place, one in enumerate(decisions) if swaps_of(one) is not None)
    swaps = swaps_of(decisions[place])
    assert swaps is not None
    forged = replace(swaps, weight=0.5)
    auditor = GovernanceAuditor(
        POLICY, [(bundle(FairnessConfig(test_views=True, num_swaps=1, min_weight=0.0)), "leaf")]
    )
    for one in decisions[:place]:
        auditor.problems(one)
    governed = replace(decisions[place].governance, swaps=forged)
    found = auditor.problems(replace(decisions[place], governance=governed))
    assert found == ["the weight that its swap test left does not follow from its swaps"]


def test_a_view_that_a_swap_turns_round_counts_for_nothing(tested_run: Any) -> None:
    decisions, _, _ = tested_run
    decision = next(one for one in decisions if swaps_of(one) is not None and one.view is not None)
    turned = judge_swaps([SwapMove("target", "fame", 0.8, -0.4)], FairnessConfig())
    opinion = recorded_opinion(decision, decision.view)
    left = fair_opinion(opinion, turned)
    assert turned.weight == 0.0
    assert (left.size_sigmas, left.volatility_multiplier) == (0.0, 1.0)
    assert all(shift == 0.0 and stretch == 1.0 for _, shift, stretch in left.calibrated_effects)


def test_a_run_without_such_a_bundle_tests_no_view() -> None:
    decisions, problems, _ = run(FairnessConfig(test_views=False))
    (reader,) = readers_of(decisions)
    assert not reader.endswith("+neutral/2")
    assert problems == []
    assert len(decisions) > 0
    assert all(swaps_of(one) is None for one in decisions)


def test_items_are_read_again_where_names_become_neutral_and_stay_so_after_a_restart() -> None:
    settings = override(SETTINGS, "narrative", symbol_names={"A": "Zorvane"})
    news = build_news_processor(settings)
    news.receive(News(0, 0, "wire", 1, "n1", HEADLINE, ("A",)))

    def reading(of: NewsProcessor) -> ItemReading:
        return of.select("A", 1).readings["n1"]

    usual = reading(news)
    news.read_neutrally(True)
    neutral = reading(news)
    assert neutral.reader == f"{usual.reader}+neutral/2"
    restarted = build_news_processor(settings)
    restarted.restore(news.state())
    assert reading(restarted) == neutral
    news.receive(News(0, 0, "wire", 2, "n2", "Zorvane wins an order", ("A",)))
    assert news.select("A", 1).readings["n2"].reader == neutral.reader
    news.read_neutrally(False)
    assert reading(news) == usual


class FameReader:
    """A reader that is for whatever names a famous company."""

    version = "fame"
    speculation_stats = None

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        del deadline_ms
        return [
            NewsView(1.0 if "Apple" in one.items[0].headline else -1.0, 1.0, 1.0, 0.5, (), one.as_of_ns, 1)
            for one in questions
        ]


def test_draft_and_target_are_both_put_to_the_swap_test() -> None:
    item = News(0, 0, "wire", 1, "n1", "Apple raises its full-year outlook", ("AAPL",))
    question = Question("AAPL", 1, NS_PER_DAY, (item,))
    views = ViewCache({Rung.EDGE: FameReader(), Rung.SPECULATIVE: FameReader()}, 4)
    request = ReadRequest("AAPL/1d", question, FidelityPlan(Rung.SPECULATIVE), NO_NEWS)
    news = build_news_processor(override(SETTINGS, "encoding", model="none"))
    config = FairnessConfig(test_views=True)
    swaps = SwapTests().run(request, FameReader().read([question], 1.0)[0], news, views, config)
    assert {move.reader.split()[0] for move in swaps.moves} == {"edge", "speculative"}
    assert swaps.weight == 0.0
    hold = swap_hold("AAPL/1d", swaps)
    assert hold is not None
    assert hold.kind is HoldKind.FAIRNESS
    held = holds_on(ControlState(), HoldSubject("AAPL/1d", (), swaps))
    assert held == (hold,)


def test_with_neutral_names_a_model_is_asked_the_same_under_every_swap() -> None:
    item = News(0, 0, "wire", 1, "n1", "Apple buys Investor Anna Smith's stake in Oracle", ("AAPL", "ORCL"))
    news = build_news_processor(SETTINGS)
    news.read_neutrally(True)
    question = news.facts.with_neutral_names(Question("AAPL", 1, NS_PER_DAY, (item,)))
    reader = FameReader()
    views = ViewCache({Rung.EDGE: reader, Rung.SPECULATIVE: reader}, 4)
    selection = NewsSelection((item,), (), (), "")
    request = ReadRequest("AAPL/1d", question, FidelityPlan(Rung.SPECULATIVE), selection)
    (view,) = reader.read([question], 1.0)
    swaps = SwapTests().run(request, view, news, views, FairnessConfig(test_views=True))
    moves = [move for move in swaps.moves if not move.reader.startswith("facts")]
    assert {move.kind for move in moves} >= {"company", "fame", "person", "joint"}
    assert {(move.before, move.after) for move in moves} == {(-0.5, -0.5)}
    assert question.asked_as == question.items[0].symbols[0]
    assert question.items[0].headline.startswith("Acme buys Investor Sam Taylor's stake in Globex")
