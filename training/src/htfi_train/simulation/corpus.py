"""Turns a simulated story into what a model is trained on: the question, the true answer, the path that followed.

The question is put by the function that the reader uses, so that a model is asked as it was taught.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import count
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from htfi.domain.generation import ControlToken, PlainText, PromptDialect, PromptSegment, ScaledMoves
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.answer import ParsedAnswer, ideal_answer
from htfi.narrative.fact_marks import marks_of
from htfi.narrative.question import Question, build_prompt
from htfi_train.simulation.events import EventSource
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.stories import Story, stories_of_market

_AS_OF_NS = 1_000_000_000 * 10**9  # any instant: only the ages of the news are given


class TokenKind(IntEnum):
    """What a token belongs to."""

    PADDING = 0
    TEXT = 1
    PRICES = 2
    VIEW = 3
    PATH = 4


class TrainingSegment(NamedTuple):
    """One segment of a passage, what it belongs to, and how much predicting its tokens counts."""

    segment: PromptSegment
    kind: TokenKind
    weight: float


# Most of a return cannot be predicted, so returns count little: their noise would drown what a view teaches.
TEXT_WEIGHT, PRICES_WEIGHT, WORDS_WEIGHT, VIEW_WEIGHT, PATH_WEIGHT = 0.1, 0.05, 2.0, 2.0, 0.2
_NUMBERS_WEIGHT = 8.0  # of direction and size: two tokens of a story that everything else leads up to
_STORIES_PER_WORLD = 12  # most worlds hold twice as many
_LINE_WORLDS = (3, 5)
_NOISE = 1  # the stream of draws that spoils facts
_SHORT_HISTORY_EVERY = 10
_NUMBERS = 4  # marks between '<end>' and '</view>'; the first two are direction and size


class FactSource(Protocol):
    """Gives stories the readings of their items: as they are read, or with noise, which a source of draws decides."""

    def of_stories(self, stories: Iterable[Story]) -> Iterator[Story]: ...

    def noisy(self, stories: Sequence[Story], rng: Rng) -> list[Story]: ...


def training_passages(
    seed: int, start: int = 0, facts: FactSource | None = None, lines: EventSource | None = None
) -> Iterator[list[TrainingSegment]]:
    """Stories of `seed` from number `start` on, as parts; endless. Some are short of history, as a new series is.

    With `facts`, items carry what is read of them; with `lines`, three worlds in five tell their events. Worlds hold
    different numbers of stories; the same number of each is taken, so that any story is found at once.
    """
    of_market: list[Story] = []
    for number in count(start):
        market, place = divmod(number, _STORIES_PER_WORLD)
        if place == 0 or not of_market:
            told = lines if market % _LINE_WORLDS[1] < _LINE_WORLDS[0] else None
            of_market = stories_of_market(seed, market, told)[:_STORIES_PER_WORLD]
            if facts is not None:
                of_market = facts.noisy(of_market, Rng(seed, market, _NOISE))
        story = of_market[place % len(of_market)]
        if number % _SHORT_HISTORY_EVERY == 0:
            left = number // _SHORT_HISTORY_EVERY % len(story.context)
            story = replace(story, context=story.context[len(story.context) - left :])
        yield passage(story)


def passage(story: Story) -> list[TrainingSegment]:
    """Question, answer and path of one story."""
    prompt, _ = build_prompt(question(story), PromptDialect.MINI_FACTS)
    asked = [_question_part(segment) for segment in prompt]
    asked[0] = asked[0]._replace(weight=0.0)
    return [*asked, *_answer_parts(story), *_path_parts(story)]


def question(story: Story) -> Question:
    """The question that a reader would ask in the story's moment."""
    return Question(
        symbol=story.symbol,
        as_of_ns=_AS_OF_NS,
        bar_ns=NS_PER_DAY,
        items=tuple(
            replace(item, available_at_ns=_AS_OF_NS - round(age * NS_PER_DAY))
            for item, age in zip(story.items, story.ages_bars, strict=True)
        ),
        context=story.context,
        name=story.name,
        facts={
            item.id: marks_of(reading) for item, reading in zip(story.items, story.readings, strict=False)
        },
    )


def true_answer(story: Story) -> ParsedAnswer:
    """What a perfect reader would say."""
    truth = story.truth
    place = {item.id: index for index, item in enumerate(story.items)}
    return ParsedAnswer(
        direction=float(truth.direction),
        size_sigmas=truth.size_sigmas,
        volatility_multiplier=truth.volatility_multiplier,
        confidence=truth.confidence,
        consistency=truth.consistency,
        cause=truth.cause,
        cited=tuple(place[item] for item in truth.cited),
        words=truth.rationale,
    )


def _question_part(segment: PromptSegment) -> TrainingSegment:
    if isinstance(segment, ScaledMoves):
        return TrainingSegment(segment, TokenKind.PRICES, PRICES_WEIGHT)
    return TrainingSegment(segment, TokenKind.TEXT, TEXT_WEIGHT)


def _answer_parts(story: Story) -> list[TrainingSegment]:
    segments = ideal_answer(true_answer(story))
    end = segments.index(ControlToken("end"))
    parts: list[TrainingSegment] = []
    for place, segment in enumerate(segments):
        number = place - end
        weight = WORDS_WEIGHT if isinstance(segment, PlainText) else VIEW_WEIGHT
        if 0 < number <= _NUMBERS // 2:
            weight = _NUMBERS_WEIGHT
        if place in (0, len(segments) - 1):  # put in by the form, never asked of the model
            weight = 0.0
        parts.append(TrainingSegment(segment, TokenKind.VIEW, weight))
    return parts


def _path_parts(story: Story) -> list[TrainingSegment]:
    return [
        TrainingSegment(ControlToken("path"), TokenKind.TEXT, 0.0),
        TrainingSegment(ScaledMoves(story.path), TokenKind.PATH, PATH_WEIGHT),
        TrainingSegment(ControlToken("/s"), TokenKind.TEXT, TEXT_WEIGHT),
    ]
