"""Many answers to one question: what is asked, and what they come to together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.domain.generation import Completion, GenerationRequest, PromptDialect, RequestRefused
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.answer import ParsedAnswer
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import DeepReader, combine_answers, path_seed
from htfi.narrative.question import Question
from late_network import written


def said(direction: float, size: float = 2.0, **more: object) -> ParsedAnswer:
    told = {
        "volatility_multiplier": 1.5, "confidence": 0.7, "consistency": "unmoved", "cause": "legal",
        "cited": (0,), "words": f"{direction:g} by {size:g}",
    }  # fmt: skip
    return ParsedAnswer(direction, size if direction else 0.0, **{**told, **more})  # type: ignore[arg-type]


def test_answers_that_agree_are_one_answer() -> None:
    one, nearest = combine_answers([said(1.0)] * 5)
    assert one == said(1.0)
    assert nearest == 0


def test_answers_that_spread_leave_little_confidence_and_the_mean_effect() -> None:
    split = [said(1.0)] * 3 + [said(-1.0)]
    one, nearest = combine_answers(split)
    assert (one.direction, one.size_sigmas, one.confidence) == (1.0, 2.0, 0.35)
    mean_effect = sum(x.confidence * x.direction * x.size_sigmas for x in split) / 4
    assert one.confidence * one.direction * one.size_sigmas == pytest.approx(mean_effect)
    assert nearest == 0
    even, _ = combine_answers([said(1.0), said(-1.0)])
    assert even.confidence == 0.0


def test_flat_answers_are_flat_and_as_sure_as_they_were() -> None:
    one, _ = combine_answers([said(0.0, confidence=0.9), said(0.0, confidence=0.7)])
    assert (one.direction, one.size_sigmas, one.confidence) == (0.0, 0.0, 0.8)


def test_the_words_are_of_an_answer_that_points_the_way_of_all() -> None:
    one, nearest = combine_answers(
        [said(-1.0, 3.0), said(0.0), said(1.0, 7.0), said(1.0, 2.0), said(1.0, 1.5)]
    )
    assert one.direction == 1.0
    assert nearest == 3
    assert one.words == "1 by 2"


def test_what_most_answers_name_is_cited_and_the_commonest_cause_told() -> None:
    told = [
        said(1.0, cited=(0, 2), cause="legal"),
        said(1.0, cited=(2,), cause="rumour"),
        said(1.0, cited=(2, 1), cause="rumour"),
        said(1.0, cited=(0,), cause="supply"),
    ]
    one, _ = combine_answers(told)
    assert one.cited == (0, 2)
    assert one.cause == "rumour"


@dataclass
class Author:
    dialect: PromptDialect = PromptDialect.PLAIN
    refused_above: int = 99  # items shown
    version: str = "big@1"
    speculation_stats: None = None
    asked: list[GenerationRequest] = field(default_factory=list)

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        self.asked += requests
        return [
            RequestRefused("too long") if _shown(request) > self.refused_above else written(request.id)
            for request in requests
        ]


def _shown(request: GenerationRequest) -> int:
    return str(request.prompt).count("item-")


def question(num_items: int) -> Question:
    items = tuple(News(k, k, "wire", k, f"n{k}", f"headline item-{k}") for k in range(num_items, 0, -1))
    return Question("A", NS_PER_DAY, NS_PER_DAY, items, (0.1,) * 32)


def test_every_answer_has_its_own_seed_and_all_are_one_view() -> None:
    author = Author()
    (view,) = DeepReader(author, NarrativeConfig(deep_paths=8)).read([question(3)], 100.0)
    assert len({request.seed for request in author.asked}) == 8
    assert {request.temperature for request in author.asked} == {1.0}
    assert view.reader == "8 answers of big@1"
    assert view.trace is not None
    assert [request.seed for request in author.asked] == [path_seed(view.trace.seed, k) for k in range(8)]
    assert view.trace.paths == tuple(written(request.id).tokens for request in author.asked)
    assert view.trace.tokens in view.trace.paths


@pytest.mark.parametrize(("dialect", "num_shown"), [(PromptDialect.PLAIN, 20), (PromptDialect.MINI, 6)])
def test_as_many_items_are_shown_as_the_form_admits(dialect: PromptDialect, num_shown: int) -> None:
    author = Author(dialect)
    DeepReader(author, NarrativeConfig(deep_paths=2)).read([question(20)], 100.0)
    assert {_shown(request) for request in author.asked} == {num_shown}


def test_what_is_too_long_is_asked_again_with_fewer_items() -> None:
    author = Author(refused_above=10)
    (view,) = DeepReader(author, NarrativeConfig(deep_paths=2)).read([question(20)], 100.0)
    assert [_shown(request) for request in author.asked] == [20, 20, 6, 6]
    assert view.trace is not None
    assert view.trace.num_items == 6


def test_what_is_refused_altogether_is_no_opinion_and_says_why() -> None:
    (view,) = DeepReader(Author(refused_above=0), NarrativeConfig(deep_paths=2)).read([question(20)], 100.0)
    assert view.confidence == 0.0
    assert view.words == "not read: too long"


def test_the_number_of_answers_is_bounded() -> None:
    for changed in ({"deep_paths": 0}, {"deep_paths": 257}, {"deep_temperature": -0.1}):
        with pytest.raises(InvalidInput):
            NarrativeConfig(**changed)  # type: ignore[arg-type]
