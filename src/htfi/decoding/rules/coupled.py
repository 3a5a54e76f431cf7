"""Acceptance by the shared noise (D2), the default rule.

The token at a position is argmax(logits / T + noise) whether it was drafted or not. A drafted token is therefore
accepted exactly when the target picks it, and the first rejected one is replaced by the target's pick.
"""

from collections.abc import Sequence
from math import isfinite

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import SamplingPosition, sample_positions, sample_tokens
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategy import DraftVerification


class CoupledRule:
    """Accepts a drafted token exactly when the target picks it with the shared noise."""

    trace = None

    def __call__(
        self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[DraftVerification | None]:
        open_nodes = [_open_nodes(sequence, tree) for sequence, tree in zip(sequences, trees, strict=True)]
        chosen = iter(_chosen(sequences, open_nodes, logits))
        outcomes: list[DraftVerification | None] = []
        for sequence, tree, nodes, after in zip(sequences, trees, open_nodes, logits, strict=True):
            target_tokens = [-1] * (len(tree) + 1)
            sound = all(map(isfinite, after[:, 0].tolist()))  # a broken node is broken in every logit
            for node, _, _ in nodes:
                target_tokens[node] = next(chosen)
                sound = sound and target_tokens[node] >= 0
            outcomes.append(follow_choices(sequence, tree, target_tokens, sound))
        return outcomes


def follow_choices(
    sequence: SequenceState, tree: DraftTree, target_tokens: list[int], sound: bool = True
) -> DraftVerification | None:
    """Walk down the tree as long as its tokens are forced by the grammar or chosen by the target."""
    grammar, after = sequence.tokenized.grammar, tree.children()
    state, at = sequence.state, -1
    path: list[int] = []
    while state != grammar.done:
        forced = grammar.steps[state].forced
        token = forced if forced >= 0 else target_tokens[at]
        if token < 0:
            return None
        node = after[at].get(token)
        if node is None:
            return DraftVerification(path, token, target_tokens, sound)
        path.append(node)
        at, state = node, grammar.advance(state, token)
    return DraftVerification(path, -1, target_tokens, sound)


_OpenNode = tuple[int, int, int]


def _chosen(
    sequences: Sequence[SequenceState], open_nodes: Sequence[Sequence[_OpenNode]], logits: Sequence[Floats]
) -> list[int]:
    """The target's choice at every open node, sequence by sequence."""
    if len(sequences) == 1:
        ((sequence,), (nodes,), (after,)) = sequences, open_nodes, logits
        steps, base = sequence.tokenized.grammar.steps, len(sequence.tokens)
        admitted = steps[nodes[0][1]].allowed if nodes else None
        # A chain whose positions allow the same tokens, such as a path: its logits need no copy.
        if admitted is not None and all(
            node == depth - 1 == at - 1 and steps[state].allowed is admitted
            for at, (node, state, depth) in enumerate(nodes)
        ):
            noise = sequence.noise_keys[base : base + len(nodes)]
            return sample_tokens(after[: len(nodes)], admitted, sequence.tokenized.sampling, noise).tolist()
    rows: list[Floats] = []
    places: list[SamplingPosition] = []
    for sequence, nodes, after in zip(sequences, open_nodes, logits, strict=True):
        base = len(sequence.tokens)
        for node, state, depth in nodes:
            rows.append(after[node + 1])
            places.append(sequence.sampling_position(state, base + depth))
    return sample_positions(rows, places) if rows else []


def _open_nodes(sequence: SequenceState, tree: DraftTree) -> list[_OpenNode]:
    """Node (−1: the accepted text), grammar state and distance from the accepted text of each open position."""
    grammar = sequence.tokenized.grammar
    found: list[_OpenNode] = []
    if sequence.state != grammar.done:
        found.append((-1, sequence.state, 0))
    depth = [0] * len(tree)
    for node, (parent, state) in enumerate(zip(tree.parents, tree.states, strict=True)):
        depth[node] = depth[parent] + 1 if parent >= 0 else 1
        if state != grammar.done and grammar.steps[state].forced < 0:
            found.append((node, state, depth[node]))
    return found
