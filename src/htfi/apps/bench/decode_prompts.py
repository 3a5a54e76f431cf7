"""What the benches of decoding ask: five kinds of request on stories that no training saw, each in its own world.

A number names a story for ever: every process makes the same request of it, and no run asks one twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.writing import Choice, Dialect, Form, Mark, Prompt, Request, Sigmas, Text, Words
from htfi.narrative.answer import ideal, view_form
from htfi.narrative.question import MAX_ITEMS, put, shown
from htfi.simulation.corpus import question, understanding
from htfi.simulation.stories import FIRST_EVALUATION_SEED, Story, world_stories

SEED = FIRST_EVALUATION_SEED + 77
OFF_LAW = "off law, T 2"
NUM_TOKENS = 64  # of a path, and of free words
_NEWS_MARKS = (
    *(Mark(f"h{place}") for place in range(1, MAX_ITEMS + 1)),
    Mark("on"),
    Mark("says"),
    Mark("wide"),
)
# The mark that ends a story never comes inside its news, so the words go on to their bound.
_NEWS: Form = (Words("words", NUM_TOKENS, Mark("/s"), _NEWS_MARKS),)
_WORDS: Form = (Words("words", NUM_TOKENS, Mark("/s")),)


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of prompts. `num_a_run` requests make a run: so many write some 64 tokens and more."""

    name: str
    what: str
    prompt: Callable[[Story], Prompt]
    form: Callable[[Story, Vocabulary], Form]
    temperature: float
    num_a_run: int = 1


def kinds() -> tuple[Kind, ...]:
    return (
        Kind("view, T 0", "a view of the news", _asked, _view, 0.0, 4),
        Kind("view, T 1", "a view of the news", _asked, _view, 1.0, 4),
        Kind("path, T 1", f"one price path of {NUM_TOKENS} steps", _before_path, _path, 1.0),
        Kind("words, T 1", f"the news told on, {NUM_TOKENS} tokens", _broken_off, _news, 1.0),
        Kind(
            OFF_LAW,
            f"words after scrambled news, {NUM_TOKENS} tokens",
            _scrambled,
            _words,
            2.0,
        ),
    )


def free_kinds() -> tuple[Kind, ...]:
    """Text told on, which needs no form: what peers can be asked as well."""
    return tuple(Kind(f"free, T {t:.0f}", "the news told on", _broken_off, _news, t) for t in (0.0, 1.0))


def request(kind: Kind, number: int, vocabulary: Vocabulary) -> Request:
    """The request of this kind about story `number`."""
    told = story(number)
    return Request(kind.prompt(told), kind.form(told, vocabulary), number, kind.temperature, kind=kind.name)


@cache
def story(number: int) -> Story:
    """The first story of world `number`: no two share news."""
    return world_stories(SEED, number)[0]


def free_prompt(number: int, vocabulary: Vocabulary) -> list[int]:
    """News that break off, as ids: any model can tell them on, in no form."""
    return vocabulary.encode(_broken_off(story(number)))


def path_prefix(number: int, vocabulary: Vocabulary) -> list[int]:
    """A question, its true view and the mark that opens a path, as ids."""
    return vocabulary.encode(_before_path(story(number)))


def _asked(told: Story) -> Prompt:
    return put(question(told), Dialect.MINI)[0]


def _view(told: Story, vocabulary: Vocabulary) -> Form:
    return view_form(vocabulary.dialect, len(shown(question(told))))


def _before_path(told: Story) -> Prompt:
    return (*_asked(told), *ideal(understanding(told)), Mark("path"))


def _path(_: Story, vocabulary: Vocabulary) -> Form:
    bins = vocabulary.bins
    return _steps(tuple(bins.centres.tolist()) if bins is not None else ())


@cache
def _steps(centres: tuple[float, ...]) -> Form:
    options = tuple((Sigmas((centre,)),) for centre in centres)
    return tuple(Choice(f"step{step}", options) for step in range(NUM_TOKENS))


def _news(_told: Story, _vocabulary: Vocabulary) -> Form:
    return _NEWS


def _words(_told: Story, _vocabulary: Vocabulary) -> Form:
    return _WORDS


def _broken_off(told: Story) -> Prompt:
    """The news up to the first headline."""
    prompt = _asked(told)
    second = Mark("h2") if Mark("h2") in prompt else Mark("/news")
    return prompt[: prompt.index(second)]


def _scrambled(told: Story) -> Prompt:
    """All headlines, the letters of each word in any order."""
    dice = np.random.Generator(np.random.PCG64(SEED))
    prompt = _asked(told)
    return tuple(
        Text(" ".join("".join(dice.permutation(list(word))) for word in part.text.split(" ")))
        if isinstance(part, Text)
        else part
        for part in prompt[: prompt.index(Mark("/news"))]
    )
