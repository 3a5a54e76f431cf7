"""Where a bundle has views put to the swap test, a model is shown neutral names, and its prompt is derived again."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from checks import nonempty
from divided_generator import Divided
from htfi.adapters.stores.snapshot import write_whole
from htfi.domain.decision import Decision, Rung
from htfi.domain.generation_trace import GenerationTrace
from htfi.governance.bundles.bundle import BundleHead, BundleKind, parse_bundle, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.control.entries import BundleAdopted, encode_governance
from htfi.governance.fairness.config import FairnessConfig
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.audit.readings import ReadingAuditor
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.models.loading import open_model
from htfi.wiring.run import LEDGER_ORIGIN
from htfi.wiring.settings import SETTINGS_FILE, Settings, encode_settings, load_settings, override
from htfi.wiring.verification import ModelsByVersion, reading_terms, replay_reading
from late_network import ListFeed, ListOutlet, days, with_market_news
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")


class Recorded(NamedTuple):
    folder: Path
    pair: tuple[Path, Path]
    settings: Settings
    decisions: list[Decision]

    def traces(self) -> list[tuple[int, GenerationTrace]]:
        """The readings of a model, with the places of their decisions."""
        views = [(place, one.view) for place, one in enumerate(self.decisions) if one.view is not None]
        return [(place, view.trace) for place, view in views if view.trace is not None]

    def problems(self, place: int, decision: Decision) -> list[str]:
        auditor = ReadingAuditor(reading_terms(self.settings), ModelsByVersion(self.settings.models).model)
        for before in self.decisions[:place]:
            auditor.history.add(before)
        return auditor.problems(decision)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    pair = write_random_pair(tmp_path_factory.mktemp("pair"), with_facts=True)
    folder = tmp_path_factory.mktemp("run")
    settings = override(load_settings(environment={}), "pipeline", deadline_ms=1e5, late_poll_ms=0.0)
    settings = override(settings, "models", target=str(pair[0]), draft=str(pair[1]))
    settings = override(settings, "triggers", enabled=False)
    settings = override(settings, "narrative", symbol_names={"AAA": "AAA", "BBB": "BBB"})
    write_whole(folder / SETTINGS_FILE, encode_settings(settings))
    target, draft = (open_model(path, settings.models.precision) for path in pair)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(Divided(target, draft, settings, seed=3), settings.narrative),
    }
    tables = BundleTables(fairness=FairnessConfig(test_views=True, num_swaps=1))
    text = write_bundle(BundleHead(1, "", BundleKind.QUORUM, "Ann", 0), tables)
    adopted = encode_governance(BundleAdopted(1, 0, parse_bundle(text).digest, 1, text))
    governance = RunGovernance(settings.policy, NoGovernanceLog([(adopted, "leaf")]))
    items = with_market_news(days(30, ("AAA", "BBB"), news_every=4))
    ledger = open_ledger(folder, origin=LEDGER_ORIGIN)
    loop = build_loop(settings, ListFeed(items), ledger, ListOutlet(), readers=readers, governance=governance)
    loop.run(lambda: None)
    decisions = [decode_entry(entry) for entry in ledger.entries()]
    ledger.close()
    return Recorded(folder, pair, settings, decisions)


def test_a_model_is_shown_neutral_names_and_tickers(run: Recorded) -> None:
    target = open_model(run.pair[0], run.settings.models.precision)
    prompts = [target.tokenizer.decode(trace.prompt) for _, trace in nonempty(run.traces())]
    shown = [item for _, trace in run.traces() if trace.shown is not msgspec.UNSET for item in trace.shown]
    assert all("QACM" in prompt for prompt in prompts)
    assert not [prompt for prompt in prompts if "AAA" in prompt or "BBB" in prompt]
    assert {symbol for item in shown for symbol in item.symbols} <= {"QACM", "QGLB"}
    assert any(item.headline.startswith("Acme ") for item in shown)


def test_a_neutral_prompt_is_derived_again(run: Recorded) -> None:
    for place, _ in nonempty(run.traces()):
        assert run.problems(place, run.decisions[place]) == []
    place, _ = run.traces()[0]
    assert replay_reading(run.decisions[place], run.folder, *run.pair).problems == []


def test_a_prompt_with_the_ticker_is_found_where_facts_have_neutral_names(run: Recorded) -> None:
    place, _ = run.traces()[0]
    one = run.decisions[place]
    assert one.news_context is not None
    usual = tuple(
        replace(item, reading=replace(item.reading, reader=item.reading.reader.removesuffix("+neutral/2")))
        for item in one.news_context.considered
        if item.reading is not msgspec.UNSET
    )
    forged = replace(one, news_context=replace(one.news_context, considered=usual))
    assert any("does not follow from its news" in problem for problem in run.problems(place, forged))
