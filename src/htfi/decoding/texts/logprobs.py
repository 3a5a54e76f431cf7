"""Log-probabilities of the tokens that an acceptance rule lets pass, for the answers that want them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategy import AcceptanceRule, DraftVerification
from htfi.domain.generation import RuleTrace


class TokenLogprob(NamedTuple):
    """A written token, its log-probability, and the likeliest tokens at its place, each with its own."""

    token: int
    logprob: float
    top: list[tuple[int, float]]


class LogprobRule:
    """Implements `AcceptanceRule` by another, and notes what was likely where a followed sequence chose.

    Probabilities are the network's own, at temperature 1, among the tokens that the grammar allows.
    """

    def __init__(self, rule: AcceptanceRule) -> None:
        self._rule = rule
        self._num_top: dict[SequenceState, int] = {}
        self._noted: dict[SequenceState, list[TokenLogprob]] = {}

    @property
    def trace(self) -> RuleTrace | None:
        return self._rule.trace

    def follow(self, sequence: SequenceState, num_top: int) -> None:
        """Note this sequence's choices, with so many of the likeliest tokens each, until it is forgotten."""
        self._num_top[sequence] = num_top

    def noted(self, sequence: SequenceState) -> list[TokenLogprob]:
        """What was noted since the last call."""
        return self._noted.pop(sequence, [])

    def forget(self, sequence: SequenceState) -> None:
        self._num_top.pop(sequence, None)
        self._noted.pop(sequence, None)

    def __call__(
        self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[DraftVerification | None]:
        outcomes = self._rule(sequences, trees, logits)
        for sequence, tree, after, outcome in zip(sequences, trees, logits, outcomes, strict=True):
            if outcome is not None and sequence in self._num_top:
                self._note(sequence, tree, after, outcome)
        return outcomes

    def _note(
        self, sequence: SequenceState, tree: DraftTree, after: Floats, outcome: DraftVerification
    ) -> None:
        tokens = [tree.tokens[node] for node in outcome.path]
        states = [sequence.state, *(tree.states[node] for node in outcome.path)]
        rows = [0, *(node + 1 for node in outcome.path)]
        if outcome.next_token >= 0:
            tokens.append(outcome.next_token)
        steps, num_top = sequence.tokenized.grammar.steps, self._num_top[sequence]
        noted = self._noted.setdefault(sequence, [])
        for token, state, row in zip(
            tokens, states, rows, strict=False
        ):  # after the last token nothing is chosen
            step = steps[state]
            if step.forced >= 0:
                noted.append(TokenLogprob(token, 0.0, [(token, 0.0)][:num_top]))
                continue
            noted.append(_logprob(token, after[row], step.allowed.ids, num_top))


def _logprob(token: int, logits: Floats, ids: np.ndarray, num_top: int) -> TokenLogprob:
    scores = logits[ids].astype(np.float64)
    scores -= scores.max()
    scores -= np.log(np.exp(scores).sum())
    place = int(np.searchsorted(ids, token))
    best = np.argsort(-scores, kind="stable")[:num_top]
    top = [(int(ids[at]), float(scores[at])) for at in best]
    return TokenLogprob(token, float(scores[place]), top)
