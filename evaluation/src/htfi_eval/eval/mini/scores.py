"""Questions with a known answer, from simulated stories outside the training data, and scores of the answers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice, pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from htfi.domain.errors import InvalidInput
from htfi.narrative.answer import CONFIDENCES, SIZES, VOLATILITIES, ParsedAnswer
from htfi.narrative.question import Question, shown_items
from htfi_train.simulation.corpus import FactSource, TrainingSegment, passage, question, true_answer
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, Story, stories, stories_of_market

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_EDGES = tuple((low + high) / 2 for low, high in pairwise(CONFIDENCES))
LEAK_ERRORS = 3.0  # standard errors above chance; exceeded by chance in 1 of 700 runs


class MeanWithError(NamedTuple):
    """A mean, its standard error and the number of values; NaN for none."""

    value: float
    error: float
    num: int


@dataclass(frozen=True, slots=True)
class ReaderAnswers:
    """One reader's answers to N questions, or the true ones. Arrays [N]; None for a field that it does not answer."""

    direction: Floats  # −1, 0, 1
    size_sigmas: Floats  # 0 where flat
    confidence: Floats
    volatility: Floats | None = None  # multipliers
    cited: tuple[tuple[int, ...], ...] | None = None  # items from 0
    cause: tuple[str, ...] | None = None
    consistency: tuple[str, ...] | None = None

    def at(self, places: Sequence[int]) -> "ReaderAnswers":
        """The answers to some of the questions."""
        taken = np.asarray(places, np.int64)

        def kept(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if values is None else tuple(values[place] for place in places)

        return ReaderAnswers(
            self.direction[taken],
            self.size_sigmas[taken],
            self.confidence[taken],
            None if self.volatility is None else self.volatility[taken],
            None if self.cited is None else tuple(self.cited[place] for place in places),
            kept(self.cause),
            kept(self.consistency),
        )


class ReliabilityBin(NamedTuple):
    """Non-flat predictions of similar confidence: number, mean stated confidence, share that was right."""

    num: int
    stated: float
    right: float


def answers_of(understood: Sequence[ParsedAnswer]) -> ReaderAnswers:
    """One reader's answers as arrays; a flat direction has no size."""
    direction = np.array([one.direction for one in understood], np.float64)
    size = np.array([one.size_sigmas for one in understood], np.float64)
    return ReaderAnswers(
        direction=direction,
        size_sigmas=np.where(direction == 0.0, 0.0, size),
        confidence=np.array([one.confidence for one in understood], np.float64),
        volatility=np.array([one.volatility_multiplier for one in understood], np.float64),
        cited=tuple(one.cited for one in understood),
        cause=tuple(one.cause for one in understood),
        consistency=tuple(one.consistency for one in understood),
    )


def mean(values: ArrayLike) -> MeanWithError:
    """Mean and standard error of independent values."""
    taken = np.asarray(values, np.float64)
    if not taken.size:
        return MeanWithError(math.nan, math.nan, 0)
    return MeanWithError(float(taken.mean()), float(taken.std() / math.sqrt(taken.size)), taken.size)


def right_direction(reader: ReaderAnswers, truth: ReaderAnswers) -> Bools:
    """Whether down, flat or up is right: [N]."""
    return reader.direction == truth.direction


def sign_where_it_moves(reader: ReaderAnswers, truth: ReaderAnswers) -> Bools:
    """Of the cases that move, whether the sign is right; flat is wrong."""
    return right_direction(reader, truth)[truth.direction != 0.0]


def sign_where_called(reader: ReaderAnswers, truth: ReaderAnswers) -> Bools:
    """Of the cases that move and are predicted to, whether the sign is right: half by chance."""
    return right_direction(reader, truth)[(truth.direction != 0.0) & (reader.direction != 0.0)]


def size_within_a_step(reader: ReaderAnswers, truth: ReaderAnswers) -> Bools:
    """Of the cases that move and are predicted to, whether the size is within one step of the scale."""
    moves = (truth.direction != 0.0) & (reader.direction != 0.0)
    return _within_a_step(SIZES, reader.size_sigmas[moves], truth.size_sigmas[moves])


def size_error_sigmas(reader: ReaderAnswers, truth: ReaderAnswers) -> Floats:
    """Of the cases that move and are predicted to, the distance of sizes in sigmas."""
    moves = (truth.direction != 0.0) & (reader.direction != 0.0)
    return np.abs(reader.size_sigmas - truth.size_sigmas)[moves]


def effect_error_sigmas(reader: ReaderAnswers, truth: ReaderAnswers) -> Floats:
    """Distance of effects, direction times size, in sigmas: [N]."""
    return np.abs(reader.direction * reader.size_sigmas - truth.direction * truth.size_sigmas)


def volatility_within_a_step(reader: ReaderAnswers, truth: ReaderAnswers) -> Bools | None:
    if reader.volatility is None or truth.volatility is None:
        return None
    return _within_a_step(VOLATILITIES, reader.volatility, truth.volatility)


def same_words(reader: tuple[str, ...] | None, truth: tuple[str, ...] | None) -> Bools | None:
    """Whether a field that is a word is right: [N]."""
    if reader is None or truth is None:
        return None
    return np.array([one == other for one, other in zip(reader, truth, strict=True)], np.bool_)


def cites_the_first(reader: ReaderAnswers, truth: ReaderAnswers) -> Bools | None:
    """Of the cases with a cause in the news, whether the most important item is cited."""
    if reader.cited is None or truth.cited is None:
        return None
    pairs = zip(reader.cited, truth.cited, strict=True)
    return np.array([true[0] in cited for cited, true in pairs if true], np.bool_)


def cites_exactly(reader: ReaderAnswers, truth: ReaderAnswers) -> Bools | None:
    """Whether exactly the relevant items are cited, none if none is relevant: [N]."""
    if reader.cited is None or truth.cited is None:
        return None
    return np.array(
        [set(cited) == set(true) for cited, true in zip(reader.cited, truth.cited, strict=True)], np.bool_
    )


def reliability(reader: ReaderAnswers, truth: ReaderAnswers) -> list[ReliabilityBin]:
    """Non-flat predictions by stated confidence, one bin per step of the confidence scale."""
    called = reader.direction != 0.0
    stated, right = reader.confidence[called], right_direction(reader, truth)[called]
    places = np.searchsorted(_EDGES, stated)
    bins: list[ReliabilityBin] = []
    for place in range(len(CONFIDENCES)):
        inside = places == place
        num = int(np.count_nonzero(inside))
        bins.append(
            ReliabilityBin(num, float(stated[inside].mean()), float(right[inside].mean()))
            if num
            else ReliabilityBin(0, CONFIDENCES[place], math.nan)
        )
    return bins


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Expected calibration error: |stated − right|, weighted by predictions (Naeini et al., 2015)."""
    num = sum(one.num for one in bins)
    if not num:
        return math.nan
    return sum(one.num * abs(one.stated - one.right) for one in bins if one.num) / num


def brier(reader: ReaderAnswers, truth: ReaderAnswers) -> Floats:
    """Brier score of the stated confidence for each non-flat prediction."""
    called = reader.direction != 0.0
    return np.square(reader.confidence[called] - right_direction(reader, truth)[called])


def leak(reader: ReaderAnswers, without_words: ReaderAnswers | None, truth: ReaderAnswers) -> float:
    """Standard errors by which a reader of swapped headlines is better than chance, or prices and tags, on signs.

    All three answer the same questions. Above LEAK_ERRORS something other than the words reveals the answer.
    """
    signs = mean(sign_where_called(reader, truth))
    base = 0.5
    if without_words is not None:
        base = max(base, mean(sign_where_called(without_words, truth)).value)
    if not signs.num or math.isnan(base):
        return 0.0
    # of the base rate, not the observed one: all right would have no error
    return (signs.value - base) / math.sqrt(max(base * (1.0 - base), 1e-4) / signs.num)


def _within_a_step(scale: Sequence[float], one: Floats, other: Floats) -> Bools:
    return np.abs(_places(scale, one) - _places(scale, other)) <= 1


def _places(scale: Sequence[float], values: Floats) -> NDArray[np.int64]:
    return np.argmin(np.abs(values[:, None] - np.array(scale)), axis=1)


TRAINING_SEED = 500_000_000  # baselines learn from it: its stories are like the models' own
_NUM_STORIES_PER_WORLD = 5  # about twenty clusters; questions about one event are dependent


@dataclass(frozen=True, slots=True)
class EvaluationCase:
    """One question and what is true of it.

    `best` is the answer with full understanding of what is shown. The outcome is partly random, so it is the
    upper limit. `passage` is the whole text as training would show it.
    """

    question: Question
    truth: ParsedAnswer
    ideal: ParsedAnswer
    situation: str
    passage: tuple[TrainingSegment, ...]


def unseen_cases(seed: int, num: int, facts: FactSource | None = None) -> list[EvaluationCase]:
    """Stories of many worlds of `seed`; with `facts` of their items, if given. Raises InvalidInput for a seed that may
    be in the training data.
    """
    if seed < FIRST_EVALUATION_SEED:
        raise InvalidInput(
            f"--seed {seed}: training may have used it; choose {FIRST_EVALUATION_SEED} or more"
        )
    drawn = islice(_spread(seed), num)
    return [_case(story) for story in (drawn if facts is None else facts.of_stories(drawn))]


def training_cases(num: int) -> list[EvaluationCase]:
    """Stories for baselines to learn from."""
    return [_case(story) for story in islice(stories(TRAINING_SEED), num)]


def _spread(seed: int) -> Iterator[Story]:
    for number in count():
        yield from stories_of_market(seed, number)[:_NUM_STORIES_PER_WORLD]


def _case(story: Story) -> EvaluationCase:
    truth = true_answer(story)
    best = msgspec.structs.replace(
        truth, direction=float(story.truth.likeliest), size_sigmas=story.truth.likely_sigmas
    )
    return EvaluationCase(question(story), truth, best, story.truth.situation, tuple(passage(story)))


def shuffled(cases: Sequence[EvaluationCase]) -> list[tuple[int, EvaluationCase]]:
    """Cases with the headlines and facts of another story of as many items, and their places in `cases`.

    Tags, ages, prices and truth stay: a right answer then does not come from the words. A case whose number of
    items is unique is left out.
    """
    by_size: dict[int, list[int]] = {}
    for place, case in enumerate(cases):
        by_size.setdefault(len(shown_items(case.question)), []).append(place)
    swapped: list[tuple[int, EvaluationCase]] = []
    for size, places in by_size.items():
        # by half of them: neighbours may come from one simulated market
        away = len(places) // 2
        if size and away:
            pairs = zip(places, [*places[away:], *places[:away]], strict=True)
            swapped += [(place, _with_words_of(cases[place], cases[other])) for place, other in pairs]
    return sorted(swapped, key=lambda found: found[0])


def _with_words_of(case: EvaluationCase, other: EvaluationCase) -> EvaluationCase:
    items = tuple(
        msgspec.structs.replace(item, headline=instead.headline, body=instead.body)
        for item, instead in zip(shown_items(case.question), shown_items(other.question), strict=True)
    )
    facts = {
        item.id: other.question.facts[instead.id]
        for item, instead in zip(items, shown_items(other.question), strict=True)
        if instead.id in other.question.facts
    }
    return replace(case, question=msgspec.structs.replace(case.question, items=items, facts=facts))
