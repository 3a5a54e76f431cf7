"""The news of a recorded decision as text, with the words that counted."""

import pytest
from msgspec.structs import replace

import htfi
from htfi.client.news_bodies import ReadNewsBody
from htfi.domain.decision import Decision
from htfi.domain.generation_trace import GenerationTrace, PromptItem, StateDigests
from htfi.domain.news_view import NewsView
from htfi.library.serving.read_news import read_news_of
from page_run import BEATS, RAISES, record_news


@pytest.fixture(scope="module")
def decisions(tmp_path_factory: pytest.TempPathFactory) -> list[Decision]:
    with htfi.open_ledger(record_news(tmp_path_factory.mktemp("news") / "run")) as ledger:
        return list(ledger)


def marked(body: ReadNewsBody) -> dict[str, list[str]]:
    return {
        one.headline: [one.headline[phrase.start : phrase.end] for phrase in one.phrases]
        for one in body.items
    }


def test_headlines_that_a_decision_cites_are_shown_cleaned_with_their_phrases(
    decisions: list[Decision],
) -> None:
    found = read_news_of(decisions[-2], len(decisions) - 2)
    assert marked(found) == {
        RAISES: ["AAA", "raises its profit outlook"],
        BEATS: ["AAA", "beats estimates", "$1.40", "$1.35"],
    }
    assert found.num_without_text == 0
    assert [one.reading.partition(",")[0] for one in found.items] == ["facts: guidance", "facts: earnings"]


def test_decision_without_news_has_none(decisions: list[Decision]) -> None:
    assert read_news_of(decisions[0], 0) == ReadNewsBody(0, [], 0)


def test_item_whose_text_is_not_recorded_is_counted_alone(decisions: list[Decision]) -> None:
    last = decisions[-2]
    silent = replace(last, rationale=replace(last.rationale, slots={}))
    assert read_news_of(silent, 1) == ReadNewsBody(1, [], 2)


def test_words_that_a_model_weighed_are_named_where_they_were_recorded(decisions: list[Decision]) -> None:
    last = decisions[-2]
    text = "Acme surprises everyone today"
    trace = GenerationTrace(
        "target", "", "plain", 1, 1.0, 1, (), (), (),
        shown=(PromptItem("n1", 0, ("AAA",), text),),
        states=StateDigests("", "", ((0, 12_500, -100, 0),)),
    )  # fmt: skip
    view = NewsView(1.0, 1.0, 1.0, 0.5, ("n1",), 0, 1, trace=trace)
    found = read_news_of(replace(last, view=view), 1)
    assert marked(found)[text] == ["surprises"]
