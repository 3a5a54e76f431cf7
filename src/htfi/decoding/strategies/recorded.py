"""Drafts as a record tells them, round by round, without a draft network. `htfi ledger replay` verifies them anew."""

from collections import deque
from collections.abc import Sequence

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategy import DraftVerification
from htfi.domain.errors import IntegrityError
from htfi.domain.generation import DraftRound


class RecordedStrategy:
    """Implements `Strategy` for one answer at a time: proposes what was drafted, whatever length is asked for."""

    name = "recorded"

    def __init__(self, rounds: Sequence[DraftRound]) -> None:
        self._left = deque(rounds)

    def speculate(self, stems: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        """Raises: IntegrityError where the record holds no draft of this form."""
        return [self._next(stem) for stem, _ in zip(stems, lengths, strict=True)]

    def verifying(self, stems: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def settle(self, stem: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        pass

    def leave(self, stem: SequenceState) -> None:
        pass

    def _next(self, stem: SequenceState) -> DraftTree:
        if not self._left:
            return DraftTree()
        told = self._left.popleft()
        parents = told.parents or tuple(range(-1, len(told.drafted) - 1))
        if len(parents) != len(told.drafted) or any(not -1 <= at < node for node, at in enumerate(parents)):
            raise IntegrityError("a recorded draft is no tree")
        return _tree(told.drafted, parents, stem.tokenized.grammar, stem.state)


def _tree(tokens: Sequence[int], parents: Sequence[int], form: CompiledGrammar, start: int) -> DraftTree:
    tree = DraftTree()
    for token, parent in zip(tokens, parents, strict=True):
        tree.add_token(form, start, token, parent)
    return tree
