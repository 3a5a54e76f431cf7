"""Jacobi refinement: the target's choices after a rejected guess are the next guess, with or without a draft.

With fixed noise, decoding is a fixed point of "choose each token after the guesses before it". A pass of the target is
one step towards it; everything before the first change is accepted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from htfi.decoding.draft_tree import DraftTree, is_chain
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategy import DraftStrategy, DraftVerification, StrategyParts
from htfi.domain.errors import InvalidInput

# Of the tokens that a drafted round gives: a refined round needs no pass of the draft.
_MIN_SHARE = 0.8
_PROBE_EVERY = 16


@dataclass(slots=True)
class _RefinementWindow:
    """The target's choices after rejected guesses, by position; `begin` is the next open position."""

    begin: int = 0
    is_drafted: bool = False
    target_tokens: dict[int, int] = field(default_factory=dict[int, int])


class JacobiStrategy:
    """Implements `DraftStrategy`. `draft` makes the first guess, the one after a used-up window, and all guesses while
    its own are accepted more often. Without a draft a guess is the token that last followed, else the last token again,
    else the first allowed one.
    """

    def __init__(self, draft: DraftStrategy | None = None, window: int = 16) -> None:
        if window < 1:
            raise InvalidInput("jacobi: window must be ≥ 1")
        self.name = "jacobi" if draft is None else f"jacobi on {draft.name}"
        self._draft = draft
        self._window = window
        self._windows: dict[int, _RefinementWindow] = {}
        self._gains: dict[
            tuple[str, bool], float
        ] = {}  # tokens per round, by kind and whether the draft guessed
        self._num_passed_over = 0
        self._next: dict[int, int] = {}  # token → the target's latest token after it

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        lengths = [min(length, self._window) for length in lengths]
        windows = [self._windows.setdefault(id(sequence), _RefinementWindow()) for sequence in sequences]
        wanted = list(lengths)
        for at, (sequence, window) in enumerate(zip(sequences, windows, strict=True)):
            window.begin = len(sequence.tokens)
            window.is_drafted = self._draft is not None and not (
                window.begin in window.target_tokens and self._refines(sequence.tokenized.request.kind)
            )
            if not window.is_drafted:
                wanted[at] = 0
        drafted = self._draft.speculate(sequences, wanted) if self._draft is not None else []
        return [
            drafted[at] if window.is_drafted else self._refined(sequence, window.target_tokens, length)
            for at, (sequence, window, length) in enumerate(zip(sequences, windows, lengths, strict=True))
        ]

    def _refines(self, kind: str) -> bool:
        """Whether the target's choices should be better guesses than the draft's; tried now and then if not."""
        refined, drafted = (self._gains.get((kind, is_drafted)) for is_drafted in (False, True))
        if refined is None or drafted is None or refined >= _MIN_SHARE * drafted:
            return True
        self._num_passed_over += 1
        return self._num_passed_over % _PROBE_EVERY == 0

    def _refined(self, sequence: SequenceState, target_tokens: dict[int, int], length: int) -> DraftTree:
        tree, grammar = DraftTree(), sequence.tokenized.grammar
        state, node, last = sequence.state, -1, [*sequence.tokenized.prompt[-1:], *sequence.tokens][-1]
        for _ in range(length):
            if state == grammar.done:
                break
            place = len(sequence.tokens) + len(tree)
            if place not in target_tokens and self._draft is not None:
                break  # let the draft guess next time
            guesses = (target_tokens.get(place, -1), self._next.get(last, -1), last)
            fallback = int(grammar.steps[state].allowed.ids[0])
            token = next(
                (guess for guess in guesses if guess >= 0 and grammar.allows(state, guess)), fallback
            )
            node, put = tree.add_with_forced(grammar, state, token, node)
            state, last = tree.states[node], put[-1]
        return tree

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        if self._draft is not None:
            self._draft.verification_starts(sequences, trees)

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        window = self._windows.get(id(sequence))
        if window is None:
            return
        window.target_tokens = {}
        if is_chain(tree.parents):
            first, unsettled = window.begin + 1, len(sequence.tokens)
            places = enumerate(outcome.target_tokens[:-1], first)
            window.target_tokens = {
                place: token for place, token in places if token >= 0 and place >= unsettled
            }
        before = sequence.tokens[max(window.begin - 1, 0) :]
        self._next.update(pairwise(before))
        if self._draft is not None:
            if len(tree):
                case, gain = (sequence.tokenized.request.kind, window.is_drafted), len(outcome.path) + 1.0
                self._gains[case] = self._gains.get(case, gain) + 0.05 * (gain - self._gains.get(case, gain))
            mine = (
                (tree, outcome)
                if window.is_drafted
                else (DraftTree(), outcome._replace(path=[], target_tokens=[-1]))
            )
            self._draft.verified(sequence, *mine)

    def finish(self, sequence: SequenceState) -> None:
        self._windows.pop(id(sequence), None)
        if self._draft is not None:
            self._draft.finish(sequence)


def build(parts: StrategyParts) -> DraftStrategy:
    """The strategy 'jacobi' of the settings."""
    return parts.replayable(JacobiStrategy)
