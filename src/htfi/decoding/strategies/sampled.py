"""Chains and trees sampled from the draft's own distribution, for the rejection rules: siblings without replacement.

Their noise is the draft's own (stream DRAFT_STREAMS and up), and the tree carries the distributions. Width and depth of
a tree depend on distributions and accepted text, never on the value of a sampled token, which would bias the rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.noise import noise_key
from htfi.decoding.ports import Floats
from htfi.decoding.rules.rejection import (
    DRAFT_STREAMS,
    ROOT,
    entropy_nats,
    sample_without_replacement,
    token_probabilities,
)
from htfi.decoding.sequence import COMPLETION_STREAM, SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.draft_rows import DraftKVRow, DraftKVRows
from htfi.decoding.strategy import DraftVerification
from htfi.domain.errors import InvalidInput

TREE_WIDTHS = (2, 2, 1)


@dataclass(slots=True)
class _SampledTip:
    """The end of a branch: its last node, the next position of the answer, and the draft's logits [V] there."""

    node: int
    place: int
    logits: Floats


@dataclass(slots=True)
class _SampledTree:
    """A tree being sampled; the draft has read its first `num_read` nodes."""

    sequence: SequenceState
    tree: DraftTree
    length: int
    row: DraftKVRow
    tips: list[_SampledTip] = field(default_factory=list[_SampledTip])
    num_read: int = 0
    is_sound: bool = True


class SampledStrategy:
    """Implements `DraftStrategy`: `widths[d]` siblings after each node d chosen tokens deep, the last width for deeper
    ones.

    (1,) is a chain. A branch ends before sampling if the draft's distribution has more than `max_nats` of entropy.
    Raises InvalidInput for widths below 1.
    """

    def __init__(
        self, sessions: KVSessions, widths: Sequence[int] = (1,), max_nats: float = float("inf")
    ) -> None:
        if not widths or min(widths) < 1:
            raise InvalidInput(
                f"widths {list(widths)} of a sampled tree: give at least one, each of 1 or more"
            )
        self.name = "sampled chain" if max(widths) == 1 else "sampled tree"
        self._rows = DraftKVRows(sessions)
        self.widths = tuple(widths)
        self._max_nats = max_nats

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in sequences]
        asked = [at for at, length in enumerate(lengths) if length > 0 and not sequences[at].is_done]
        levels = self._rows.catch_up([sequences[at] for at in asked]) if asked else []
        active: list[_SampledTree] = []
        for at, level in zip(asked, levels, strict=True):
            if level is not None:
                root = _SampledTip(ROOT, len(sequences[at].tokens), level[1])
                active.append(_SampledTree(sequences[at], trees[at], lengths[at], level[0], [root]))
        drafted, depth = active, 0
        while active:
            width = self.widths[min(depth, len(self.widths) - 1)]
            depth += 1
            for growing_tree in active:
                self._grow(growing_tree, width)
            active = [growing_tree for growing_tree in active if self._can_grow(growing_tree, depth)]
            if active:
                self._read(active)
        # back to the accepted text; the next round reads an accepted branch again
        for growing_tree in drafted:
            row = growing_tree.row.row
            if growing_tree.is_sound:
                self._rows.sessions.rewind(row, row.length - growing_tree.num_read)
        return trees

    def _grow(self, growing_tree: _SampledTree, width: int) -> None:
        """Sample the siblings after each tip. After a logit that is not finite nothing more is drafted."""
        sequence, tree = growing_tree.sequence, growing_tree.tree
        grammar = sequence.tokenized.grammar
        tips: list[_SampledTip] = []
        for branch, tip in enumerate(growing_tree.tips):
            state = tree.states[tip.node] if tip.node >= 0 else sequence.state
            admitted = grammar.steps[state].allowed
            (probabilities,) = token_probabilities(tip.logits[None], admitted, sequence.tokenized.sampling)
            if np.isnan(probabilities[0]):
                growing_tree.tips, growing_tree.is_sound = [], False
                self._rows.finish(sequence, wipe=True)
                return
            if entropy_nats(probabilities) > self._max_nats:
                continue
            tree.draft_probs[tip.node] = probabilities
            place_key = noise_key(
                sequence.tokenized.request.seed, DRAFT_STREAMS + COMPLETION_STREAM, tip.place
            )
            # each branch has its own noise: otherwise one branch would reveal the samples of another
            for choice in sample_without_replacement(
                probabilities, admitted, np.array([noise_key(place_key, 0, branch)], np.uint64), width
            ):
                node, put = tree.add_with_forced(grammar, state, int(admitted.ids[choice]), tip.node)
                if tree.states[node] != grammar.done:
                    tips.append(_SampledTip(node, tip.place + len(put), tip.logits))
        growing_tree.tips = tips

    def _can_grow(self, growing_tree: _SampledTree, depth: int) -> bool:
        row = growing_tree.row.row
        num_unread = len(growing_tree.tree) - growing_tree.num_read
        return (
            bool(growing_tree.tips) and depth < growing_tree.length and num_unread <= row.limit - row.length
        )

    def _read(self, active: Sequence[_SampledTree]) -> None:
        after = self._rows.sessions.extend(
            [growing_tree.row.row for growing_tree in active],
            [growing_tree.tree.tokens[growing_tree.num_read :] for growing_tree in active],
            [growing_tree.tree.parents for growing_tree in active],
        )
        for growing_tree, logits in zip(active, after, strict=True):
            for tip in growing_tree.tips:
                tip.logits = logits[tip.node - growing_tree.num_read]
            growing_tree.num_read = len(growing_tree.tree)

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        pass

    def finish(self, sequence: SequenceState) -> None:
        self._rows.finish(sequence)
