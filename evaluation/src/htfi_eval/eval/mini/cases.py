"""Questions with a known answer, from simulated stories that training never saw; and with others' headlines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.narrative.answer import ParsedAnswer
from htfi.narrative.question import Question, shown_items
from htfi.simulation.corpus import TrainingSegment, passage, question, true_answer
from htfi.simulation.stories import FIRST_EVALUATION_SEED, Story, stories, stories_of_market

TRAINING_SEED = 500_000_000  # baselines learn from it: its stories are like the models' own
_NUM_STORIES_PER_WORLD = 5  # of some twenty; questions about one event share its luck


@dataclass(frozen=True, slots=True)
class EvaluationCase:
    """One question and what is true of it.

    `best` is what one who understands all that is shown would answer: by chance it comes otherwise at times, so it
    is the ceiling. `passage` is the whole of it as training would show it.
    """

    question: Question
    truth: ParsedAnswer
    ideal: ParsedAnswer
    situation: str
    passage: tuple[TrainingSegment, ...]


def unseen_cases(seed: int, num: int) -> list[EvaluationCase]:
    """Stories of many worlds of `seed`. Raises InvalidInput for a seed that training may have seen."""
    if seed < FIRST_EVALUATION_SEED:
        raise InvalidInput(
            f"--seed {seed}: training may have seen it; take one from {FIRST_EVALUATION_SEED} up"
        )
    return [_case(story) for story in islice(_spread(seed), num)]


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
    """Cases whose headlines are another story's with as many items, with their places in `cases`.

    Tags, ages, prices and truth stay: what is still answered rightly was not read in the words. A case whose
    number of items no other has is left out.
    """
    by_size: dict[int, list[int]] = {}
    for place, case in enumerate(cases):
        by_size.setdefault(len(shown_items(case.question)), []).append(place)
    swapped: list[tuple[int, EvaluationCase]] = []
    for size, places in by_size.items():
        # by half of them: neighbours may tell of one world
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
    return replace(case, question=msgspec.structs.replace(case.question, items=items))
