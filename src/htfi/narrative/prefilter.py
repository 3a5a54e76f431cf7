"""Derives from a pattern the words without which it cannot match, so that a text without them need not be searched.

A pattern needs one word of each of its sets. A word is known by its first 6 letters, or all where it has fewer; where
the pattern leaves open how it goes on, by its first 2 to 4 with a star; # stands for any digit. `needed_words` reads
the pattern's syntax tree; where that shows no words there are no sets, and every text is searched.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import fsum

from htfi.narrative.pattern_trees import (
    NO_LETTER,
    Characters,
    Node,
    begins_word_after,
    characters_of,
    ends_word,
    is_digit,
    letter_of,
    parse_pattern,
)

_LONG, _SHORT, _SHORTEST = 6, 4, 2  # letters by which words are known
_MAX_WORDS = 400  # of one set
_MAX_SETS = 3
_MAX_DEPTH = 150
_COMMON_COST = 5.0  # of a word that stands in most texts, beside words that seldom do
_COMMON = """
a after all an and are as at be been by for from has have he in into is it its more new no not of on or over s says some
than that the this to u up was were will with"""
_COMMON_WORDS = frozenset(_COMMON.split())
_WORD, _DIGIT_SIGN = re.compile(r"\w+"), re.compile(r"\d")
_DIGIT = "#"

Words = frozenset[str]
ANY_DIGIT: Words = frozenset({_DIGIT})


@lru_cache(maxsize=16)  # several patterns ask for the same text
def words_of(text: str) -> Words:
    """The words of a text as `needed_words` knows them, in small letters."""
    return _words_of_lowered(small_letters(text))


def small_letters(text: str) -> str:
    """A text in small letters, as `re` takes them where case is ignored: it takes other letters too for i and s."""
    if text.isascii():
        return text.lower()
    return text.replace("İ", "i").lower().replace("ı", "i").replace("ſ", "s")


@lru_cache(maxsize=16)  # patterns ask for a text as it is, and in small letters
def _words_of_lowered(lowered: str) -> Words:
    words = set(_WORD.findall(lowered))
    known = [word[:_LONG] for word in words]
    known += [
        word[:length] + "*" for word in words for length in range(_SHORTEST, min(len(word), _SHORT) + 1)
    ]
    return frozenset([*known, _DIGIT] if _DIGIT_SIGN.search(lowered) else known)


def needed_words(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> tuple[Words, ...]:
    """Sets of words, of each of which one stands in every text that a pattern matches in; the rarest first."""
    tree = parse_pattern(pattern, flags)
    if tree is None:
        return ()
    chosen: list[Words] = []
    for words in sorted(_sets(tree, (), is_begun=False), key=_frequency):
        if not any(one <= words for one in chosen):
            chosen.append(words)
    return tuple(chosen[:_MAX_SETS])


def _frequency(words: Iterable[str]) -> float:
    """Roughly how often one of them stands in a text, in whatever order they come."""
    return fsum(
        _COMMON_COST if word in _COMMON_WORDS or word == _DIGIT else 1.0 / len(word) for word in words
    )


def _sets(nodes: Sequence[Node], behind: Sequence[Node], *, is_begun: bool) -> list[Words]:
    """The sets of a sequence before what is `behind`; `is_begun` says whether a letter at its start begins a word."""
    found: list[Words] = []
    for place, node in enumerate(nodes):
        if node[0] == "LITERAL" and not is_begun:
            is_begun = begins_word_after(node, is_begun)
            continue
        words: set[str] = set()
        rest = [*nodes[place + 1 :], *behind]
        is_known = is_begun and _beginnings([node, *rest], "", words, 0)
        if is_known:
            found.append(frozenset(words))
        if not is_known or _frequency(words) >= _COMMON_COST:
            found += _sets_inside(node, rest, is_begun)
        is_begun = begins_word_after(node, is_begun)
    return found


def _sets_inside(node: Node, rest: Sequence[Node], is_begun: bool) -> list[Words]:
    match node[0], node[1]:
        case "SUBPATTERN", (_, flags, _, nodes):
            return [] if flags & re.ASCII else _sets(nodes, rest, is_begun=is_begun)
        case "ATOMIC_GROUP", nodes:
            return _sets(nodes, rest, is_begun=is_begun)
        case "BRANCH", (_, branches):
            sets = [_sets(branch, rest, is_begun=is_begun) for branch in branches]
            return [frozenset().union(*(min(one, key=_frequency) for one in sets))] if all(sets) else []
        case (("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT"), (least, _, nodes)) if least > 0:
            return _sets(nodes, (), is_begun=is_begun)
        case "ASSERT", (direction, nodes):
            return _sets(nodes, (), is_begun=is_begun and direction > 0)
        case _:
            return [ANY_DIGIT] if is_digit(node) else []


def _beginnings(nodes: Sequence[Node], begun: str, found: set[str], depth: int) -> bool:
    """Adds how the first words of a sequence begin, of which `begun` has been read; False where that is not known."""
    num_read = 0
    while num_read < len(nodes) and len(begun) < _LONG and (letter := letter_of(nodes[num_read])):
        begun, num_read = begun + letter, num_read + 1
    if len(begun) == _LONG:
        found.add(begun)
        return True
    if len(found) > _MAX_WORDS or depth > _MAX_DEPTH:
        return False
    if num_read == len(nodes):
        return _add_open(begun, found)
    node, rest = nodes[num_read], nodes[num_read + 1 :]
    match node[0], node[1]:
        case (("LITERAL" | "IN"), _):
            return _begin_with(characters_of(node), rest, begun, found, depth)
        case "AT", place:
            if not begun or place in ("AT_BEGINNING", "AT_BEGINNING_STRING", "AT_NON_BOUNDARY"):
                return _beginnings(rest, begun, found, depth + 1)
            return _add_word(begun, rest, found, depth)
        case "SUBPATTERN", (_, flags, _, inner):
            return not flags & re.ASCII and _beginnings([*inner, *rest], begun, found, depth + 1)
        case "ATOMIC_GROUP", inner:
            return _beginnings([*inner, *rest], begun, found, depth + 1)
        case "BRANCH", (_, branches):
            return all(_beginnings([*branch, *rest], begun, found, depth + 1) for branch in branches)
        case (("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT"), _):
            return _begin_with_repeat(node, rest, begun, found, depth)
        case (("ASSERT" | "ASSERT_NOT"), _):
            if begun and ends_word(node):
                return _add_word(begun, rest, found, depth)
            return _beginnings(rest, begun, found, depth + 1)  # what it asks besides only narrows the matches
        case _:
            return _add_open(begun, found)


def _begin_with_repeat(node: Node, rest: Sequence[Node], begun: str, found: set[str], depth: int) -> bool:
    operation, (least, most, inner) = node
    if not begun and len(inner) == 1 and characters_of(inner[0]) == NO_LETTER:
        return _beginnings(rest, "", found, depth + 1)  # however many: the next letter begins a word
    again = [*inner, (operation, (max(least - 1, 0), most - 1, inner)), *rest] if most > 0 else None
    if least == 0 and not _beginnings(rest, begun, found, depth + 1):
        return False
    return again is None or _beginnings(again, begun, found, depth + 1)


def _begin_with(next_one: Characters, rest: Sequence[Node], begun: str, found: set[str], depth: int) -> bool:
    if not next_one.is_known:
        return _add_open(begun, found)
    if next_one.may_be_other:
        if begun:
            _add_word(begun, rest, found, depth)
        elif not _beginnings(rest, "", found, depth + 1):
            return False
    return all(_beginnings(rest, begun + letter, found, depth + 1) for letter in sorted(next_one.letters))


def _add_word(begun: str, rest: Sequence[Node], found: set[str], depth: int) -> bool:
    """Adds a word that ends before `rest`; in place of one that stands in most texts those behind it, if known."""
    behind: set[str] = set()
    is_common = begun in _COMMON_WORDS and _beginnings(rest, "", behind, depth + 1 + _MAX_DEPTH // 2)  # once
    if is_common and _frequency(behind) < _COMMON_COST:
        found |= behind
    else:
        found.add(begun)
    return True


def _add_open(begun: str, found: set[str]) -> bool:
    """Adds a word that may go on in any way; False where too little of it is known."""
    if len(begun) < (_SHORT if begun in _COMMON_WORDS else _SHORTEST):
        return False
    found.add(begun[:_SHORT] + "*")
    return True
