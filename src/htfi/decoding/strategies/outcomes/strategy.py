"""Speculative-speculative decoding: while the target verifies a block, the draft works on the likeliest outcomes.

The blocks are what chain drafting would give, only sooner; the target never reads the outcome cache. It hides the
draft's time D behind the target's V, so it gains at most (D + V) / V. On a draft whose last bits depend on how a text
is cut into passes, a near-tie in a block may turn; no answer changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategy import DraftStrategy, DraftVerification, NoDraft, OutcomeDraft
from htfi.domain.errors import IntegrityError


@dataclass(slots=True)
class CacheHits:
    """Of the rounds with a block, how many outcomes were found in the cache."""

    hits: int = 0
    misses: int = 0

    def count(self, hit: bool) -> None:
        if hit:
            self.hits += 1
        else:
            self.misses += 1


class OutcomeStrategy:
    """Implements `DraftStrategy`. While the draft's process is down, `otherwise` guesses, by default nothing."""

    name = "outcomes"

    def __init__(self, draft: OutcomeDraft, otherwise: DraftStrategy | None = None) -> None:
        self.hits = CacheHits()
        self._foresight = draft
        self._otherwise: DraftStrategy = otherwise or NoDraft()
        self._num_known: dict[int, int] = {}  # sequence → how many of its tokens the draft knows

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        if not self._foresight.is_up:
            return self._otherwise.speculate(sequences, lengths)
        trees = [DraftTree() for _ in sequences]
        asked = [at for at, length in enumerate(lengths) if length > 0 and not sequences[at].is_done]
        if not asked:
            return trees
        blocks = self._foresight.blocks([sequences[at] for at in asked], [lengths[at] for at in asked])
        for at, tokens in zip(asked, blocks, strict=True):
            sequence = sequences[at]
            self._num_known[id(sequence)] = len(sequence.tokens)
            try:
                trees[at] = _chain(sequence, tokens, lengths[at])
            except IntegrityError as error:
                self._foresight.refuse(str(error))
        return trees

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        self._foresight.verification_starts()
        self._otherwise.verification_starts(sequences, trees)

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        self._otherwise.verified(sequence, tree, outcome)
        num_known = self._num_known.get(id(sequence))
        if num_known is None:
            return
        self._num_known[id(sequence)] = len(sequence.tokens)
        hit = self._foresight.accepted(sequence, sequence.tokens[num_known:])
        if hit is not None and len(tree) and not sequence.is_done:
            self.hits.count(hit)

    def finish(self, sequence: SequenceState) -> None:
        self._num_known.pop(id(sequence), None)
        self._foresight.finish(sequence)
        self._otherwise.finish(sequence)


def _chain(sequence: SequenceState, tokens: Sequence[int], length: int) -> DraftTree:
    """A block as a tree of at most `length` chosen tokens. Raises IntegrityError if it breaks the grammar."""
    tree, grammar, state = DraftTree(), sequence.tokenized.grammar, sequence.state
    for token in tokens:
        if tree.depth == length and state != grammar.done and grammar.steps[state].forced < 0:
            break
        state = tree.states[tree.add_token(grammar, sequence.state, token, len(tree) - 1)]
    return tree
