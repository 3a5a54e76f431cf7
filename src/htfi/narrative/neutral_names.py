"""Texts with neutral names (`neutral_names.toml`): who is named is replaced by names that are the same in all texts.

Texts that differ in a company, a person, a gender, a nationality or a religion alone become one text, so what is read
of it is alike for all. What stands where is kept, and readings of several neutral texts are averaged.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.name_swaps import (
    companies_in,
    gendered_words,
    neutral_gender,
    nouns_of_people,
    people_in,
)

NEUTRAL_VERSION = "neutral/1"


class Replaced(NamedTuple):
    """A word replaced: characters `start` to before `end` of the text, and of the neutral text."""

    start: int
    end: int
    new_start: int
    new_end: int
    is_name: bool  # of a company or a person, not an adjective


class NeutralText(NamedTuple):
    """A text with neutral names, and where they stand, in order."""

    text: str
    replaced: tuple[Replaced, ...]

    def original(self, spans: NDArray[np.int64]) -> NDArray[np.int64]:
        """Spans [T, 2] of the neutral text as those of the text: a part of a neutral name is the whole name."""
        found = spans.copy()
        shift = 0
        for one in self.replaced:
            shift = one.end - one.new_end
            inside = (spans[:, 0] < one.new_end) & (spans[:, 1] > one.new_start)
            found[spans[:, 0] >= one.new_end] = spans[spans[:, 0] >= one.new_end] + shift
            found[inside] = one.start, one.end
        return found


class _Name(NamedTuple):
    """A name or word of a text: what it is replaced by in each form of the text."""

    start: int
    end: int
    instead: tuple[str, ...]
    is_name: bool


def neutral_texts(text: str, asked: tuple[str, str], linker: EntityLinker) -> list[NeutralText]:
    """The text with each form of neutral names; none where it names nobody.

    `asked` are symbol and name of an asset that the text may name, both '' for none.
    """
    names = _names(text, asked, linker)
    return [_written(text, names, form) for form in range(len(_forms()))] if names else []


def neutral_companies() -> Sequence[str]:
    """The names of companies of the first form, the one that is asked about first."""
    return _forms()[0]


def mean_scores(texts: Sequence[NeutralText], scores: Sequence[FactScores]) -> FactScores:
    """What was read of the forms of one text, averaged: of the text, of each word between names, and of each name.

    An adjective is no party, whichever nationality or religion it names.
    """
    by_place: dict[tuple[int, int], list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
    for text, one in zip(texts, scores, strict=True):
        tokens: dict[tuple[int, int], list[int]] = {}
        for token, (start, end) in enumerate(text.original(one.spans).tolist()):
            tokens.setdefault((start, end), []).append(token)
        for place, of_place in tokens.items():
            read = one.roles[of_place].mean(axis=0), one.effects[of_place].mean(axis=0)
            by_place.setdefault(place, []).append(read)
    places = sorted(by_place)
    roles = np.array([np.mean([roles for roles, _ in by_place[place]], axis=0) for place in places])
    adjectives = {(one.start, one.end) for text in texts for one in text.replaced if not one.is_name}
    roles[[place in adjectives for place in places]] = np.eye(roles.shape[1])[-1]
    return FactScores(
        event=np.mean([one.event for one in scores], axis=0),
        tone=np.mean([one.tone for one in scores], axis=0),
        axis=np.mean([one.axis for one in scores], axis=0),
        modality=np.mean([one.modality for one in scores], axis=0),
        tense=np.mean([one.tense for one in scores], axis=0),
        spans=np.array(places, np.int64).reshape(-1, 2),
        roles=roles,
        effects=np.array([np.mean([effects for _, effects in by_place[place]], axis=0) for place in places]),
    )


def _names(text: str, asked: tuple[str, str], linker: EntityLinker) -> list[_Name]:
    """What is replaced, in order, none over another; a longer name counts before a shorter one within it."""
    instead = {**_people(text), **_companies(text, asked, linker)}
    found: list[_Name] = []

    def add(start: int, end: int, new: Sequence[str], *, is_name: bool = False) -> None:
        if not any(start < one.end and end > one.start for one in found):
            found.append(_Name(start, end, tuple(new), is_name))

    for name in sorted(instead, key=len, reverse=True):
        for match in re.finditer(rf"(?<![\w&]){re.escape(name)}(?![\w&])", text):
            add(match.start(), match.end(), instead[name], is_name=True)
    for pattern, word in (
        (_adjectives("nationalities"), _of("nationalities")),
        (_adjectives("religions"), _of("religions")),
    ):
        for match in pattern.finditer(text):
            add(match.start(), match.end(), _each(word))
    for match in gendered_words(text):
        add(match.start(), match.end(), _each(neutral_gender(match[0])))
    return sorted(found)


def _companies(text: str, asked: tuple[str, str], linker: EntityLinker) -> dict[str, tuple[str, ...]]:
    """The names of companies, and what stands for each: names of one company are replaced by one."""
    named = companies_in(text, asked, linker)
    rest = text
    for name in (name for one in named for name in one.names):
        rest = rest.replace(name, " ")
    forms = [[one for one in form if one not in rest] or form for form in _forms()]
    return {
        name: tuple(form[place % len(form)] for form in forms)
        for place, one in enumerate(named)
        for name in one.names
    }


def _people(text: str) -> dict[str, tuple[str, ...]]:
    """The names of people, whole and the last one by itself, and what stands for them."""
    neutral: Sequence[str] = _lists()["people"]["names"]
    instead: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(people_in(text)):
        new = neutral[place % len(neutral)]
        instead[name] = _each(new)
        instead.setdefault(name.split()[-1], _each(new.split()[-1]))
    return instead


def _written(text: str, names: Sequence[_Name], form: int) -> NeutralText:
    written, after = "", 0
    replaced: list[Replaced] = []
    for name in names:
        new = name.instead[form].upper() if text.isupper() else name.instead[form]
        written += text[after : name.start]
        start, end = len(written), len(written) + len(new)
        replaced.append(Replaced(name.start, name.end, start, end, name.is_name))
        written += new
        after = name.end
    return NeutralText(written + text[after:], tuple(replaced))


def _each(word: str) -> tuple[str, ...]:
    """The same word in every form of a text."""
    return (word,) * len(_forms())


def _of(kind: str) -> str:
    return str(_lists()[kind]["name"])


def _forms() -> Sequence[Sequence[str]]:
    return _lists()["companies"]["forms"]


@cache
def _lists() -> Mapping[str, Any]:
    file = resources.files("htfi.narrative") / "neutral_names.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def _adjectives(kind: str) -> re.Pattern[str]:
    words = "|".join(word.capitalize() for word in _lists()[kind]["adjectives"].split())
    return re.compile(rf"\b(?:{words})(?=[ -](?:[a-z]+ )?(?:{nouns_of_people()})\b)")
