"""Facts reach a model's prompt in a run, are recorded, and are derived again from what the decision records."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from checks import nonempty
from divided_generator import Divided
from htfi.adapters.stores.snapshot import write_whole
from htfi.domain.decision import Decision, Rung
from htfi.domain.generation_trace import GenerationTrace, PromptItem
from htfi.narrative.fact_marks import FACT_MARKS, marks_of
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.audit.readings import ReadingAuditor
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.loop import build_loop
from htfi.wiring.models.loading import open_model
from htfi.wiring.run import LEDGER_ORIGIN
from htfi.wiring.settings import SETTINGS_FILE, Settings, encode_settings, load_settings, override
from htfi.wiring.verification import ModelsByVersion, reading_terms, recompute_all, replay_reading
from late_network import ListFeed, ListOutlet, days, with_market_news
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")


class Recorded(NamedTuple):
    """A run whose readings are partly provisional, and its decisions."""

    folder: Path
    pair: tuple[Path, Path]
    settings: Settings
    decisions: list[Decision]

    @property
    def read(self) -> list[int]:
        return [place for place, one in enumerate(self.decisions) if one.view and one.view.trace]

    def problems(self, place: int, decision: Decision) -> list[str]:
        auditor = ReadingAuditor(reading_terms(self.settings), ModelsByVersion(self.settings.models).model)
        for before in self.decisions[:place]:
            auditor.history.add(before)
        return auditor.problems(decision)


@pytest.fixture(scope="module", params=[True, False], ids=["with marks", "without marks"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    pair = write_random_pair(tmp_path_factory.mktemp("pair"), with_facts=request.param)
    folder = tmp_path_factory.mktemp("run")
    settings = override(load_settings(environment={}), "pipeline", deadline_ms=1e5, late_poll_ms=0.0)
    settings = override(settings, "models", target=str(pair[0]), draft=str(pair[1]))
    settings = override(settings, "triggers", enabled=False)
    write_whole(folder / SETTINGS_FILE, encode_settings(settings))
    target, draft = (open_model(path, settings.models.precision) for path in pair)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(Divided(target, draft, settings, seed=3), settings.narrative),
    }
    items = with_market_news(days(30, ("AAA", "BBB"), news_every=4))
    ledger = open_ledger(folder, origin=LEDGER_ORIGIN)
    build_loop(settings, ListFeed(items), ledger, ListOutlet(), readers=readers).run(lambda: None)
    decisions = [decode_entry(entry) for entry in ledger.entries()]
    ledger.close()
    return Recorded(folder, pair, settings, decisions)


def trace_of(decision: Decision) -> GenerationTrace:
    assert decision.view is not None
    assert decision.view.trace is not None
    return decision.view.trace


def shown_of(decision: Decision) -> tuple[PromptItem, ...]:
    shown = trace_of(decision).shown
    assert shown is not msgspec.UNSET
    return shown


def has_marks(run: Recorded) -> bool:
    target = open_model(run.pair[0], run.settings.models.precision)
    return target.tokenizer.special(f"<{FACT_MARKS[0]}>") is not None


def test_a_model_is_shown_the_facts_that_the_decision_records(run: Recorded) -> None:
    assert len(run.read) >= 4
    target = open_model(run.pair[0], run.settings.models.precision)
    ids = {target.tokenizer.special(f"<{mark}>") for mark in FACT_MARKS} - {None}
    for place in run.read:
        one = run.decisions[place]
        assert one.news_context is not None
        readings = {item.id: item.reading for item in one.news_context.considered}
        told = [mark for item in shown_of(one) for mark in (item.facts or ())]
        assert sum(token in ids for token in trace_of(one).prompt) == len(told)
        for item in shown_of(one):
            reading = readings[item.id]
            assert reading is not msgspec.UNSET
            assert item.facts == (marks_of(reading) if has_marks(run) else msgspec.UNSET)


def test_everything_is_derived_again(run: Recorded) -> None:
    log = open_ledger_readonly(run.folder)
    try:
        found = recompute_all(run.folder, log, log.size, lambda *_: None, run.pair)
    finally:
        log.close()
    assert found.num_readings == len(run.read)
    assert found.num_not_checked == {}
    for place in run.read[:4]:
        assert replay_reading(run.decisions[place], run.folder, *run.pair).problems == []


def with_shown(decision: Decision, change: Callable[[PromptItem], PromptItem]) -> Decision:
    assert decision.view is not None
    trace = replace(trace_of(decision), shown=tuple(map(change, shown_of(decision))))
    return replace(decision, view=replace(decision.view, trace=trace))


def test_other_facts_than_those_recorded_are_found(run: Recorded) -> None:
    for place in nonempty(run.read):
        one = run.decisions[place]
        assert run.problems(place, one) == []
        made_up = with_shown(one, lambda item: replace(item, facts=("e_war", "rise3", "sure3", "near2")))
        assert any("facts of" in problem for problem in run.problems(place, made_up))
        if not has_marks(run):
            continue
        left_out = with_shown(one, lambda item: replace(item, facts=msgspec.UNSET))
        assert any("facts of" in problem for problem in run.problems(place, left_out))
        assert one.news_context is not None
        turned = tuple(
            replace(item, reading=replace(item.reading, direction=-item.reading.direction or 1, score=0.9))
            for item in one.news_context.considered
            if item.reading is not msgspec.UNSET
        )
        forged = replace(one, news_context=replace(one.news_context, considered=turned))
        assert any("facts of" in problem for problem in run.problems(place, forged))
