"""Reads the syntax trees of patterns: what a node may match, and whether a word begins or ends behind it."""

import importlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

_parser: Any = importlib.import_module("re._parser")

Node = tuple[str, Any]  # the name of an operation and its argument, as in the trees of `re`


def parse_pattern(pattern: str, flags: re.RegexFlag) -> list[Node] | None:
    """The tree of a pattern, its sequences as lists and its constants by name; None where letters are of ASCII or of a
    locale, which words are not told by.
    """
    tree = _parser.parse(pattern, flags)
    return None if tree.state.flags & (re.ASCII | re.LOCALE) else _plain(tree)


def _plain(part: Any) -> Any:
    """A part of a tree with its sequences as lists and its constants by name."""
    if isinstance(part, _parser.SubPattern):
        return [(operation.name, _plain(argument)) for operation, argument in part.data]
    if isinstance(part, (list, tuple)):
        found = [_plain(one) for one in cast("Sequence[Any]", part)]
        return found if isinstance(part, list) else tuple(found)
    return part.name if hasattr(part, "name") and part is not _parser.MAXREPEAT else part


class Characters(NamedTuple):
    """What one character may be: letters in small, anything that is no letter, or more than is known."""

    letters: frozenset[str] = frozenset()
    may_be_other: bool = False
    is_known: bool = True


UNKNOWN = Characters(is_known=False)
NO_LETTER = Characters(may_be_other=True)


def characters_of(node: Node) -> Characters:
    match node[0], node[1]:
        case "LITERAL", code:
            return _character(chr(code))
        case "CATEGORY", category:
            return NO_LETTER if category in ("CATEGORY_SPACE", "CATEGORY_NOT_WORD") else UNKNOWN
        case "IN", members:
            return _joined(characters_of(member) for member in members)
        case _:
            return UNKNOWN


def letter_of(node: Node) -> str:
    """The letter that a node is, in small; '' where it may be anything else."""
    return next(iter(_character(chr(node[1])).letters), "") if node[0] == "LITERAL" else ""


@cache
def _character(char: str) -> Characters:
    small = char.lower()
    if not (char.isalnum() or char == "_"):
        return NO_LETTER if small == char.upper() else UNKNOWN
    # Letters beyond these have forms in other cases that `words_of` does not know.
    if len(small) != 1 or not (small.isascii() or ("à" <= small <= "ɏ" and small not in "ıſ")):
        return UNKNOWN
    return Characters(frozenset({small}))


def _joined(members: Iterable[Characters]) -> Characters:
    letters: frozenset[str] = frozenset()
    may_be_other = False
    for member in members:
        if not member.is_known:
            return UNKNOWN
        letters |= member.letters
        may_be_other = may_be_other or member.may_be_other
    return Characters(letters, may_be_other)


def begins_word_after(node: Node, is_begun: bool) -> bool:
    """Whether a letter behind what a node matches begins a word, whatever it matches."""
    match node[0], node[1]:
        case (("LITERAL" | "IN" | "CATEGORY"), _):
            return characters_of(node) == NO_LETTER
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
            return is_begun or (direction < 0 and ends_word(node))
        case _:
            return False


def _begins_word_behind(nodes: Iterable[Node], is_begun: bool) -> bool:
    for node in nodes:
        is_begun = begins_word_after(node, is_begun)
    return is_begun


def ends_word(node: Node) -> bool:
    """Whether an assertion says that no letter is beside: `(?!\\w)`, `(?<![\\w-])`."""
    operation, (_, nodes) = node
    if operation != "ASSERT_NOT" or len(nodes) != 1 or nodes[0][0] != "IN":
        return False
    members = nodes[0][1]
    return ("NEGATE", None) not in members and ("CATEGORY", "CATEGORY_WORD") in members


def is_digit(node: Node) -> bool:
    match node[0], node[1]:
        case "LITERAL", code:
            return chr(code).isdecimal()
        case "CATEGORY", category:
            return category == "CATEGORY_DIGIT"
        case "RANGE", (first, last):
            return ord("0") <= first <= last <= ord("9")
        case "IN", members:
            return all(is_digit(member) for member in members)
        case _:
            return False
