"""Derives from a pattern the words without which it cannot match, so that a text without them need not be searched.

A pattern needs one word of each of its sets. A word is known by its first 6 letters, or all where it has fewer; where
the pattern leaves open how it goes on, by its first 4 with a star; # stands for any digit. `needed_words` reads the
pattern's syntax tree; where that shows no words there are no sets, and every text is searched.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from math import fsum
from typing import Any, NamedTuple, cast

_LONG, _SHORT = 6, 4  # letters by which words are known
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
_parser: Any = importlib.import_module("re._parser")

Words = frozenset[str]
ANY_DIGIT: Words = frozenset({_DIGIT})
_Node = tuple[str, Any]  # the name of an operation and its argument, as in the trees of `re`


@lru_cache(maxsize=16)  # several patterns ask for the same text
def words_of(text: str) -> Words:
    """The words of a text as `needed_words` knows them, in small letters."""
    if text.isascii():
        return _words_of_lowered(text.lower())
    # The engine takes other letters too for i and s where case is ignored.
    return _words_of_lowered(text.replace("İ", "i").lower().replace("ı", "i").replace("ſ", "s"))


@lru_cache(maxsize=16)  # patterns ask for a text as it is, and in small letters
def _words_of_lowered(lowered: str) -> Words:
    words = set(_WORD.findall(lowered))
    known = [word[:_LONG] for word in words]
    known += [word[:_SHORT] + "*" for word in words if len(word) >= _SHORT]
    return frozenset([*known, _DIGIT] if _DIGIT_SIGN.search(lowered) else known)


def needed_words(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> tuple[Words, ...]:
    """Sets of words, of each of which one stands in every text that a pattern matches in; the rarest first."""
    tree = _parser.parse(pattern, flags)
    if tree.state.flags & (re.ASCII | re.LOCALE):
        return ()
    chosen: list[Words] = []
    for words in sorted(_sets(_plain(tree), (), is_begun=False), key=_frequency):
        if not any(one <= words for one in chosen):
            chosen.append(words)
    return tuple(chosen[:_MAX_SETS])


def _plain(part: Any) -> Any:
    """A part of a tree with its sequences as lists and its constants by name."""
    if isinstance(part, _parser.SubPattern):
        return [(operation.name, _plain(argument)) for operation, argument in part.data]
    if isinstance(part, (list, tuple)):
        found = [_plain(one) for one in cast("Sequence[Any]", part)]
        return found if isinstance(part, list) else tuple(found)
    return part.name if hasattr(part, "name") and part is not _parser.MAXREPEAT else part


def _frequency(words: Iterable[str]) -> float:
    """Roughly how often one of them stands in a text, in whatever order they come."""
    return fsum(
        _COMMON_COST if word in _COMMON_WORDS or word == _DIGIT else 1.0 / len(word) for word in words
    )


def _sets(nodes: Sequence[_Node], behind: Sequence[_Node], *, is_begun: bool) -> list[Words]:
    """The sets of a sequence before what is `behind`; `is_begun` says whether a letter at its start begins a word."""
    found: list[Words] = []
    for place, node in enumerate(nodes):
        if node[0] == "LITERAL" and not is_begun:
            is_begun = _begins_word_after(node, is_begun)
            continue
        words: set[str] = set()
        rest = [*nodes[place + 1 :], *behind]
        is_known = is_begun and _beginnings([node, *rest], "", words, 0)
        if is_known:
            found.append(frozenset(words))
        if not is_known or _frequency(words) >= _COMMON_COST:
            found += _sets_inside(node, rest, is_begun)
        is_begun = _begins_word_after(node, is_begun)
    return found


def _sets_inside(node: _Node, rest: Sequence[_Node], is_begun: bool) -> list[Words]:
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
            return [ANY_DIGIT] if _is_digit(node) else []


def _is_digit(node: _Node) -> bool:
    match node[0], node[1]:
        case "LITERAL", code:
            return chr(code).isdecimal()
        case "CATEGORY", category:
            return category == "CATEGORY_DIGIT"
        case "RANGE", (first, last):
            return ord("0") <= first <= last <= ord("9")
        case "IN", members:
            return all(_is_digit(member) for member in members)
        case _:
            return False


def _beginnings(nodes: Sequence[_Node], begun: str, found: set[str], depth: int) -> bool:
    """Adds how the first words of a sequence begin, of which `begun` has been read; False where that is not known."""
    num_read = 0
    while num_read < len(nodes) and len(begun) < _LONG and (letter := _letter(nodes[num_read])):
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
            return _begin_with(_characters(node), rest, begun, found, depth)
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
            if begun and _ends_word(node):
                return _add_word(begun, rest, found, depth)
            return _beginnings(rest, begun, found, depth + 1)  # what it asks besides only narrows the matches
        case _:
            return _add_open(begun, found)


def _begin_with_repeat(node: _Node, rest: Sequence[_Node], begun: str, found: set[str], depth: int) -> bool:
    operation, (least, most, inner) = node
    if not begun and len(inner) == 1 and _characters(inner[0]) == _NO_LETTER:
        return _beginnings(rest, "", found, depth + 1)  # however many: the next letter begins a word
    again = [*inner, (operation, (max(least - 1, 0), most - 1, inner)), *rest] if most > 0 else None
    if least == 0 and not _beginnings(rest, begun, found, depth + 1):
        return False
    return again is None or _beginnings(again, begun, found, depth + 1)


class _Characters(NamedTuple):
    """What one character may be: letters in small, anything that is no letter, or more than is known."""

    letters: frozenset[str] = frozenset()
    may_be_other: bool = False
    is_known: bool = True


_UNKNOWN = _Characters(is_known=False)
_NO_LETTER = _Characters(may_be_other=True)


def _begin_with(
    next_one: _Characters, rest: Sequence[_Node], begun: str, found: set[str], depth: int
) -> bool:
    if not next_one.is_known:
        return _add_open(begun, found)
    if next_one.may_be_other:
        if begun:
            _add_word(begun, rest, found, depth)
        elif not _beginnings(rest, "", found, depth + 1):
            return False
    return all(_beginnings(rest, begun + letter, found, depth + 1) for letter in sorted(next_one.letters))


def _add_word(begun: str, rest: Sequence[_Node], found: set[str], depth: int) -> bool:
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
    if len(begun) < _SHORT:
        return False
    found.add(begun[:_SHORT] + "*")
    return True


def _characters(node: _Node) -> _Characters:
    match node[0], node[1]:
        case "LITERAL", code:
            return _character(chr(code))
        case "CATEGORY", category:
            return _NO_LETTER if category in ("CATEGORY_SPACE", "CATEGORY_NOT_WORD") else _UNKNOWN
        case "IN", members:
            return _joined(_characters(member) for member in members)
        case _:
            return _UNKNOWN


def _letter(node: _Node) -> str:
    """The letter that a node is, in small; '' where it may be anything else."""
    return next(iter(_character(chr(node[1])).letters), "") if node[0] == "LITERAL" else ""


@cache
def _character(char: str) -> _Characters:
    small = char.lower()
    if not (char.isalnum() or char == "_"):
        return _NO_LETTER if small == char.upper() else _UNKNOWN
    # Letters beyond these have forms in other cases that `words_of` does not know.
    if len(small) != 1 or not (small.isascii() or ("à" <= small <= "ɏ" and small not in "ıſ")):
        return _UNKNOWN
    return _Characters(frozenset({small}))


def _joined(members: Iterable[_Characters]) -> _Characters:
    letters: frozenset[str] = frozenset()
    may_be_other = False
    for member in members:
        if not member.is_known:
            return _UNKNOWN
        letters |= member.letters
        may_be_other = may_be_other or member.may_be_other
    return _Characters(letters, may_be_other)


def _begins_word_after(node: _Node, is_begun: bool) -> bool:
    """Whether a letter behind what a node matches begins a word, whatever it matches."""
    match node[0], node[1]:
        case (("LITERAL" | "IN" | "CATEGORY"), _):
            return _characters(node) == _NO_LETTER
        case "AT", place:
            return is_begun or place in ("AT_BOUNDARY", "AT_BEGINNING", "AT_BEGINNING_STRING")
        case "SUBPATTERN", (_, flags, _, nodes):
            return not flags & re.ASCII and _begins_word_behind(nodes, is_begun)
        case "ATOMIC_GROUP", nodes:
            return _begins_word_behind(nodes, is_begun)
        case "BRANCH", (_, branches):
            return all(_begins_word_behind(branch, is_begun) for branch in branches)
        case (("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT"), (least, _, nodes)):
            once = _begins_word_behind(nodes, is_begun)
            return once and _begins_word_behind(nodes, once) and (least > 0 or is_begun)
        case "ASSERT", (direction, nodes):
            return is_begun or (direction < 0 and _begins_word_behind(nodes, is_begun=False))
        case "ASSERT_NOT", (direction, _):
            return is_begun or (direction < 0 and _ends_word(node))
        case _:
            return False


def _begins_word_behind(nodes: Iterable[_Node], is_begun: bool) -> bool:
    for node in nodes:
        is_begun = _begins_word_after(node, is_begun)
    return is_begun


def _ends_word(node: _Node) -> bool:
    """Whether an assertion says that no letter is beside: `(?!\\w)`, `(?<![\\w-])`."""
    operation, (_, nodes) = node
    if operation != "ASSERT_NOT" or len(nodes) != 1 or nodes[0][0] != "IN":
        return False
    members = nodes[0][1]
    return ("NEGATE", None) not in members and ("CATEGORY", "CATEGORY_WORD") in members
