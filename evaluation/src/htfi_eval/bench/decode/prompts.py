"""Requests of the decoding benchmarks: five kinds, on stories outside the training data, each from its own world.

A number always names the same story: every process makes the same request from it, and no run repeats one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    Prompt,
    PromptDialect,
    ScaledMoves,
)
from htfi.narrative.answer import ideal_answer, view_grammar
from htfi.narrative.question import MAX_ITEMS, build_prompt, shown_items
from htfi_train.corpus import open_story_facts
from htfi_train.facts.story_facts import StoryFacts
from htfi_train.simulation.corpus import question, true_answer
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, Story, stories_of_market

SEED = FIRST_EVALUATION_SEED + 77
OFF_DISTRIBUTION = "scrambled, T 2"
NUM_TOKENS = 64  # of a path, and of free text
_NEWS_MARKS = (
    *(ControlToken(f"h{place}") for place in range(1, MAX_ITEMS + 1)),
    ControlToken("on"),
    ControlToken("says"),
    ControlToken("wide"),
)
# The mark that ends a story never occurs inside its news, so the text continues to its maximum length.
_NEWS: OutputGrammar = (FreeTextField("words", NUM_TOKENS, ControlToken("/s"), _NEWS_MARKS),)
_WORDS: OutputGrammar = (FreeTextField("words", NUM_TOKENS, ControlToken("/s")),)


@dataclass(frozen=True, slots=True)
class PromptKind:
    """A class of prompts. A run has `num_requests_per_run` requests, enough for 64 tokens or more."""

    name: str
    description: str
    prompt: Callable[[Story], Prompt]
    form: Callable[[Story, Vocabulary], OutputGrammar]
    temperature: float
    num_requests_per_run: int = 1


def prompt_kinds() -> tuple[PromptKind, ...]:
    return (
        PromptKind("view, T 0", "a view of the news", _question_prompt, _view, 0.0, 4),
        PromptKind("view, T 1", "a view of the news", _question_prompt, _view, 1.0, 4),
        PromptKind("path, T 1", f"one price path of {NUM_TOKENS} steps", _before_path, _path, 1.0),
        PromptKind(
            "words, T 1", f"a continuation of the news, {NUM_TOKENS} tokens", _truncated_news, _news, 1.0
        ),
        PromptKind(
            OFF_DISTRIBUTION, f"text after scrambled news, {NUM_TOKENS} tokens", _scrambled, _words, 2.0
        ),
    )


def free_text_kinds() -> tuple[PromptKind, ...]:
    """Free continuations without a grammar, which peers can generate too."""
    return tuple(
        PromptKind(f"free, T {t:.0f}", "a continuation of the news", _truncated_news, _news, t)
        for t in (0.0, 1.0)
    )


def request(kind: PromptKind, number: int, vocabulary: Vocabulary) -> GenerationRequest:
    """The request of this kind on story `number`."""
    story = _story_for(number, vocabulary)
    return GenerationRequest(
        kind.prompt(story), kind.form(story, vocabulary), number, kind.temperature, kind=kind.name
    )


@cache
def unseen_story(number: int) -> Story:
    """The first story of world `number`: no two share news."""
    return stories_of_market(SEED, number)[0]


def free_text_prompt(number: int, vocabulary: Vocabulary) -> list[int]:
    """Truncated news as ids: any model can continue it without a grammar."""
    return vocabulary.encode(_truncated_news(_story_for(number, vocabulary)))


def path_prefix(number: int, vocabulary: Vocabulary) -> list[int]:
    """A question, its true view and the mark that opens a path, as ids."""
    return vocabulary.encode(_before_path(_story_for(number, vocabulary)))


def _story_for(number: int, vocabulary: Vocabulary) -> Story:
    """The story, with the facts of its items where the vocabulary has their marks."""
    is_shown = vocabulary.dialect is PromptDialect.MINI_FACTS
    return _story_with_facts(number) if is_shown else unseen_story(number)


@cache
def _story_with_facts(number: int) -> Story:
    facts = _story_facts()
    return next(facts.of_stories([unseen_story(number)])) if facts is not None else unseen_story(number)


@cache
def _story_facts() -> StoryFacts | None:
    return open_story_facts(PromptDialect.MINI_FACTS)


def _question_prompt(story: Story) -> Prompt:
    return build_prompt(question(story), PromptDialect.MINI_FACTS)[0]


def _view(story: Story, vocabulary: Vocabulary) -> OutputGrammar:
    return view_grammar(vocabulary.dialect, len(shown_items(question(story))))


def _before_path(story: Story) -> Prompt:
    return (*_question_prompt(story), *ideal_answer(true_answer(story)), ControlToken("path"))


def _path(_: Story, vocabulary: Vocabulary) -> OutputGrammar:
    bins = vocabulary.bins
    return _steps(tuple(bins.centres.tolist()) if bins is not None else ())


@cache
def _steps(centres: tuple[float, ...]) -> OutputGrammar:
    options = tuple((ScaledMoves((centre,)),) for centre in centres)
    return tuple(ChoiceField(f"step{step}", options) for step in range(NUM_TOKENS))


def _news(_story: Story, _vocabulary: Vocabulary) -> OutputGrammar:
    return _NEWS


def _words(_story: Story, _vocabulary: Vocabulary) -> OutputGrammar:
    return _WORDS


def _truncated_news(story: Story) -> Prompt:
    """The news up to the first headline."""
    prompt = _question_prompt(story)
    second = ControlToken("h2") if ControlToken("h2") in prompt else ControlToken("/news")
    return prompt[: prompt.index(second)]


def _scrambled(story: Story) -> Prompt:
    """All headlines, with the letters of each word shuffled."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    prompt = _question_prompt(story)
    return tuple(
        PlainText(" ".join("".join(rng.permutation(list(word))) for word in part.text.split(" ")))
        if isinstance(part, PlainText)
        else part
        for part in prompt[: prompt.index(ControlToken("/news"))]
    )
