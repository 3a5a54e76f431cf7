"""A reading is checked against its decision: another's under it, and every single change, is found and named."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from checks import nonempty
from divided_generator import Divided
from htfi.adapters.stores.decisions import DecisionJournal
from htfi.adapters.stores.snapshot import write_whole
from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision, Rung, encode_decision
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import NewsView
from htfi.narrative.answer import ConfidenceCalibration
from htfi.narrative.deep_reader import DeepReader
from htfi.narrative.merging import merge_views
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.narrative.view_calibration import NUM_MOVE_FEATURES, NUM_WIDTH_FEATURES, ViewCalibration
from htfi.pipeline.audit.readings import ReadingAuditor
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.loop import build_loop
from htfi.wiring.models.loading import open_model, write_trust
from htfi.wiring.models.readers import in_full_precision
from htfi.wiring.run import LEDGER_ORIGIN
from htfi.wiring.settings import SETTINGS_FILE, Settings, encode_settings, load_settings, override
from htfi.wiring.verification import ModelsByVersion, reading_terms, recompute_all, replay_reading
from late_network import ListFeed, ListOutlet, days
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")

Change = Callable[[Decision, Decision], Decision]
MEANING = ViewCalibration(
    (1, 5, 22), tuple(((0.1,) * NUM_MOVE_FEATURES,) * 3), tuple(((0.01,) * NUM_WIDTH_FEATURES,) * 3)
)


class Ledger(NamedTuple):
    """A run of late, provisional, amended and deep readings, and of decisions that keep them."""

    folder: Path
    pair: tuple[Path, Path]
    settings: Settings
    decisions: list[Decision]
    models: ModelsByVersion

    @property
    def read(self) -> list[int]:
        """The places of those that a model read for."""
        return [place for place, one in enumerate(self.decisions) if one.view and one.view.trace]

    def problems(self, place: int, decision: Decision) -> list[str]:
        """What is found of a decision in the place of a recorded one."""
        readings = ReadingAuditor(reading_terms(self.settings), self.models.model)
        for before in self.decisions[:place]:
            readings.history.add(before)
        return readings.problems(decision)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    pair = write_random_pair(tmp_path_factory.mktemp("pair"))
    for folder in pair:
        write_trust(folder, ConfidenceCalibration(), MEANING)
    folder = tmp_path_factory.mktemp("run")
    settings = override(
        override(load_settings(environment={}), "encoding", model="heads"),
        "pipeline",
        deadline_ms=1e5,
        late_poll_ms=0.0,
    )
    settings = override(settings, "narrative", temperature=1.0, deep_paths=3)
    settings = override(settings, "scheduling", high_divergence=0.5)
    settings = override(settings, "triggers", enabled=False)  # readings at the close of bars alone
    settings = override(settings, "models", target=str(pair[0]), draft=str(pair[1]))
    write_whole(folder / SETTINGS_FILE, encode_settings(settings))
    target, draft = (open_model(path, settings.models.precision) for path in pair)
    author, full = Divided(target, draft, settings, seed=3), in_full_precision(target)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(
            author, settings.narrative, target.trust, draft.trust, target.meaning, draft.meaning
        ),
        Rung.DEEP: DeepReader(
            full.plain_generator(settings.decoding), settings.narrative, full.trust, full.meaning
        ),
    }
    ledger = open_ledger(folder, origin=LEDGER_ORIGIN)
    feed = ListFeed(days(44, ("AAA", "BBB"), news_every=3))
    build_loop(settings, feed, ledger, ListOutlet(), readers=readers).run(lambda: None)
    decisions = [decode_entry(entry) for entry in ledger.entries()]
    ledger.close()
    return Ledger(folder, pair, settings, decisions, ModelsByVersion(settings.models))


def parts_of(decision: Decision) -> tuple[NewsView, GenerationTrace]:
    view = decision.view
    assert view is not None
    assert view.trace is not None
    return view, view.trace


def worded(decision: Decision, **changes: object) -> Decision:
    view, trace = parts_of(decision)
    return replace(decision, view=replace(view, trace=replace(trace, **changes)))


def viewed(decision: Decision, **changes: object) -> Decision:
    assert decision.view is not None
    return replace(decision, view=replace(decision.view, **changes))


OTHERS: dict[str, Change] = {  # what is taken from another decision
    "view": lambda one, other: replace(one, view=other.view),
    "view as of then": lambda one, other: replace(one, view=viewed(other, as_of_ns=one.as_of_ns).view),
    "wording": lambda one, other: viewed(one, trace=parts_of(other)[1]),
    "wording but seed": lambda one, other: viewed(
        one, trace=replace(parts_of(other)[1], seed=parts_of(one)[1].seed)
    ),
    "prompt": lambda one, other: worded(one, prompt=parts_of(other)[1].prompt),
    "tokens": lambda one, other: worded(
        one, tokens=parts_of(other)[1].tokens, paths=parts_of(other)[1].paths
    ),
    "prompt and tokens": lambda one, other: worded(
        one, prompt=parts_of(other)[1].prompt, tokens=parts_of(other)[1].tokens
    ),
    "seed": lambda one, other: worded(one, seed=parts_of(other)[1].seed),
    "items shown": lambda one, other: worded(
        one, shown=parts_of(other)[1].shown, num_items=parts_of(other)[1].num_items
    ),
    "cited": lambda one, other: viewed(one, cited=parts_of(other)[0].cited),
    "confidence": lambda one, other: viewed(one, confidence=parts_of(other)[0].confidence),
    "calibrated_effects": lambda one, other: viewed(
        one, calibrated_effects=parts_of(other)[0].calibrated_effects
    ),
}
ALONE: dict[str, Callable[[Decision], Decision]] = {  # what is made up
    "its seed is": lambda one: worded(one, seed=parts_of(one)[1].seed + 1),
    "its temperature is": lambda one: worded(one, temperature=0.5),
    "items": lambda one: worded(one, num_items=parts_of(one)[1].num_items + 1),
    "other-int8@0123 generated it, but": lambda one: worded(one, target="other-int8@0123"),
    "drafted, but": lambda one: replace(
        worded(one, draft="other@1"), models={**one.models, "reader.edge": "draft@2"}
    ),
    "half-life": lambda one: viewed(one, half_life_ns=parts_of(one)[0].half_life_ns * 2),
    "another time|uses an earlier view|not the newest": lambda one: viewed(
        one, as_of_ns=parts_of(one)[0].as_of_ns - 1
    ),
    "different reader": lambda one: viewed(one, reader="nobody@0"),
    "different calibrated_effects|from its readings": lambda one: viewed(
        one, calibrated_effects=parts_of(one)[0].calibrated_effects[:-1]
    ),
    "is not one of its news items": lambda one: viewed(one, cited=("made up",)),
    "not recorded": lambda one: viewed(one, trace=None, reader=one.models["reader.speculative"]),
    "provisional mark does not follow": lambda one: viewed(one, provisional=not parts_of(one)[0].provisional),
    "was prepared|prepared time|time": lambda one: worded(one, asked_ns=one.as_of_ns - 1),
    "its prompt does not follow from its news": lambda one: replace(one, symbol="CCC"),
}


def test_the_run_has_every_kind_of_reading(run: Ledger) -> None:
    kinds = {"in time": 0, "provisional": 0, "amended": 0, "deep": 0}
    for place in run.read:
        one = run.decisions[place]
        view, trace = parts_of(one)
        told = "amended" if one.amends else "provisional" if view.provisional else "in time"
        kinds["deep" if trace.paths else told] += 1
    assert min(kinds.values()) >= 2, kinds
    assert sum(one.awaits_amendment and not one.has_own_reading for one in run.decisions) > 2


def test_what_is_untouched_raises_no_alarm(run: Ledger) -> None:
    log = open_ledger_readonly(run.folder)
    try:
        found = recompute_all(run.folder, log, log.size, lambda *_: None, run.pair)
    finally:
        log.close()
    assert found.num_readings == len(run.read) > 8
    assert found.num_not_checked == {}
    assert found.num_pending == 0


@pytest.mark.parametrize("what", OTHERS)
def test_another_readings_is_found_under_every_decision(run: Ledger, what: str) -> None:
    dice, num = random.Random(what), 0
    for place in run.read:
        for other in dice.sample(run.read, 5):
            one = run.decisions[place]
            changed = OTHERS[what](one, run.decisions[other])
            is_same = run.decisions[other].id.split("/am")[0] == one.id.split("/am")[0]  # one question
            if changed == one or is_same:
                continue
            num += 1
            assert run.problems(place, changed), f"{what} of {other} under {place}"
    assert num > 5


@pytest.mark.parametrize("told", ALONE)
def test_what_is_made_up_is_named(run: Ledger, told: str) -> None:
    num = 0
    for place in run.read:
        changed = ALONE[told](run.decisions[place])
        if changed == run.decisions[place]:
            continue
        num += 1
        problems = run.problems(place, changed)
        assert any(one in problem for problem in problems for one in told.split("|")), (told, place, problems)
    assert num > 5


def test_a_view_that_is_kept_is_the_newest_of_its_series(run: Ledger) -> None:
    kept = [
        place
        for place, one in enumerate(run.decisions)
        if one.view is not None and not one.amends and not one.has_own_reading
    ]
    assert len(kept) > 5
    for place in kept:
        one = run.decisions[place]
        assert run.problems(place, one) == []
        for other in run.read:
            view = replace(parts_of(run.decisions[other])[0], trace=None)
            if view.as_of_ns < one.as_of_ns and replace(one, view=view) != one:
                assert run.problems(place, replace(one, view=view)), (place, other)
        assert run.problems(place, viewed(one, confidence=0.123))


def test_a_reading_that_is_left_out_for_the_view_before_it_is_found(run: Ledger) -> None:
    num = 0
    for place in run.read:
        one = run.decisions[place]
        before = [
            parts_of(run.decisions[other])[0]
            for other in run.read
            if other < place and run.decisions[other].series == one.series and not one.amends
        ]
        if before and before[-1].as_of_ns < one.as_of_ns:
            num += 1
            kept = replace(one, view=replace(before[-1], trace=None))
            assert any("its news differs" in problem for problem in run.problems(place, kept))
    assert num > 3


def test_a_reading_is_written_again_whatever_it_was_merged_with(run: Ledger) -> None:
    for place in nonempty(run.read[:6]):
        one = run.decisions[place]
        view, _ = parts_of(one)
        assert replay_reading(one, run.folder, *run.pair).problems == []
        discounted = replace(one, view=merge_views(view, 0.5, [], one.as_of_ns))
        assert discounted != one or view.confidence == 0.0
        assert replay_reading(discounted, run.folder, *run.pair).problems == []


def test_a_changed_token_is_named_by_its_place(run: Ledger) -> None:
    dice, num = random.Random(1), 0
    for place in dice.sample(run.read, 6):
        one = run.decisions[place]
        _, trace = parts_of(one)
        tokens = trace.paths[0] if trace.paths else trace.tokens
        at = dice.randrange(1, len(tokens) - 1)
        changed = (*tokens[:at], tokens[at] - 1, *tokens[at + 1 :])
        paths = (changed, *trace.paths[1:]) if trace.paths else ()
        told = replay_reading(worded(one, tokens=changed, paths=paths), run.folder, *run.pair).problems
        named = [f"token {at}: recorded '", f"({changed[at]}), expected '", f"({tokens[at]})"]
        assert any(all(part in problem for part in named) for problem in told), (place, at, told)
        at = dice.randrange(len(trace.prompt))
        prompt = (*trace.prompt[:at], trace.prompt[at] + 1, *trace.prompt[at + 1 :])
        (problem, *_) = run.problems(place, worded(one, prompt=prompt))
        assert f"token {at}: recorded '" in problem
        assert f"({trace.prompt[at]})" in problem
        num += 1
    assert num == 6


def rewritten(run: Ledger, folder: Path, changes: dict[int, Decision | None]) -> Path:
    """The same ledger by one who has the key, but for some entries: every hash and signature holds."""
    folder.mkdir()
    write_whole(folder / SETTINGS_FILE, encode_settings(run.settings))
    ledger = open_ledger(folder, origin=LEDGER_ORIGIN, durable=False)
    told = [changes.get(place, one) for place, one in enumerate(run.decisions)]
    journal, entries = DecisionJournal(folder), [encode_decision(one) for one in told if one is not None]
    for receipt, entry in zip(ledger.append(entries), entries, strict=True):
        journal.release(receipt, entry)
    journal.close()
    ledger.close()
    return folder


def test_a_ledger_written_again_with_another_reading_is_found_by_both_commands(
    run: Ledger, tmp_path: Path
) -> None:
    first, second = (place for place in run.read[:2])
    one, other = run.decisions[first], run.decisions[second]
    assert one.view != other.view
    swapped = rewritten(run, tmp_path / "swapped", {first: replace(one, view=other.view)})
    models = ["--target", str(run.pair[0]), "--draft", str(run.pair[1])]
    verify = CliRunner().invoke(cli, ["ledger", "verify", str(swapped), "--recompute", *models])
    assert verify.exit_code == 1
    assert f"entry {first} cannot be derived again" in str(verify.exception)
    done = CliRunner().invoke(cli, ["ledger", "replay", str(swapped), one.id, *models])
    assert done.exit_code == 1
    assert "its seed is" in str(done.exception)
    assert CliRunner().invoke(cli, ["ledger", "verify", str(swapped)]).exit_code == 0


def test_an_amendment_that_is_left_out_or_changed_is_found(run: Ledger, tmp_path: Path) -> None:
    carried = [
        place
        for place, one in enumerate(run.decisions)
        if one.amends and one.view and not one.has_own_reading
    ]
    assert carried
    place = carried[0]
    one = run.decisions[place]
    cases: Iterator[tuple[str, Decision | None]] = iter([
        (f"the amendment of {one.amends} is missing", None),
        ("its view is not the one of", viewed(one, volatility_multiplier=2.75)),
    ])  # fmt: skip
    for told, changed in cases:
        folder = rewritten(run, tmp_path / told[:8].strip(), {place: changed})
        verify = CliRunner().invoke(cli, ["ledger", "verify", str(folder), "--recompute"])
        assert verify.exit_code == 1
        assert told in str(verify.exception)
