"""Stories that labelled lines word: what a line means for an asset of the world, and the facts that are read of it."""

from pathlib import Path

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import ControlToken, PlainText
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.record import KINDS, ROLES, EventKind, Modality, Tense
from htfi_train.facts.line_events import LineEvents
from htfi_train.facts.lines import FactLine, read_lines
from htfi_train.facts.story_facts import StoryFacts
from htfi_train.simulation.companies import SimulatedAsset
from htfi_train.simulation.corpus import TokenKind, passage, training_passages
from htfi_train.simulation.events import NewsEvent, NewsEventKind
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.stories import Story, stories_of_market

ASSETS = (
    SimulatedAsset("NRV", "Norvane Energy", "Norvane"),
    SimulatedAsset("HLC", "Halcyon Foods", "Halcyon"),
    SimulatedAsset("SPX", "S&P 500", "S&P 500", "index USD", company=False),
    SimulatedAsset("VIX", "Volatility index", "Volatility index", "fear", company=False),
)
TAKEOVER = "## acquisition\n++ d f | {target+ Puma} jumps as {acquirer- Anta} pays too much\n"


def lines_of(folder: Path, text: str) -> list[FactLine]:
    (folder / "a.txt").write_text(text, encoding="utf-8")
    return read_lines(folder)


def drawn(folder: Path, text: str, num: int = 40) -> list[NewsEvent]:
    events = LineEvents(lines_of(folder, text))
    found = [events(Rng(1, number), ASSETS) for number in range(num)]
    return [event for event in found if event is not None]


def test_parties_become_companies_of_the_world_with_what_the_line_means_for_each(tmp_path: Path) -> None:
    found = drawn(tmp_path, TAKEOVER)
    assert len(found) == 40
    for event in found:
        target, acquirer = (next(one for one in ASSETS if one.symbol == name) for name in event.symbols)
        assert event.phrases == (f"{target.short} jumps as {acquirer.short} pays too much",)
        assert event.effect_on(target) > 0.0 > event.effect_on(acquirer)
        assert not event.concerns(ASSETS[2])
        assert "good" in event.why  # for the target, which is the subject
    assert {event.subject for event in found} == {"NRV", "HLC"}


def test_a_line_on_the_market_moves_each_asset_by_the_table(tmp_path: Path) -> None:
    for event in nonempty(
        drawn(tmp_path, "## tariffs\n-- d f | White House slaps 25% tariffs on all imports\n")
    ):
        assert event.symbols == ()
        assert event.kind is NewsEventKind.GEOPOLITICS
        assert event.effect_on(ASSETS[2]) < 0.0 < event.effect_on(ASSETS[3])


@pytest.mark.parametrize(
    "line", ["## unrelated\n00 d f | Marathon record falls in Berlin", "## deal\n++ d f | Boeing wins order"]
)
def test_what_is_about_no_asset_of_the_world_moves_none(tmp_path: Path, line: str) -> None:
    found = drawn(tmp_path, line + "\n")
    assert all(not event.concerns(asset) for event in found for asset in ASSETS)
    tagged = {event.symbols for event in found}
    assert tagged == (set() if "Boeing" in line else {(), ("NRV",), ("HLC",)})


def test_what_is_known_already_moves_nothing(tmp_path: Path) -> None:
    for event in nonempty(
        drawn(tmp_path, "## earnings\n++ d o | Why {subject+ Puma} jumped 10% last week\n")
    ):
        assert dict(event.effects or ()) == {event.subject: 0.0}


def test_lines_that_cannot_be_worded_are_left_out(tmp_path: Path) -> None:
    text = f"## routine\n00 d f | {'long ' * 40}\n00 d f | a [bracket]\n"
    with pytest.raises(InvalidInput, match="no line"):
        LineEvents(lines_of(tmp_path, text))


def sure_scores(tone: int, length: int) -> FactScores:
    side = np.eye(3)[1 - tone]
    return FactScores(
        event=np.eye(len(KINDS))[KINDS.index(EventKind.EARNINGS)],
        tone=side, axis=side, modality=np.eye(len(Modality))[0], tense=np.eye(len(Tense))[0],
        spans=np.array([[0, length]]), roles=np.eye(len(ROLES) + 1)[[0]], effects=side[None],
    )  # fmt: skip


class Optimist:
    """A network that finds everything good, the last line of a corpus bad."""

    version = "optimist@1"

    def read(self, texts: list[str]) -> list[FactScores]:
        return [sure_scores(-1 if "misread" in text else 1, len(text)) for text in texts]


def some_stories(tmp_path: Path) -> list[Story]:
    events = LineEvents(lines_of(tmp_path, TAKEOVER))
    return [story for number in range(12) for story in stories_of_market(3, number, events)]


def test_stories_get_readings_and_noise_comes_from_lines_that_were_held_back(tmp_path: Path) -> None:
    stories = some_stories(tmp_path)
    (held_back,) = lines_of(tmp_path, "## earnings\n++ d f | {subject+ Puma} gains, misread\n")
    facts = StoryFacts(FactReader(Optimist(), EntityLinker({})), [held_back])
    plain = list(facts.of_stories(stories))
    assert all(len(story.readings) == len(story.items) for story in plain)
    assert all(one is not None and one.direction >= 0 for story in plain for one in story.readings)
    noisy = facts.noisy(stories, Rng(5))
    assert noisy == facts.noisy(stories, Rng(5))
    unknown = sum(not story.readings for story in noisy if story.items) / len(noisy)
    assert 0.04 < unknown < 0.13
    places = [
        (place in story.from_lines, one)
        for story in noisy
        for place, one in enumerate(story.readings)
        if one is not None and one.silence == ""
    ]
    wrong = [one.direction < 0 for is_line, one in places if is_line]
    assert 0.08 < sum(wrong) / len(wrong) < 0.25
    assert not any(one.direction < 0 for is_line, one in places if not is_line)


def test_training_shows_facts_where_they_are_asked_for(tmp_path: Path) -> None:
    story = next(one for one in some_stories(tmp_path) if one.items)
    facts = StoryFacts(FactReader(Optimist(), EntityLinker({})))
    (read,) = facts.of_stories([story])
    told = [part.segment for part in passage(read) if isinstance(part.segment, ControlToken)]
    assert ControlToken("e_earnings") in told
    assert ControlToken("e_earnings") not in [part.segment for part in passage(story)]
    texts = [part.segment.text for part in passage(read) if isinstance(part.segment, PlainText)]
    assert texts == [part.segment.text for part in passage(story) if isinstance(part.segment, PlainText)]
    parts = next(training_passages(13, 1, facts, LineEvents(lines_of(tmp_path, TAKEOVER))))
    assert {part.kind for part in parts} >= {TokenKind.TEXT, TokenKind.VIEW, TokenKind.PATH}


def test_a_line_may_keep_a_name_that_no_one_is_told_is_the_subjects(tmp_path: Path) -> None:
    found = drawn(tmp_path, "## sales_update\n++ d f | {subject+ Zalando} sells more shoes than ever\n", 80)
    kept = [event for event in found if event.is_nameless]
    assert 30 < len(kept) < 66
    assert {event.phrases for event in kept} == {("Zalando sells more shoes than ever",)}
    assert all(dict(event.effects or ()).get(event.subject, 0.0) > 0.0 for event in found)
    assert all("Zalando" not in event.phrases[0] for event in found if not event.is_nameless)
    events = LineEvents(lines_of(tmp_path, "## deal\n++ d f | {subject+ Zalando} wins an order\n"))
    stories = [story for number in range(9) for story in stories_of_market(4, number, events)]
    told = [
        one
        for one in stories
        if one.truth.cited and "Zalando" in one.items[0].headline and len(one.items) == 1
    ]
    assert told
    for story in told:
        assert story.name == ""
        assert story.symbol in story.items[0].symbols
