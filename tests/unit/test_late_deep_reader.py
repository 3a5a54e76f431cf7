"""The reader in depth whose target is elsewhere: a view when all answers have come, in bounds, and nothing before."""

from collections.abc import Sequence

from htfi.domain.decision import View
from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY
from htfi.domain.writing import Refusal, Request, Writing
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.late_deep_reader import MAX_ASKED, MAX_AWAITED, LateDeepReader
from htfi.narrative.question import Question, question_id
from late_weather import LateAuthor, written

CONFIG = NarrativeConfig(deep_paths=3)


class Held(LateAuthor):
    """Answers what the test says, when it says so."""

    def __init__(self) -> None:
        super().__init__(0)
        self.due: list[tuple[str, Writing | Refusal]] = []

    def pursue(self, requests: Sequence[Request]) -> None:
        self.pursued += [request.id for request in requests]

    def late(self) -> list[tuple[str, Writing | Refusal]]:
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
    reader.pursue([question(1)])
    assert len(author.pursued) == 3
    for place, name in enumerate(reversed(author.pursued)):
        assert reader.later() == [], place
        author.due = [(name, written(name))]
    ((name, view),) = reader.later()
    assert name == question_id(question(1))
    assert isinstance(view, View)
    assert view.wording is not None
    assert view.wording.paths == tuple(written(one).tokens for one in author.pursued)
    assert view.reader == reader.version == f"3 answers of {author.version}"
    author.due = [(author.pursued[0], written(author.pursued[0]))]
    assert reader.later() == []


def test_one_answer_that_will_not_come_ends_the_reading() -> None:
    author = Held()
    reader = LateDeepReader(author, CONFIG)
    reader.pursue([question(1)])
    author.due = [(author.pursued[0], written("x")), (author.pursued[1], Refusal("no cloud has it"))]
    assert reader.later() == [(question_id(question(1)), Refusal("no cloud has it"))]
    author.due = [(author.pursued[2], written("x"))]
    assert reader.later() == []


def test_few_are_asked_at_once_and_too_many_are_given_up_oldest_first() -> None:
    author = Held()
    reader = LateDeepReader(author, CONFIG)
    asked = [question(number) for number in range(1, MAX_AWAITED + 4)]
    reader.pursue(asked)
    assert len(author.pursued) == 3 * MAX_ASKED
    given_up = reader.later()
    assert [name for name, _ in given_up] == [question_id(one) for one in asked[:3]]
    assert all(isinstance(told, Refusal) for _, told in given_up)
    author.due = [(author.pursued[0], Refusal("busy"))]
    assert len(reader.later()) == 1
    assert len(author.pursued) == 3 * (MAX_ASKED + 1)
