"""Drafts as a record states them, round by round. `htfi ledger replay` has the target verify them again."""

from collections import deque
from collections.abc import Sequence

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategies.sampled import SampledStrategy
from htfi.decoding.strategy import DraftVerification
from htfi.domain.errors import IntegrityError
from htfi.domain.generation import DraftRound


class RecordedStrategy:
    """Implements `DraftStrategy` for one answer: proposes the recorded drafts, whatever length is asked for.

    With `sampled`, the draft model samples each draft again: a recorded one must be what it gives, and brings the
    distributions that the rejection rule needs.
    """

    name = "recorded"

    def __init__(self, rounds: Sequence[DraftRound], sampled: SampledStrategy | None = None) -> None:
        self._left = deque(enumerate(rounds, 1))
        self._sampled = sampled

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        """Raises: IntegrityError if the recorded draft does not hold to the grammar, or is not the draft model's."""
        return [self._next(sequence) for sequence, _ in zip(sequences, lengths, strict=True)]

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        pass

    def finish(self, sequence: SequenceState) -> None:
        if self._sampled is not None:
            self._sampled.finish(sequence)

    def _next(self, sequence: SequenceState) -> DraftTree:
        tree = DraftTree()
        if not self._left:
            return tree
        number, recorded = self._left.popleft()
        parents = recorded.parents or tuple(range(-1, len(recorded.drafted) - 1))
        if len(parents) != len(recorded.drafted) or any(
            not -1 <= parent < node for node, parent in enumerate(parents)
        ):
            raise IntegrityError(f"the draft recorded for round {number} is not a tree")
        for token, parent in zip(recorded.drafted, parents, strict=True):
            tree.add_token(sequence.tokenized.grammar, sequence.state, token, parent)
        if self._sampled is None or not len(tree):
            return tree
        (sampled,) = self._sampled.speculate([sequence], [tree.depth])
        sampled = sampled.truncated(len(tree))
        if (sampled.tokens, sampled.parents) != (tree.tokens, tree.parents):
            raise IntegrityError(
                f"the draft recorded for round {number} is not what the draft model samples there"
            )
        return sampled
