"""Tests that a run puts its views to the swap test where the bundle says so, and that an auditor derives it again."""

from msgspec import UNSET
from msgspec.structs import replace
from test_pipeline_loop import days

from htfi.domain.decision import Decision, PolicyOutcome
from htfi.domain.events import News
from htfi.domain.governance import GovernanceFacts, HoldKind, SwapFacts, SwapMove
from htfi.domain.time import NS_PER_DAY
from htfi.governance.bundles.bundle import BundleHead, BundleKind, parse_bundle, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.control.entries import BundleAdopted, encode_governance
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.fairness.swap_test import judge_swaps
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.governed import NoGovernanceLog, RunGovernance
from htfi.pipeline.record.entry import decode_entry
from htfi.pipeline.weighing import fair_opinion, forecast_problems, recorded_opinion
from htfi.wiring.run import build_loop
from htfi.wiring.settings import load_settings, override
from memory_run import ListFeed, MemoryLedger, MemoryOutlet

HEADLINE = "Zorvane cuts its full-year outlook as sales slump"


def bundle(config: FairnessConfig) -> bytes:
    head = BundleHead(1, "", BundleKind.QUORUM, "Ann", 0)
    text = write_bundle(head, BundleTables(fairness=config))
    return encode_governance(BundleAdopted(1, 0, parse_bundle(text).digest, 1, text))


def run(config: FairnessConfig) -> tuple[list[Decision], list[str]]:
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
    return decisions, problems


def swaps_of(decision: Decision) -> SwapFacts | None:
    governed = decision.governance
    return governed.swaps if isinstance(governed, GovernanceFacts) and governed.swaps is not UNSET else None


def test_a_run_records_the_swap_test_of_its_views_and_an_auditor_derives_it_again() -> None:
    decisions, problems = run(FairnessConfig(test_views=True, num_swaps=1, min_weight=0.0))
    tested = [one for one in decisions if swaps_of(one) is not None]
    assert problems == []
    assert tested
    readers = {move.reader.split()[0] for one in tested for move in swaps_of(one).moves}  # pyright: ignore
    assert "facts" in readers
    assert {"edge", "speculative"} & readers
