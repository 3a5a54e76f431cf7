"""Derives from a pattern what its matches begin with, so that it is tried at those words of a text alone, and what they
hold.

Words are known as `prefilter` knows them, but where the pattern leaves open how a word goes on by as many of its first
letters as are certain, with a star. # is a word that begins with a digit, @5 one of five letters or more.
"""

import re
from collections.abc import Sequence

from htfi.narrative.pattern_trees import (
    Node,
    begins_word_after,
    characters_of,
    ends_word,
    is_digit,
    letter_of,
    parse_pattern,
)

_NUM_LETTERS = 6  # by which words are known
_MAX_WORDS = 600
_MAX_DEPTH = 150
_MAX_STEPS = 50_000  # nested repetitions may spell a word in any number of ways
_DIGIT = "#"
_MIN_LENGTH, _MAX_LENGTH = 6, 12  # of words that are known by their length alone


def start_words(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> frozenset[str] | None:
    """What every match of a pattern begins with: the first letter of one of these words. None where it may begin with
    anything else, and every place of a text is tried.
    """
    tree = parse_pattern(pattern, flags)
    found = _Found()
    return frozenset(found.words) if tree is not None and _starts(tree, False, found, 0) else None


class _Found:
    """The words found so far, and whether it is worth going on."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self._num_steps = 0

    def goes_on(self, depth: int) -> bool:
        """Counts a step; False where there were too many of them, of words, or of parts within parts."""
        self._num_steps += 1
        return depth <= _MAX_DEPTH and len(self.words) <= _MAX_WORDS and self._num_steps <= _MAX_STEPS


def _starts(nodes: Sequence[Node], is_begun: bool, found: _Found, depth: int) -> bool:
    """Adds the words that a sequence begins with; False where it may begin otherwise. `is_begun`: a letter at its start
    begins a word.
    """
    if not nodes or not found.goes_on(depth):
        return False
    node, rest = nodes[0], nodes[1:]
    match node[0], node[1]:
        case (("AT" | "ASSERT" | "ASSERT_NOT"), _):
            return _starts(rest, begins_word_after(node, is_begun), found, depth + 1)
        case (("LITERAL" | "IN" | "CATEGORY"), _):
            if is_begun and is_digit(node):
                found.words.add(_DIGIT)
                return True
            starts = characters_of(node)
            is_word = is_begun and starts.is_known and not starts.may_be_other
            return is_word and _spell(nodes, "", found, depth + 1)
        case (("MAX_REPEAT" | "MIN_REPEAT"), (0, _, [("IN", [("CATEGORY", "CATEGORY_WORD")])])) if (
            is_begun and rest
        ):
            return _of_length(rest, found)
        case _:
            ways = _ways(node, rest)
            return ways is not None and all(_starts(way, is_begun, found, depth + 1) for way in ways)


def _of_length(nodes: Sequence[Node], found: _Found) -> bool:
    """Adds the words as long as the letters at the start of a sequence, which end a word; False for few letters."""
    num = 0
    while num < len(nodes) and num < _MAX_LENGTH and letter_of(nodes[num]):
        num += 1
    if num < _MIN_LENGTH:
        return False
    found.words.add(f"@{num}")
    return True


def _ways(node: Node, rest: Sequence[Node]) -> list[Sequence[Node]] | None:
    """How a sequence may go on that begins with a group or a repetition; None where that is not known."""
    match node[0], node[1]:
        case "SUBPATTERN", (_, flags, _, inner):
            return None if flags & re.ASCII else [[*inner, *rest]]
        case "ATOMIC_GROUP", inner:
            return [[*inner, *rest]]
        case "BRANCH", (_, branches):
            return [[*branch, *rest] for branch in branches]
        case (("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT"), (least, most, inner)):
            again = (node[0], (max(least - 1, 0), most - 1, inner))
            more: list[Sequence[Node]] = [[*inner, again, *rest]] if most > 0 else []
            return more if least > 0 else [*more, rest]
        case _:
            return None


def _spell(nodes: Sequence[Node], begun: str, found: _Found, depth: int) -> bool:
    """Adds the words that go on as a sequence does, of which `begun` has been read; False for too many."""
    if len(begun) == _NUM_LETTERS:
        found.words.add(begun)
        return True
    if not found.goes_on(depth):
        return False
    if not nodes:
        return _add_open(begun, found)
    node, rest = nodes[0], nodes[1:]
    match node[0], node[1]:
        case (("LITERAL" | "IN" | "CATEGORY"), _):
            following = characters_of(node)
            if not following.is_known:
                return _add_open(begun, found)
            if following.may_be_other and begun:
                found.words.add(begun)
            return all(_spell(rest, begun + letter, found, depth + 1) for letter in sorted(following.letters))
        case "AT", place:
            if place in ("AT_BEGINNING", "AT_BEGINNING_STRING", "AT_NON_BOUNDARY"):
                return _spell(rest, begun, found, depth + 1)
            found.words.add(begun)
            return True
        case (("ASSERT" | "ASSERT_NOT"), _):
            if ends_word(node):
                found.words.add(begun)
                return True
            return _spell(rest, begun, found, depth + 1)  # what it asks besides only narrows the matches
        case _:
            ways = _ways(node, rest)
            if ways is None:
                return _add_open(begun, found)
            return all(_spell(way, begun, found, depth + 1) for way in ways)


def _add_open(begun: str, found: _Found) -> bool:
    """Adds a word that may go on in any way; False where nothing of it is known."""
    if begun:
        found.words.add(f"{begun}*")
    return begun != ""


def literal_marks(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> tuple[str, ...]:
    """Strings in small letters of which one stands in every match of a pattern: the longest of each alternative. None
    at all where an alternative has none.
    """
    tree = parse_pattern(pattern, flags)
    if tree is None:
        return ()
    branches = tree[0][1][1] if len(tree) == 1 and tree[0][0] == "BRANCH" else [tree]
    found = [_longest_literal(branch) for branch in branches]
    return tuple(dict.fromkeys(found)) if all(found) else ()


def _longest_literal(nodes: Sequence[Node]) -> str:
    runs = [""]
    for node in nodes:
        char = chr(node[1]) if node[0] == "LITERAL" else ""
        if char and (char.isascii() or not char.isalnum()):
            runs[-1] += char.lower()
        else:
            runs.append("")
    return max(runs, key=len)
