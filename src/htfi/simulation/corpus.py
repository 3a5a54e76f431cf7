"""Turns a simulated story into what a model is trained on: the question, the true answer, the path that followed.

The question is put by the function that the reader uses, so that a model is asked as it was taught.
"""

from collections.abc import Iterator
from enum import IntEnum
from itertools import count
from typing import NamedTuple

from msgspec.structs import replace

from htfi.domain.time import NS_PER_DAY
from htfi.domain.writing import Dialect, Mark, Segment, Sigmas, Text
from htfi.narrative.answer import Understanding, ideal
from htfi.narrative.question import Question, put
from htfi.simulation.stories import Story, world_stories

_AS_OF_NS = 1_000_000_000 * 10**9  # any instant: only the ages of the news are told


class Kind(IntEnum):
    """What a token belongs to."""

    PADDING = 0
    TEXT = 1
    PRICES = 2
    VIEW = 3
    PATH = 4


class Part(NamedTuple):
    """One segment of a passage, what it belongs to, and how much predicting its tokens counts."""

    segment: Segment
    kind: Kind
    weight: float


# Most of a return cannot be predicted, so returns count little: their noise would drown what a view teaches.
TEXT_WEIGHT, PRICES_WEIGHT, WORDS_WEIGHT, VIEW_WEIGHT, PATH_WEIGHT = 0.1, 0.05, 0.7, 2.0, 0.2
_NUMBERS_WEIGHT = 4.0  # of direction and size: two tokens of a story that everything else leads up to
_STORIES_PER_WORLD = 12  # most worlds hold twice as many
_SHORTENED_EVERY = 10
_NUMBERS = 4  # marks between '<end>' and '</view>'; the first two are direction and size


def passages(seed: int, start: int = 0) -> Iterator[list[Part]]:
    """Stories of `seed` from number `start` on, as parts; endless. Some are short of history, as a new series is.

    Worlds hold different numbers of stories; the same number of each is taken, so that any story is found at once.
    """
    told: list[Story] = []
    for number in count(start):
        world, place = divmod(number, _STORIES_PER_WORLD)
        if place == 0 or not told:
            told = world_stories(seed, world)
        story = told[place % len(told)]
        if number % _SHORTENED_EVERY == 0:
            left = number // _SHORTENED_EVERY % len(story.context)
            story = replace(story, context=story.context[len(story.context) - left :])
        yield passage(story)


def passage(story: Story) -> list[Part]:
    """Question, answer and path of one story."""
    prompt, _ = put(question(story), Dialect.MINI)
    asked = [_asked(segment) for segment in prompt]
    asked[0] = asked[0]._replace(weight=0.0)
    return [*asked, *_answered(story), *_followed(story)]


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
    )


def understanding(story: Story) -> Understanding:
    """What a perfect reader would say."""
    truth = story.truth
    place = {item.id: index for index, item in enumerate(story.items)}
    return Understanding(
        direction=float(truth.direction),
        size_sigmas=truth.size_sigmas,
        volatility_multiplier=truth.volatility_multiplier,
        confidence=truth.confidence,
        consistency=truth.consistency,
        cause=truth.cause,
        cited=tuple(place[item] for item in truth.cited),
        words=truth.rationale,
    )


def _asked(segment: Segment) -> Part:
    if isinstance(segment, Sigmas):
        return Part(segment, Kind.PRICES, PRICES_WEIGHT)
    return Part(segment, Kind.TEXT, TEXT_WEIGHT)


def _answered(story: Story) -> list[Part]:
    segments = ideal(understanding(story))
    end = segments.index(Mark("end"))
    parts: list[Part] = []
    for place, segment in enumerate(segments):
        number = place - end
        weight = WORDS_WEIGHT if isinstance(segment, Text) else VIEW_WEIGHT
        if 0 < number <= _NUMBERS // 2:
            weight = _NUMBERS_WEIGHT
        if place in (0, len(segments) - 1):  # put in by the form, never asked of the model
            weight = 0.0
        parts.append(Part(segment, Kind.VIEW, weight))
    return parts


def _followed(story: Story) -> list[Part]:
    return [
        Part(Mark("path"), Kind.TEXT, 0.0),
        Part(Sigmas(story.path), Kind.PATH, PATH_WEIGHT),
        Part(Mark("/s"), Kind.TEXT, TEXT_WEIGHT),
    ]
