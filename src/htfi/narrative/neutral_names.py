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
from htfi.narrative.name_swaps import (
    gendered_words,
    neutral_gender,
    nouns_of_people,
    people_in,
)
from htfi.narrative.named_companies import NamedCompany, companies_in, end_of_legal_form

NEUTRAL_VERSION = "neutral/2"


class Replaced(NamedTuple):
    """A word replaced: characters `start` to before `end` of the text, of which a legal form begins at `name_end`, and
    those of the neutral text.
    """

    start: int
    name_end: int
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
            found[inside] = one.start, one.name_end
        return found


class _Name(NamedTuple):
    """A name or word of a text: what it is replaced by in each form of the text."""

    start: int
    name_end: int  # before a legal form
    end: int
    instead: tuple[str, ...]
    is_name: bool


def neutral_texts(
    text: str, asked: tuple[str, str], linker: EntityLinker, others: Sequence[str] = ()
) -> list[NeutralText]:
    """The text with each form of neutral names; none where it has no name.

    `asked` are symbol and name of an asset that the text may name, both '' for none; `others` are names in the text of
    companies that stand in no list.
    """
    names = _names(text, asked, linker, others)
    return [_written(text, names, form) for form in range(len(_forms()))] if names else []


def neutral_companies() -> Sequence[str]:
    """The names of companies of the first form, the one that is asked about first."""
    return _forms()[0]


def _names(text: str, asked: tuple[str, str], linker: EntityLinker, others: Sequence[str]) -> list[_Name]:
    """What is replaced, in order, none over another; a longer name counts before a shorter one within it."""
    instead = {**_people(text), **_companies(text, asked, linker, others)}
    found: list[_Name] = []

    def add(start: int, end: int, new: Sequence[str], *, is_name: bool = False) -> None:
        if not any(start < one.end and end > one.start for one in found):
            whole_end = end_of_legal_form(text, end) if is_name else end
            found.append(_Name(start, end, whole_end, tuple(new), is_name))

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


def _companies(
    text: str, asked: tuple[str, str], linker: EntityLinker, others: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The names of companies, and what stands for each: names of one company are replaced by one."""
    named = [*companies_in(text, asked, linker), *(NamedCompany((one,), False) for one in others)]
    own = [one for one in named if one.is_own]
    named = own + sorted((one for one in named if not one.is_own), key=lambda one: _first_place(text, one))
    rest = text
    for name in (name for one in named for name in one.names):
        rest = rest.replace(name, " ")
    forms = [[one for one in form if one not in rest] or form for form in _forms()]
    return {
        name: tuple(form[place % len(form)] for form in forms)
        for place, one in enumerate(named)
        for name in one.names
    }


def _first_place(text: str, company: NamedCompany) -> int:
    return min(place for name in company.names if (place := text.find(name)) >= 0)


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
        replaced.append(Replaced(name.start, name.name_end, name.end, start, end, name.is_name))
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
