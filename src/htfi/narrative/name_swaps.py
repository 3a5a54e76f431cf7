"""Counterfactual texts: the same news with another company, person, gender, nationality or religion (`swaps.toml`).

A swap replaces an identity wherever it stands in a text, and keeps case. What the news says stays the same.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from msgspec.structs import replace

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.named_companies import NamedCompany, companies_in
from htfi.narrative.question import Question

MAX_SWAPS = 16  # of each kind
_NAME = r"[A-ZÀ-ÖØ-Þ][\w'’-]*[^\W\dA-Z_](?<!['’]s)"
_TITLED_SHARE = 0.7  # of words with a capital, above which all have one


class SwapKind(StrEnum):
    """Whose identity is swapped. FAME: a company for one of very different fame, COMPANY: for any other, JOINT:
    every name at once, for names that do not depend on those in the text.
    """

    COMPANY = "company"
    FAME = "fame"
    PERSON = "person"
    GENDER = "gender"
    NATIONALITY = "nationality"
    RELIGION = "religion"
    JOINT = "joint"


_NAME_KINDS = (SwapKind.COMPANY, SwapKind.PERSON, SwapKind.NATIONALITY, SwapKind.RELIGION)
_SINGLE_KINDS = tuple(kind for kind in SwapKind if kind is not SwapKind.JOINT)


class SwappedText(NamedTuple):
    """A text after a swap; `name` and `symbol` are those of the asset asked about in it, where they are new. `pairs`
    are all words replaced, none for a swap of gender; `old` and `new` those of a single name.
    """

    kind: SwapKind
    text: str
    name: str
    old: str
    new: str
    symbol: str = ""
    pairs: tuple[tuple[str, str], ...] = ()


def swapped_texts(
    text: str, asked: tuple[str, str], linker: EntityLinker, num_each: int = 1
) -> list[SwappedText]:
    """At most `num_each` swaps of each kind for which the text has a word, to the first names of the lists: texts that
    differ in a name alone are swapped for the same ones.

    `asked` are symbol and name of the asset asked about; its own name is swapped as the others' are.
    """
    named = companies_in(text, asked, linker)
    found: list[SwappedText] = []
    for kind in _SINGLE_KINDS:
        made: list[SwappedText] = []
        for words, is_own, others in _sites(kind, text, named, linker):
            for new in others[:num_each]:
                swapped = _replaced(text, words, new)
                if swapped != text:
                    name, symbol = (new, ticker_of(new)) if is_own else (asked[1], "")
                    pairs = tuple((old, new) for old in words)
                    made.append(SwappedText(kind, swapped, name, words[0], new, symbol, pairs))
        found += made[: min(num_each, MAX_SWAPS)]
    gendered = swap_gender(text, [name for one in named for name in one.names])
    if gendered != text:
        found.append(SwappedText(SwapKind.GENDER, gendered, asked[1], "", ""))
    made_before = {text, *(one.text for one in found)}
    joint = (
        _jointly_swapped(place, text, named, asked[1], linker) for place in range(min(num_each, MAX_SWAPS))
    )
    return [*found, *(one for one in joint if one is not None and one.text not in made_before)]


def _jointly_swapped(
    place: int, text: str, named: Sequence[NamedCompany], name: str, linker: EntityLinker
) -> SwappedText | None:
    """Every name swapped at once, for the one at `place` of its list and those after: the same text for all texts that
    differ in names alone. None where the text has no name.
    """
    swapped, symbol = text, ""
    pairs: list[tuple[str, str]] = []
    for kind in _NAME_KINDS:
        names = _joint_names(kind, place)
        for count, (words, is_own, _) in enumerate(_sites(kind, text, named, linker)):
            new = names[(place + count) % len(names)]
            pairs += [(old, new) for old in words]
            swapped = _replaced(swapped, words, new)
            if is_own:
                name, symbol = new, ticker_of(new)
    return SwappedText(SwapKind.JOINT, swapped, name, "", "", symbol, tuple(pairs)) if pairs else None


def _joint_names(kind: SwapKind, place: int) -> Sequence[str]:
    """The names of a kind, of companies the unknown and the famous ones in turn."""
    match kind:
        case SwapKind.PERSON:
            return people()
        case SwapKind.NATIONALITY:
            return nationalities()
        case SwapKind.RELIGION:
            return religions()
        case _:
            return companies(famous=place % 2 == 1)


def replace_word(text: str, old: str, new: str) -> str:
    """The text with a name or word replaced wherever it stands as a whole; in capitals where the text is."""
    written = new.upper() if text.isupper() else new
    return re.sub(rf"(?<![\w&]){re.escape(old)}(?![\w&])", lambda _: written, text)


def _replaced(text: str, words: Sequence[str], new: str) -> str:
    for old in words:
        text = replace_word(text, old, new)
    return text


def swap_gender(text: str, names: Collection[str] = ()) -> str:
    """The text with each gendered word replaced by its counterpart, but for those within `names` ('Mr Bricolage')."""
    by_word = _counterparts()
    kept = [one.span() for name in names for one in re.finditer(re.escape(name), text)]

    def swapped(match: re.Match[str]) -> str:
        if any(start <= match.start() and match.end() <= end for start, end in kept):
            return match[0]
        return _in_case_of(match[0], by_word[match[0].casefold()])

    return _gender_pattern().sub(swapped, text)


def _in_case_of(word: str, other: str) -> str:
    """Another word, written with the capitals of a word."""
    if word.isupper() and len(word) > 2:
        return other.upper()
    return other.capitalize() if word[0].isupper() else other


def gendered_words(text: str) -> Iterator[re.Match[str]]:
    """The words of a text that tell a gender and have a counterpart."""
    return _gender_pattern().finditer(text)


def neutral_gender(word: str) -> str:
    """The word that stands for a gendered word and for its counterpart, in the same case."""
    return _in_case_of(word, _first_of_pairs()[word.casefold()])


def nouns_of_people() -> str:
    """The nouns before which a nationality or a religion is that of a person or a firm, joined for a pattern."""
    return "|".join(_lists()["nouns"]["words"].split())


def ticker_of(name: str) -> str:
    """A ticker that no company is known by, from the letters of a name."""
    letters = [char for char in name.upper() if char.isalpha()]
    return f"Q{''.join(letters[:1] + [char for char in letters[1:] if char not in 'AEIOU'])[:3]}"


def people() -> tuple[str, ...]:
    """Names of people, women first."""
    return (*_lists()["people"]["women"], *_lists()["people"]["men"])


def nationalities() -> tuple[str, ...]:
    return tuple(_lists()["nationalities"]["adjectives"])


def religions() -> tuple[str, ...]:
    return tuple(_lists()["religions"]["adjectives"])


def companies(*, famous: bool) -> tuple[str, ...]:
    return tuple(_lists()["companies"]["famous" if famous else "unknown"])


def _sites(
    kind: SwapKind, text: str, named: Sequence[NamedCompany], linker: EntityLinker
) -> Iterator[tuple[tuple[str, ...], bool, Sequence[str]]]:
    """The words that stand in the text for one of a kind, whether it is the company asked about, and what may stand in
    their place.
    """
    if kind in (SwapKind.COMPANY, SwapKind.FAME):
        for names, is_own in named:
            is_known = any(map(linker.link, names))
            others = companies(famous=not is_known if kind is SwapKind.FAME else is_known)
            yield names, is_own, [other for other in others if other not in text]
    elif kind is SwapKind.PERSON:
        for name in people_in(text):
            yield (name,), False, [other for other in people() if other != name]
    elif kind in (SwapKind.NATIONALITY, SwapKind.RELIGION):
        words = nationalities() if kind is SwapKind.NATIONALITY else religions()
        for match in _adjectives(kind).finditer(text):
            yield (match[0],), False, [other for other in words if other.casefold() != match[0].casefold()]


def people_in(text: str) -> list[str]:
    """The names of people that a text holds: those of the lists, and what stands behind a title."""
    known = [name for name in people() if name in text]
    words = [word for word in text.split() if word[0].isalpha()]
    if sum(word[0].isupper() for word in words) > _TITLED_SHARE * len(words):
        return known
    titled = (match[1] for match in _titled().finditer(text))
    titles = _lists()["nouns"]["titles"].split()
    return list(dict.fromkeys([*known, *(one for one in titled if one.split()[-1].casefold() not in titles)]))


@cache
def _lists() -> Mapping[str, Any]:
    file = resources.files("htfi.narrative") / "swaps.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def _counterparts() -> Mapping[str, str]:
    pairs = [pair.split() for pair in _lists()["gender"]["pairs"]]
    found: dict[str, str] = {}
    for one, other in pairs:
        found.setdefault(one.casefold(), other)
        found.setdefault(other.casefold(), one)
    return found


@cache
def _first_of_pairs() -> dict[str, str]:
    """One word for all that are counterparts of one another: he for she, his for her and him."""
    found: dict[str, str] = {}
    for pair in _lists()["gender"]["pairs"]:
        words = pair.casefold().split()
        first = next((found[word] for word in words if word in found), pair.split()[0])
        found.update(dict.fromkeys(words, first))
    return found


@cache
def _gender_pattern() -> re.Pattern[str]:
    words = sorted(_counterparts(), key=len, reverse=True)
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, words))})(?!\w)", re.IGNORECASE)


@cache
def _adjectives(kind: SwapKind) -> re.Pattern[str]:
    words = nationalities() if kind is SwapKind.NATIONALITY else religions()
    return re.compile(rf"\b(?:{'|'.join(words)})(?=[ -](?:[a-z]+ )?(?:{nouns_of_people()})\b)")


@cache
def _titled() -> re.Pattern[str]:
    titles = "|".join(re.escape(one) for one in _lists()["nouns"]["titles"].split())
    return re.compile(rf"(?<!\w)(?i:{titles}) ({_NAME} (?:[A-Z]\. )?{_NAME}(?: {_NAME})?)(?!\w)")


def swapped_questions(
    question: Question, name: str, linker: EntityLinker, num_each: int = 1
) -> list[tuple[SwapKind, Question, str]]:
    """The question with names swapped in all of its items, and what its symbol is called then; a swap of the company
    asked about swaps its ticker too.
    """
    own = (question.symbol, name)
    found: dict[tuple[object, ...], tuple[SwapKind, Question, str]] = {}
    for item in question.items:
        for one in swapped_texts(item.headline, own, linker, num_each):
            key = (one.kind, one.old, one.new, one.pairs)
            found.setdefault(key, (one.kind, _swapped_question(question, own, one), one.name))
    return list(found.values())


def _swapped_question(question: Question, own: tuple[str, str], swap: SwappedText) -> Question:
    is_own = bool(swap.symbol)

    def symbols(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(swap.symbol if one == own[0] and is_own else one for one in found)

    items = tuple(
        replace(
            item,
            headline=_swapped_as(item.headline, swap),
            symbols=symbols(item.symbols),
        )
        for item in question.items
    )
    return replace(question, items=items, symbol=swap.symbol if is_own else question.symbol)


def _swapped_as(headline: str, swap: SwappedText) -> str:
    """Another headline of the same question with the same words replaced."""
    for old, new in swap.pairs:
        headline = replace_word(headline, old, new)
    return headline if swap.pairs else swap_gender(headline)
