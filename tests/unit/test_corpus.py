"""Passages of simulated stories: found from any number on, asked as the reader asks, answered by the truth."""

from itertools import islice

from checks import nonempty
from htfi.domain.generation import ControlToken, ScaledMoves
from htfi.narrative.answer import MARKS
from htfi_train.simulation.corpus import TokenKind, TrainingSegment, question, training_passages, true_answer
from htfi_train.simulation.stories import stories_of_market


def test_passages_from_any_number_on_are_those_that_a_run_from_the_start_meets() -> None:
    whole = list(islice(training_passages(11), 40))
    for start in (1, 12, 29):
        assert list(islice(training_passages(11, start), 8)) == whole[start : start + 8]


def test_a_passage_is_news_then_question_then_view_then_path() -> None:
    for parts in nonempty(islice(training_passages(12), 50)):
        marks = [part.segment.name for part in parts if isinstance(part.segment, ControlToken)]
        order = [
            marks.index(name) for name in ("news", "/news", "asset", "prices", "view", "/view", "path", "/s")
        ]
        assert order == sorted(order)
        assert set(marks) <= {"s", "/s", *MARKS}


def test_only_what_a_model_is_asked_for_has_weight_and_direction_and_size_have_most() -> None:
    parts = next(training_passages(13))
    by_name = {part.segment.name: part for part in parts if isinstance(part.segment, ControlToken)}
    assert by_name["view"].weight == by_name["/view"].weight == by_name["s"].weight == 0.0
    heaviest = max(parts, key=lambda part: part.weight)
    assert isinstance(heaviest.segment, ControlToken)
    assert heaviest.segment.name in ("up", "down", "flat")
    assert [part.kind for part in parts if isinstance(part.segment, ScaledMoves)] == [
        TokenKind.PRICES,
        TokenKind.PATH,
    ]


def test_some_passages_are_short_of_history() -> None:
    def history(parts: list[TrainingSegment]) -> int:
        return next(
            len(part.segment.values)
            for part in parts
            if part.kind is TokenKind.PRICES and isinstance(part.segment, ScaledMoves)
        )

    lengths = [history(parts) for parts in islice(training_passages(14), 200)]
    assert min(lengths) == 0
    assert max(lengths) == 32
    assert sum(length < 32 for length in lengths) <= 20


def test_the_question_tells_ages_and_the_truth_cites_by_place() -> None:
    for story in nonempty(stories_of_market(15, 0)):
        asked = question(story)
        ages = [(asked.as_of_ns - item.available_at_ns) / asked.bar_ns for item in asked.items]
        assert all(abs(age - told) < 1e-9 for age, told in zip(ages, story.ages_bars, strict=True))
        cited = true_answer(story).cited
        assert tuple(story.items[place].id for place in cited) == story.truth.cited
