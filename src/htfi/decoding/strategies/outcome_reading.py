"""One pass of a draft over nodes of several trees, grown over many passes: each node sees its own branch alone.

The drafter of outcomes calls it. `Sessions.extend` reads a tree that one pass holds whole; this one goes on with what
earlier passes left in the row.
"""

from collections.abc import Sequence

import numpy as np

from htfi.decoding.kv import HIDDEN
from htfi.decoding.ports import Floats
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.outcome_tree import Node, OutcomeTree


def read_nodes(sessions: Sessions, asked: Sequence[tuple[OutcomeTree, list[Node]]]) -> None:
    """Read these nodes, parents before children, each tree's in its own row."""
    arena = sessions.arena
    if len(asked) == 1 and len(asked[0][1]) == 1 and _sees_all(*asked[0]):
        tree, (node,) = asked[0]
        (logits,) = sessions.extend([tree.row], [[node.token]])
        tree.note_read([node], logits)
        return
    longest = max(len(nodes) for _, nodes in asked)
    arena.make_room(max(tree.row.length + len(nodes) for tree, nodes in asked))
    past = arena.capacity
    ids = np.zeros((arena.num_slots, longest), np.int64)
    positions = np.zeros((arena.num_slots, longest), np.int64)
    mask: Floats = np.empty((arena.num_slots, longest, past + longest), np.float32)
    mask[:, :, :past] = arena.mask[:, :, :past]
    mask[:, :, past:] = np.where(np.eye(longest, dtype=np.bool_), np.float32(0.0), HIDDEN)
    for tree, nodes in asked:
        row = tree.row
        ids[row.slot, : len(nodes)] = [node.token for node in nodes]
        positions[row.slot, : len(nodes)] = [node.position for node in nodes]
        _hide(mask[row.slot], tree, nodes, past)
    out = sessions.network.forward(ids, positions, mask, arena.keys, arena.values)
    for tree, nodes in asked:
        slot, num = tree.row.slot, len(nodes)
        arena.append(tree.row, out.keys[:, slot, :, :num], out.values[:, slot, :, :num])
        tree.note_read(nodes, out.logits[slot, :num])


def _sees_all(tree: OutcomeTree, nodes: Sequence[Node]) -> bool:
    """Whether all that was read lies on the branch of a node: then its pass is as any other."""
    return len(tree.read) == max(nodes[0].position - tree.root.position - 1, 0)


def _hide(mask: Floats, tree: OutcomeTree, nodes: Sequence[Node], past: int) -> None:
    """Let each node see the settled text and its own branch: changes the mask [T, S + T] of one row."""
    base = tree.base
    new = {id(node): past + at for at, node in enumerate(nodes)}
    mask[:, base : tree.row.length] = HIDDEN
    for at, node in enumerate(nodes):
        sees: list[int] = []
        before = node.parent
        while before is not None:
            place = new.get(id(before), before.place)
            if place < base:
                break
            sees.append(place)
            before = before.parent
        mask[at, sees] = 0.0
