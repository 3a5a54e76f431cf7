"""The one interface of all strategies: speculate, verify, settle. `LocalAuthor` runs a round of it at a time.

A strategy guesses what the target will say; the author has one pass of the target read all guesses and follows them
as far as the target agrees. So a strategy decides how long an answer takes, and never what it says.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from htfi.decoding.draft import DraftTree
from htfi.decoding.stem import Stem


class Outcome(NamedTuple):
    """What the target made of a draft: the nodes it agreed with, from the first on, and its own next token.

    `said` holds its choice at each node that left one open and, last, after the settled text; −1 where none was.
    `sound` is false where some node gave a logit that is not finite.
    """

    path: list[int]
    token: int  # −1 where the answer ended
    said: list[int]
    sound: bool = True


class Strategy(Protocol):
    """Guesses of what comes next. Stems are told apart by identity; each is left in the end."""

    @property
    def name(self) -> str: ...

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        """One tree a stem, at most lengths[i] chosen tokens deep (forced ones are free); 0 asks for none."""
        ...

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        """The target's pass is about to begin."""
        ...

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        """What came of a draft; `stem` holds the settled tokens already."""
        ...

    def leave(self, stem: Stem) -> None:
        """The answer is finished or given up."""
        ...


class Plain:
    """No guesses: one token a pass."""

    name = "plain"

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        return [DraftTree() for _ in zip(stems, lengths, strict=True)]

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        pass

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        pass

    def leave(self, stem: Stem) -> None:
        pass
