"""Readings that a link delayed: each part is written again by who wrote it; amendments agree with their firsts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from checks import nonempty
from divided_generator import Divided
from htfi.adapters.stores.snapshot import write_whole
from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision, Rung, encode_decision
from htfi.domain.errors import IntegrityError
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import NewsView
from htfi.governance.ports import Tombstone
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.audit.replay import reading_of
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.loop import build_loop
from htfi.wiring.models.loading import open_model
from htfi.wiring.run import LEDGER_ORIGIN
from htfi.wiring.settings import SETTINGS_FILE, encode_settings, load_settings, override
from htfi.wiring.verification import recompute_all, replay_reading
from late_network import ListFeed, ListOutlet, days
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")

NUM_DAYS = 40


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def run(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    settings = override(
        override(load_settings(environment={}), "encoding", model="heads"),
        "pipeline",
        deadline_ms=1e5,
        late_poll_ms=0.0,
    )
    settings = override(settings, "narrative", temperature=1.0)
    write_whole(folder / SETTINGS_FILE, encode_settings(settings))
    target, draft = (open_model(path, settings.models.precision) for path in pair)
    author = Divided(target, draft, settings, seed=5)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(author, settings.narrative, target.trust, draft.trust),
    }
    ledger = open_ledger(folder, origin=LEDGER_ORIGIN)
    feed = ListFeed(days(NUM_DAYS, ("AAA", "BBB"), news_every=2))
    build_loop(settings, feed, ledger, ListOutlet(), readers=readers).run(lambda: None)
    ledger.close()
    return folder


def decisions(run: Path) -> list[Decision]:
    log = open_ledger_readonly(run)
    try:
        return [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


def worded(run: Path) -> Iterator[tuple[Decision, NewsView, GenerationTrace]]:
    for decision in decisions(run):
        if decision.view is not None and decision.view.trace is not None:
            yield decision, decision.view, decision.view.trace


def test_each_part_of_a_reading_is_written_again_by_who_wrote_it(run: Path, pair: tuple[Path, Path]) -> None:
    kinds = {"in time": 0, "provisional": 0, "amended": 0}
    for decision, view, trace in worded(run):
        done = replay_reading(decision, run, pair[0], pair[1])
        assert done.problems == []
        assert done.completion.tokens == trace.tokens
        kinds["amended" if decision.amends else "provisional" if view.provisional else "in time"] += 1
    assert min(kinds.values()) > 2, kinds
    assert kinds["amended"] == kinds["provisional"]


def test_who_read_is_told_as_it_was(run: Path) -> None:
    for decision, view, trace in nonempty(worded(run)):
        if not view.provisional:
            assert view.reader == trace.target
            assert "is provisional" not in decision.rationale.text
            continue
        both = f"{trace.target}, then {trace.draft}"
        assert view.reader == (both if trace.num_verified else trace.draft)
        assert (
            f"the target model has confirmed {trace.num_verified} of its {len(trace.tokens)} tokens"
            in decision.rationale.text
        )


def test_what_was_changed_in_a_provisional_record_is_found(run: Path, pair: tuple[Path, Path]) -> None:
    decision, view, trace = next(
        found
        for found in worded(run)
        if found[1].provisional and 3 < found[2].num_verified < len(found[2].tokens) - 3
    )
    own, other = trace.tokens[1], trace.tokens[-2]
    changes = {
        "does not begin with": replace(trace, tokens=(trace.tokens[0], own + 1, *trace.tokens[2:])),
        "continuing from": replace(trace, tokens=(*trace.tokens[:-2], other + 1, trace.tokens[-1])),
        "none is the draft's": replace(trace, num_verified=len(trace.tokens)),
        "provisional mark does not follow": replace(trace, num_verified=-1),
    }
    for told, changed in changes.items():
        done = replay_reading(replace(decision, view=replace(view, trace=changed)), run, pair[0], pair[1])
        assert any(told in problem for problem in done.problems), (told, done.problems)
    flipped = replace(decision, view=replace(view, volatility_multiplier=view.volatility_multiplier + 1.0))
    assert replay_reading(flipped, run, pair[0], pair[1]).problems == [
        "the view does not follow from the tokens"
    ]


def test_a_kept_view_leads_to_the_one_of_two_decisions_that_gave_it(run: Path) -> None:
    found = decisions(run)
    by_id = {decision.id: decision for decision in found}
    log = open_ledger_readonly(run)
    ways = {"amended": 0, "provisional": 0}
    try:
        for decision in found:
            view = decision.view
            if view is None or view.trace is not None:
                continue
            first = by_id[reading_of(decision, log.entries()).id.removesuffix("/amended")]
            if first.awaits_amendment:
                read = reading_of(decision, log.entries())
                assert bool(read.amends) == (not view.provisional)
                ways["amended" if read.amends else "provisional"] += 1
    finally:
        log.close()
    assert min(ways.values()) > 0, ways


def test_the_command_replays_an_amendment_by_its_own_id(run: Path, pair: tuple[Path, Path]) -> None:
    amended = next(decision for decision, *_ in worded(run) if decision.amends)
    done = CliRunner().invoke(cli, ["ledger", "replay", str(run), amended.id, "--target", str(pair[0])])
    assert done.exit_code == 0, done.output
    assert amended.id.endswith("/amended")


def test_a_ledger_with_amendments_is_derived_again_and_tampering_is_named(run: Path, tmp_path: Path) -> None:
    entries = [encode_decision(decision) for decision in decisions(run)]
    check(run, entries)
    place, amended = next((k, one) for k, one in enumerate(decisions(run)) if one.amends)
    first = next(k for k, one in enumerate(decisions(run)) if one.id == amended.amends)
    before = decode_entry(entries[first])
    assert amended.view is not None
    parts = amended.rationale.template.rsplit("+", 1)
    said = {"confirming": "amending", "amending": "confirming"}
    from htfi.narrative.rationale.phrasing import fill
    from htfi.narrative.rationale.versions import phrasing_of

    template = f"{parts[0]}+{said[parts[1]]}"
    text = fill(template, amended.rationale.slots, phrasing_of(amended.models))
    otherwise = replace(amended.rationale, template=template, text=text)
    changes = {
        "already amended": [*entries[: place + 1], entries[place]],
        "not an earlier provisional": [*entries[:first], *entries[first + 1 :]],
        "changes more than the view": changed(entries, place, replace(amended, last_price=1.0)),
        "not named after": changed(entries, place, replace(amended, id=before.id)),
        "no view by the target": changed(entries, place, replace(amended, view=None)),
        "states wrongly whether it confirms the provisional view": changed(
            entries, place, replace(amended, rationale=otherwise)
        ),
        "states wrongly whether the reading is provisional": changed(
            entries, first, replace(before, rationale=amended.rationale)
        ),
    }
    for told, altered in changes.items():
        with pytest.raises(IntegrityError, match=told):
            check(run, altered)


def changed(entries: list[bytes], place: int, decision: Decision) -> list[bytes]:
    return [*entries[:place], encode_decision(decision), *entries[place + 1 :]]


def check(run: Path, entries: list[bytes]) -> None:
    class Told:
        key = open_ledger_readonly(run).key

        def entries(self, start: int, stop: int) -> Iterator[bytes]:
            yield from entries[start:stop]

        def entry(self, index: int) -> bytes:
            return entries[index]

        def tombstones(self, start: int, stop: int) -> list[Tombstone]:
            return []

    recompute_all(run, Told(), len(entries), lambda *_: None)  # type: ignore[arg-type]
