"""The one interface of all strategies: speculate, verify, settle. `LocalAuthor` runs a round of it at a time.

A strategy guesses what the target will say; the author has one pass of the target read all guesses and follows them
as far as the target agrees. So a strategy decides how long an answer takes, and never what it says.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.sequence import SequenceState


class DraftVerification(NamedTuple):
    """What the target made of a draft: the nodes it agreed with, from the first on, and its own next token.

    `said` holds its choice at each node that left one open and, last, after the settled text; −1 where none was.
    `sound` is false where some node gave a logit that is not finite.
    """

    path: list[int]
    next_token: int  # −1 where the answer ended
    said: list[int]
    is_finite: bool = True


class DraftStrategy(Protocol):
    """Guesses of what comes next. Stems are told apart by identity; each is left in the end."""

    @property
    def name(self) -> str: ...

    def speculate(self, stems: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        """One tree a stem, at most lengths[i] chosen tokens deep (forced ones are free); 0 asks for none."""
        ...

    def verifying(self, stems: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        """The target's pass is about to begin."""
        ...

    def settle(self, stem: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        """What came of a draft; `stem` holds the settled tokens already."""
        ...

    def leave(self, stem: SequenceState) -> None:
        """The answer is finished or given up."""
        ...


class NoDraft:
    """No guesses: one token a pass."""

    name = "plain"

    def speculate(self, stems: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        return [DraftTree() for _ in zip(stems, lengths, strict=True)]

    def verifying(self, stems: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def settle(self, stem: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        pass

    def leave(self, stem: SequenceState) -> None:
        pass
