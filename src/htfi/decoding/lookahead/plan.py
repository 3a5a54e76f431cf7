"""What a plan of look-ahead is asked and told, and the simplest one: always the same length.

No planner reads a clock or draws at random: what it is told of rounds is all it knows, and `plan` changes nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from htfi.domain.errors import InvalidInput


class Ask(NamedTuple):
    """A row of the coming pass: `cap` tokens may be drafted for it at most.

    The least of: the request's own cap (0: it opted out), what is left of the answer less one (the pass itself
    gives one), and the room that its keys and values have.
    """

    kind: str
    cap: int


class Round(NamedTuple):
    """What came of one row of a round. `drafted`, `accepted`: chosen tokens (a tree's depth), forced ones aside.

    The others are the whole round's, alike for all its rows: `draft_ms` waiting for drafts, `verify_ms` all the rest,
    `rows` of the target's pass, and `tokens` new to its widest row, the pending ones included.
    """

    kind: str
    drafted: int
    accepted: int
    draft_ms: float
    verify_ms: float
    rows: int
    tokens: int


class Lookahead(Protocol):
    """Plans how far to draft for each row; 0 is plain decoding."""

    @property
    def name(self) -> str: ...

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        """A length ≤ cap for each row of the coming pass."""
        ...

    def learn(self, rounds: Sequence[Round]) -> None:
        """What came of the rows of one pass."""
        ...


class Fixed:
    """Always `length` tokens, as far as caps allow."""

    def __init__(self, length: int) -> None:
        if length < 0:
            raise InvalidInput("look-ahead length: take a number ≥ 0")
        self.name = f"fixed {length}"
        self._length = length

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        return [max(min(self._length, ask.cap), 0) for ask in asks]

    def learn(self, rounds: Sequence[Round]) -> None:
        pass
