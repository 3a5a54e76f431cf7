"""The reader in depth whose target is elsewhere: a view when all answers have come, in bounds, and nothing before."""

from collections.abc import Sequence

from htfi.domain.events import News
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import MAX_PENDING_READINGS, MAX_READINGS_IN_FLIGHT, LateDeepReader
from htfi.narrative.question import Question, question_id
from late_network import LateAuthor, written

CONFIG = NarrativeConfig(deep_paths=3)


class Held(LateAuthor):
    """Answers what the test says, when it says so."""

    def __init__(self) -> None:
        super().__init__(0)
        self.due: list[tuple[str, Completion | RequestRefused]] = []

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        self.pursued += [request.id for request in requests]

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        due, self.due = self.due, []
        return due


def question(number: int) -> Question:
    return Question("A", number * NS_PER_DAY, NS_PER_DAY, (News(5, 5, "wire", 1, "n1", "Mill shuts"),))


def test_until_every_answer_has_come_nothing_is_claimed_and_then_it_is_told_once() -> None:
    author = Held()
    reader = LateDeepReader(author, CONFIG)
    (unsaid,) = reader.read([question(1)], 50.0)
    assert (unsaid.provisional, unsaid.confidence) == (True, 0.0)
    assert len(author.pursued) == 3
    reader.request_views([question(1)])
    assert len(author.pursued) == 3
    for place, name in enumerate(reversed(author.pursued)):
        assert reader.take_late_views() == [], place
        author.due = [(name, written(name))]
    ((name, view),) = reader.take_late_views()
    assert name == question_id(question(1))
    assert isinstance(view, NewsView)
    assert view.trace is not None
    assert view.trace.paths == tuple(written(one).tokens for one in author.pursued)
    assert view.reader == reader.version == f"3 answers of {author.version}"
    author.due = [(author.pursued[0], written(author.pursued[0]))]
    assert reader.take_late_views() == []


def test_one_answer_that_will_not_come_ends_the_reading() -> None:
    author = Held()
    reader = LateDeepReader(author, CONFIG)
    reader.request_views([question(1)])
    author.due = [(author.pursued[0], written("x")), (author.pursued[1], RequestRefused("no cloud has it"))]
    assert reader.take_late_views() == [(question_id(question(1)), RequestRefused("no cloud has it"))]
    author.due = [(author.pursued[2], written("x"))]
    assert reader.take_late_views() == []


def test_few_are_asked_at_once_and_too_many_are_given_up_oldest_first() -> None:
    author = Held()
    reader = LateDeepReader(author, CONFIG)
    asked = [question(number) for number in range(1, MAX_PENDING_READINGS + 4)]
    reader.request_views(asked)
    assert len(author.pursued) == 3 * MAX_READINGS_IN_FLIGHT
    given_up = reader.take_late_views()
    assert [name for name, _ in given_up] == [question_id(one) for one in asked[:3]]
    assert all(isinstance(told, RequestRefused) for _, told in given_up)
    author.due = [(author.pursued[0], RequestRefused("busy"))]
    assert len(reader.take_late_views()) == 1
    assert len(author.pursued) == 3 * (MAX_READINGS_IN_FLIGHT + 1)
