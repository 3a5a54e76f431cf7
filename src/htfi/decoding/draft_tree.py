"""What a drafter guesses: a tree of tokens after a settled text, and its mask and depths for one pass of the target."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.noise import Doubles
from htfi.decoding.ports import Ids


@dataclass(slots=True)
class DraftTree:
    """Tokens that may follow a settled text; tokens that the form forces are nodes like any other.

    parents[i] is the node before node i, −1 the settled text; parents precede their children, and no two children
    of a node hold the same token. states[i] is the form's state after node i; num_chosen[i] how many of the tokens
    up to it were chosen, not forced. A chain has parents −1, 0, 1, …

    laws[i], where the rejection rule is to settle, is the law over what the form admits after node i (−1: after the
    settled text) that its children were really drawn from, one after the other without replacement.
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
        """Put a node after `parent`; its number."""
        self.tokens.append(token)
        self.parents.append(parent)
        self.states.append(state)
        self.num_chosen.append((self.num_chosen[parent] if parent >= 0 else 0) + (not forced))
        return len(self.tokens) - 1

    def add_token(self, form: CompiledGrammar, start: int, token: int, parent: int) -> int:
        """Put a node after `parent`, where the form stood in `start` before the tree; its number.

        Whether it was forced and the state after it follow from the form. Raises IntegrityError where it leaves that.
        """
        before = self.states[parent] if parent >= 0 else start
        state = form.advance(before, token)
        return self.add(token, parent, state, forced=form.steps[before].forced >= 0)

    def add_with_forced(
        self, form: CompiledGrammar, state: int, token: int, parent: int
    ) -> tuple[int, list[int]]:
        """Put a chosen token after `parent`, where the form stood in `state`, and what it forces after it.

        Returns the last node, and the tokens put.
        """
        tokens = [token]
        state = form.advance(state, token)
        node = self.add(token, parent, state)
        while state != form.done and (forced := form.steps[state].forced) >= 0:
            state = form.advance(state, forced)
            node = self.add(forced, node, state, forced=True)
            tokens.append(forced)
        return node, tokens

    def truncated(self, num_nodes: int) -> "DraftTree":
        """The tree of the first nodes alone."""
        if num_nodes >= len(self):
            return self
        n = num_nodes
        return DraftTree(
            self.tokens[:n], self.parents[:n], self.states[:n], self.num_chosen[:n], self.draft_probs
        )

    def children(self) -> list[dict[int, int]]:
        """For the settled text (the last entry, so that −1 finds it) and each node: token → node."""
        after: list[dict[int, int]] = [{} for _ in range(len(self.tokens) + 1)]
        for node, (token, parent) in enumerate(zip(self.tokens, self.parents, strict=True)):
            after[parent][token] = node
        return after


def is_chain(parents: Sequence[int]) -> bool:
    return list(parents) == list(range(-1, len(parents) - 1))


def node_depths(parents: Sequence[int]) -> Ids:
    """How far each node lies behind the settled text: 0 for its children."""
    found = np.zeros(len(parents), np.int64)
    for node, parent in enumerate(parents):
        found[node] = found[parent] + 1 if parent >= 0 else 0
    return found


def ancestor_mask(parents: Sequence[int]) -> NDArray[np.bool_]:
    """Which nodes each node reads [n, n]: itself and those before it on its branch."""
    sees = np.eye(len(parents), dtype=np.bool_)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
    return sees
