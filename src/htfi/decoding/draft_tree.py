"""A draft: a tree of tokens after an accepted text, with its mask and depths for one pass of the target."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.noise import Doubles
from htfi.decoding.ports import Ids


@dataclass(slots=True)
class DraftTree:
    """Tokens that may follow an accepted text; tokens that the grammar forces are nodes too.

    parents[i] is the node before node i, −1 the accepted text. Parents precede their children, and no two children of a
    node hold the same token. states[i] is the grammar's state after node i; num_chosen[i] counts the chosen (not
    forced) tokens up to it. A chain has parents −1, 0, 1, …

    draft_probs[i], needed by the rejection rule, is the distribution over the tokens allowed after node i (−1: after
    the accepted text) from which its children were sampled without replacement.
    """

    tokens: list[int] = field(default_factory=list[int])
    parents: list[int] = field(default_factory=list[int])
    states: list[int] = field(default_factory=list[int])
    num_chosen: list[int] = field(default_factory=list[int])
    draft_probs: dict[int, Doubles] = field(default_factory=dict[int, Doubles])

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def depth(self) -> int:
        """Chosen tokens on the longest branch."""
        return max(self.num_chosen, default=0)

    def add(self, token: int, parent: int, state: int, forced: bool = False) -> int:
        """Add a node after `parent`; its number."""
        self.tokens.append(token)
        self.parents.append(parent)
        self.states.append(state)
        self.num_chosen.append((self.num_chosen[parent] if parent >= 0 else 0) + (not forced))
        return len(self.tokens) - 1

    def add_token(self, grammar: TokenAutomaton, start: int, token: int, parent: int) -> int:
        """Add a node after `parent`; the grammar's state before the tree is `start`. Its number.

        The grammar decides whether it was forced and the state after it. Raises IntegrityError if the token is not
        allowed.
        """
        before = self.states[parent] if parent >= 0 else start
        state = grammar.advance(before, token)
        return self.add(token, parent, state, forced=grammar.steps[before].forced >= 0)

    def add_with_forced(
        self, grammar: TokenAutomaton, state: int, token: int, parent: int
    ) -> tuple[int, list[int]]:
        """Add a chosen token after `parent`, where the grammar is in `state`, and the tokens that it forces.

        Returns the last node and the added tokens.
        """
        tokens = [token]
        state = grammar.advance(state, token)
        node = self.add(token, parent, state)
        while state != grammar.done and (forced := grammar.steps[state].forced) >= 0:
            state = grammar.advance(state, forced)
            node = self.add(forced, node, state, forced=True)
            tokens.append(forced)
        return node, tokens

    def truncated(self, num_nodes: int) -> "DraftTree":
        """The tree of the first nodes only."""
        if num_nodes >= len(self):
            return self
        n = num_nodes
        return DraftTree(
            self.tokens[:n], self.parents[:n], self.states[:n], self.num_chosen[:n], self.draft_probs
        )

    def children(self) -> list[dict[int, int]]:
        """For each node, and the accepted text (the last entry, so that −1 finds it): token → node."""
        after: list[dict[int, int]] = [{} for _ in range(len(self.tokens) + 1)]
        for node, (token, parent) in enumerate(zip(self.tokens, self.parents, strict=True)):
            after[parent][token] = node
        return after


def is_chain(parents: Sequence[int]) -> bool:
    return list(parents) == list(range(-1, len(parents) - 1))


def node_depths(parents: Sequence[int]) -> Ids:
    """Distance of each node from the accepted text: 0 for its children."""
    found = np.zeros(len(parents), np.int64)
    for node, parent in enumerate(parents):
        found[node] = found[parent] + 1 if parent >= 0 else 0
    return found


def ancestor_mask(parents: Sequence[int]) -> NDArray[np.bool_]:
    """Which nodes each node attends to [n, n]: itself and its ancestors."""
    sees = np.eye(len(parents), dtype=np.bool_)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
    return sees
