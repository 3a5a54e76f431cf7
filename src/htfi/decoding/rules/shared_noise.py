"""Settling a round: how far the target agrees with a draft, under the shared noise (D2). `LocalAuthor` asks it.

The token at a place is argmax(logits / T + noise) whether it was drafted or not, so a draft token stays exactly when
it is what the target picks there, and the first that is not is replaced by the pick itself.
"""

from collections.abc import Callable, Sequence
from math import isfinite

from htfi.decoding.draft import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import Place, choose, choose_each
from htfi.decoding.stem import Stem
from htfi.decoding.strategy import Outcome

Rule = Callable[[Sequence[Stem], Sequence[DraftTree], Sequence[Floats]], list[Outcome | None]]


def settle(
    stems: Sequence[Stem], trees: Sequence[DraftTree], logits: Sequence[Floats]
) -> list[Outcome | None]:
    """One outcome a stem, None where a logit that decides is not a finite number.

    Shapes: logits [1 + n, V] for each stem: after its settled text, then after each of the tree's n nodes.
    """
    open_nodes = [_open_nodes(stem, tree) for stem, tree in zip(stems, trees, strict=True)]
    chosen = iter(_chosen(stems, open_nodes, logits))
    outcomes: list[Outcome | None] = []
    for stem, tree, nodes, after in zip(stems, trees, open_nodes, logits, strict=True):
        said = [-1] * (len(tree) + 1)
        sound = all(map(isfinite, after[:, 0].tolist()))  # a broken node is broken everywhere
        for node, _, _ in nodes:
            said[node] = next(chosen)
            sound = sound and said[node] >= 0
        outcomes.append(follow(stem, tree, said, sound))
    return outcomes


def follow(stem: Stem, tree: DraftTree, said: list[int], sound: bool = True) -> Outcome | None:
    """Walk down the tree as far as its tokens are those that the form forces or the target said."""
    form, after = stem.asked.form, tree.children()
    state, at = stem.state, -1
    path: list[int] = []
    while state != form.done:
        forced = form.steps[state].forced
        token = forced if forced >= 0 else said[at]
        if token < 0:
            return None
        node = after[at].get(token)
        if node is None:
            return Outcome(path, token, said, sound)
        path.append(node)
        at, state = node, form.advance(state, token)
    return Outcome(path, -1, said, sound)


_Node = tuple[int, int, int]


def _chosen(
    stems: Sequence[Stem], open_nodes: Sequence[Sequence[_Node]], logits: Sequence[Floats]
) -> list[int]:
    """The target's choice at every open node, stem by stem."""
    if len(stems) == 1:
        ((stem,), (nodes,), (after,)) = stems, open_nodes, logits
        steps, base = stem.asked.form.steps, len(stem.tokens)
        admitted = steps[nodes[0][1]].admitted if nodes else None
        # A chain at whose places the same tokens are admitted, such as a path: its logits as they lie.
        if admitted is not None and all(
            node == depth - 1 == at - 1 and steps[state].admitted is admitted
            for at, (node, state, depth) in enumerate(nodes)
        ):
            noise = stem.noise[base : base + len(nodes)]
            return choose(after[: len(nodes)], admitted, stem.asked.sampling, noise).tolist()
    rows: list[Floats] = []
    places: list[Place] = []
    for stem, nodes, after in zip(stems, open_nodes, logits, strict=True):
        base = len(stem.tokens)
        for node, state, depth in nodes:
            rows.append(after[node + 1])
            places.append(stem.place(state, base + depth))
    return choose_each(rows, places) if rows else []


def _open_nodes(stem: Stem, tree: DraftTree) -> list[_Node]:
    """Node (−1: the settled text), form's state and place beyond the settled text, wherever a token is chosen."""
    form = stem.asked.form
    found: list[_Node] = []
    if stem.state != form.done:
        found.append((-1, stem.state, 0))
    depth = [0] * len(tree)
    for node, (parent, state) in enumerate(zip(tree.parents, tree.states, strict=True)):
        depth[node] = depth[parent] + 1 if parent >= 0 else 1
        if state != form.done and form.steps[state].forced < 0:
            found.append((node, state, depth[node]))
    return found
