"""Languages of characters: what may follow a beginning, one character at a time.

A position in a language is a set of stacks of parts that are still to come. A step reads one character. Parts are
compared by identity: build a part once and use it often.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, assert_never


class Letter:
    """One character of a kind."""

    def __init__(self, holds: Callable[[str], bool]) -> None:
        self.holds = holds


class Sequence:
    """Parts one after the other."""

    def __init__(self, *parts: "Part") -> None:
        self.parts = parts


class Choice:
    """One of several parts."""

    def __init__(self, *options: "Part") -> None:
        self.options = options


class Repeat:
    """A part again and again: at least `least` times, at most `most` (None: without bound)."""

    def __init__(self, part: "Part", least: int = 0, most: int | None = None) -> None:
        self.part, self.least, self.most = part, least, most


class Later:
    """A part that is built when it is reached, so that a language may hold itself."""

    def __init__(self, build: "Callable[[], Part]") -> None:
        self.build = cache(build)


Part = Letter | Sequence | Choice | Repeat | Later
Stack = tuple["Part", ...]  # the next part last


class Position(NamedTuple):
    """What may come: a kind of character with the stack after it, for each way on; and whether it may end here."""

    ways: tuple[tuple[Letter, Stack], ...]
    may_end: bool


def text(words: str) -> Part:
    """These characters."""
    return Sequence(*(_letter(one) for one in words))


def one_of(characters: str) -> Letter:
    return Letter(frozenset(characters).__contains__)


def start(part: Part) -> Position:
    """Before the first character of a part."""
    return _position([(part,)])


def step(position: Position, character: str) -> Position:
    """After one more character; no ways and no end where it cannot come."""
    return _position([stack for letter, stack in position.ways if letter.holds(character)])


@cache
def _letter(character: str) -> Letter:
    return Letter(character.__eq__)


@cache
def _less(part: Repeat) -> Repeat:
    """One time less."""
    most = None if part.most is None else part.most - 1
    if part.most is None and part.least == 0:
        return part
    return Repeat(part.part, max(part.least - 1, 0), most)


def _position(stacks: list[Stack]) -> Position:
    ways: dict[tuple[Letter, Stack], None] = {}
    seen = set(stacks)
    may_end = False

    def push(stack: Stack) -> None:
        if stack not in seen:
            seen.add(stack)
            stacks.append(stack)

    while stacks:
        stack = stacks.pop()
        if not stack:
            may_end = True
            continue
        part, rest = stack[-1], stack[:-1]
        match part:
            case Letter():
                ways[part, rest] = None
            case Sequence():
                push((*rest, *reversed(part.parts)))
            case Choice():
                for option in part.options:
                    push((*rest, option))
            case Repeat():
                if part.least <= 0:
                    push(rest)
                if part.most is None or part.most > 0:
                    push((*rest, _less(part), part.part))
            case Later():
                push((*rest, part.build()))
            case _:
                assert_never(part)
    return Position(tuple(sorted(ways, key=lambda way: (id(way[0]), len(way[1])))), may_end)
