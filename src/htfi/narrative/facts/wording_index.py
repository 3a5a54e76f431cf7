"""Finds which of many patterns a text may hold at all, by the first letters of its words.

Of each part of a pattern between its names the letters are derived by which the part can begin; a text without a word
that begins so cannot hold the pattern. Most patterns are left out by it, and only the others are searched for.
"""

import re
from collections.abc import Sequence

_NUM_LETTERS = 3  # of a word that are compared
_WORD = re.compile(r"[^\W_]+")
_COUNT = re.compile(r"\{(\d*)(?:,\d*)?\}")
_LOOK_AROUND = ("(?!", "(?=", "(?<!", "(?<=")
_OPENING = ("(?:", "(")

# How a text may begin: its first letters, and whether what comes behind them is not known.
_Start = tuple[str, bool]


class WordingIndex:
    """Patterns by how their parts can begin."""

    def __init__(self, patterns: Sequence[Sequence[str]]) -> None:
        """`patterns` are the parts of each, regular expressions that begin where a word does."""
        self._all = (1 << len(patterns)) - 1
        num_parts = max((len(parts) for parts in patterns), default=0)
        self._by_letters: list[dict[str, int]] = [{} for _ in range(num_parts)]
        self._always = [0] * num_parts  # patterns whose part at this place may begin anyhow
        for number, parts in enumerate(patterns):
            for place in range(num_parts):
                letters = first_letters(parts[place]) if place < len(parts) else None
                if letters is None:
                    self._always[place] |= 1 << number
                for one in letters or ():
                    self._by_letters[place][one] = self._by_letters[place].get(one, 0) | 1 << number

    def possible(self, text: str) -> list[int]:
        """The numbers of the patterns that a text in lower case may hold, in order."""
        words = set(_WORD.findall(text))
        begun = {word[:num] for word in words for num in range(1, _NUM_LETTERS + 1)}
        left = self._all
        for by_letters, always in zip(self._by_letters, self._always, strict=True):
            held = always
            for one in begun & by_letters.keys():
                held |= by_letters[one]
            left &= held
        found: list[int] = []
        while left:
            lowest = left & -left
            found.append(lowest.bit_length() - 1)
            left ^= lowest
        return found


def first_letters(pattern: str) -> frozenset[str] | None:
    """Up to three letters by which a match of a pattern can begin; None where it may begin with what is no letter.

    The pattern is one of those in `party_roles.toml`: letters, groups, classes, counts, and assertions, which are
    passed over.
    """
    starts, _ = _alternatives(pattern.strip(), 0)
    letters = frozenset(letters for letters, _ in starts)
    return None if "" in letters else letters


def _alternatives(pattern: str, place: int) -> tuple[set[_Start], int]:
    """How alternatives up to the end of their group can begin, and where that end is."""
    found: set[_Start] = set()
    starts: set[_Start] = {("", False)}
    while place < len(pattern) and pattern[place] != ")":
        if pattern[place] == "|":
            found |= starts
            starts, place = {("", False)}, place + 1
            continue
        atom, place = _atom(pattern, place)
        if place < len(pattern) and pattern[place] in "?*+{":
            atom, place = _repeated(atom, pattern, place)
        starts = {joined for one in starts for joined in _continued(one, atom)}
    return found | starts, place


def _atom(pattern: str, place: int) -> tuple[set[_Start], int]:
    """How a letter, a class or a group can begin, and the place behind it."""
    if pattern.startswith(_LOOK_AROUND, place):
        _, end = _alternatives(pattern, pattern.index("?", place) + (3 if pattern[place + 2] == "<" else 2))
        return {("", False)}, end + 1
    for opening in _OPENING:
        if pattern.startswith(opening, place):
            starts, end = _alternatives(pattern, place + len(opening))
            return starts, end + 1
    char = pattern[place]
    if char == "[":
        return {("", True)}, pattern.index("]", place + 2) + 1
    if char == "\\":
        return {("", pattern[place + 1] != "b")}, place + 2
    if char in "^$":
        return {("", False)}, place + 1
    return {(char, False) if char.isalnum() else ("", True)}, place + 1


def _repeated(atom: set[_Start], pattern: str, place: int) -> tuple[set[_Start], int]:
    """An atom with its count: it may be left out, or come again."""
    counted = _COUNT.match(pattern, place)
    may_miss = pattern[place] in "?*" or (counted is not None and counted[1] in ("", "0"))
    end = place + 1 if counted is None else counted.end()
    found = atom if pattern[place] == "?" else {(letters, True) for letters, _ in atom}
    if pattern[end : end + 1] == "?":  # as few as possible
        end += 1
    return found | {("", False)} if may_miss else found, end


def _continued(start: _Start, atom: set[_Start]) -> set[_Start]:
    letters, is_cut = start
    if is_cut:
        return {start}
    return {
        ((letters + more)[:_NUM_LETTERS], cut or len(letters + more) >= _NUM_LETTERS) for more, cut in atom
    }
