"""One sequence's outcome cache: what the draft has written beyond the accepted text, in this round.

Its own chain is the block to deliver. Beside it are the tokens that the target may choose instead, each with the
draft's own chain after it. An outcome keeps what follows it and drops the rest. Another process may read the nodes
while they are written, as 64-bit words: a word holds a node and its round (epoch), and a reader stops at the first word
of another epoch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from htfi.decoding.kv_cache import MASKED, KVRow
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import SamplingPosition
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions

NUM_WORDS = 512  # nodes of a sequence's round
NO_ROOM = 0xFFFFFFFF  # in place of a token: no room for this sequence, nothing will follow
_OWN = 1 << 47
_PARENT = 0x7FFF


def next_epoch(epoch: int) -> int:
    """Counts 1 … 65535, then starts again."""
    return epoch % 0xFFFF + 1


def pack_word(epoch: int, is_own: bool, parent: int, token: int) -> int:
    """`parent` is the node before, counted from 1; 0 is the accepted text. `is_own`: the draft's own choice there."""
    return epoch << 48 | is_own << 47 | parent << 32 | token


def read_continuation(words: Iterable[int], epoch: int, tokens: Sequence[int] = ()) -> list[int] | None:
    """The draft's tokens after `tokens`, as far as present; None if those are not among its outcomes."""
    at = want = 0
    found: list[int] = []
    for number, packed in enumerate(words, 1):
        if packed >> 48 != epoch:
            break
        if (packed >> 32) & _PARENT != at:
            continue
        token = packed & 0xFFFFFFFF
        if want < len(tokens):
            if token == tokens[want]:
                at, want = number, want + 1
        elif packed & _OWN:
            found.append(token)
            at = number
    return found if want == len(tokens) else None


UNREAD = -1


@dataclass(slots=True, eq=False)
class OutcomeNode:
    """A token after `parent`. `position` counts from the prompt's first token; `place` is its place in the row."""

    token: int
    parent: "OutcomeNode | None"
    state: int  # of the grammar, after it
    position: int
    is_own: bool
    forces: bool  # the grammar allows one token after it
    number: int = 0  # in the tree, from 1; the root has 0
    place: int = UNREAD
    logits: Floats | None = None
    own: "OutcomeNode | None" = None
    others: dict[int, "OutcomeNode"] = field(default_factory=dict[int, "OutcomeNode"])
    ranked: list[int] | None = None


@dataclass(slots=True, eq=False)
class OutcomeBranch:
    """An outcome and the draft's own chain after it, `num_chosen` tokens so far; `tip` is its last node.

    `token` after `at` is the target's token where the draft's own chain breaks off; −1 stands for the block's end,
    which must be read first.
    """

    probability: float
    at: OutcomeNode
    token: int
    tip: OutcomeNode | None = None  # None: not begun
    num_chosen: int = 0


class OutcomeTree:
    """`root` is the last accepted token. The row holds `base` tokens that every node sees, then those of `read`."""

    def __init__(self, sequence: SequenceState, row: KVRow, logits: Floats, num_free: int) -> None:
        self.sequence = sequence
        self.form = sequence.tokenized.grammar
        self.row = row
        self.num_free = num_free
        self.base = row.length
        self.read: list[OutcomeNode] = []
        self.nodes: list[OutcomeNode] = []
        last = row.length - 1
        token = sequence.tokens[-1] if sequence.tokens else sequence.tokenized.prompt[-1]
        self.root = OutcomeNode(token, None, sequence.state, last, True, False, place=last, logits=logits)
        self.length = 0
        self.num_published = 0  # nodes that readers know
        self.branches: list[OutcomeBranch] | None = None  # outcomes, likeliest first; None: not ranked
        self.end: OutcomeNode | None = None  # of the block: candidates after it are ranked once it is read

    def place_of(self, node: OutcomeNode) -> SamplingPosition:
        """Where the token after `node` is sampled."""
        return self.sequence.sampling_position(
            node.state, node.position + 1 - len(self.sequence.tokenized.prompt)
        )

    def is_open(self, node: OutcomeNode) -> bool:
        """Whether the grammar leaves a choice after `node`."""
        return node.state != self.form.done and not node.forces

    def grow(self, node: OutcomeNode, token: int, is_own: bool) -> OutcomeNode:
        """Add a chosen token after `node`, and what it forces; the last of them."""
        known = node.others.pop(token, None) if is_own else None
        if known is not None:
            known.is_own = True
            node.own = known
            self.num_published = 0  # it was published as an alternative
            return last_forced(known)
        first = last = self._add(node, token, is_own)
        while last.state != self.form.done and (forced := self.form.steps[last.state].forced) >= 0:
            after = self._add(last, forced, True)
            last.own = after
            last = after
        if is_own:
            node.own = first
        else:
            node.others[token] = first
        return last

    def _add(self, parent: OutcomeNode, token: int, is_own: bool) -> OutcomeNode:
        node = self._after(parent, token, is_own)
        self.nodes.append(node)
        node.number = len(self.nodes)
        return node

    def _after(self, parent: OutcomeNode, token: int, is_own: bool) -> OutcomeNode:
        state = self.form.advance(parent.state, token)
        return OutcomeNode(token, parent, state, parent.position + 1, is_own, self._forces(state))

    def _forces(self, state: int) -> bool:
        return state != self.form.done and self.form.steps[state].forced >= 0

    def block(self, length: int | None = None) -> tuple[list[OutcomeNode], int]:
        """Open positions of the own chain, from the root on, and how many tokens were chosen there: at most `length`,
        so the last position may be the block's end.
        """
        length = self.length if length is None else length
        opens: list[OutcomeNode] = []
        num_chosen = 0
        node: OutcomeNode | None = self.root
        while node is not None:
            if self.is_open(node):
                opens.append(node)
                if node.own is None or num_chosen == length:
                    break
                num_chosen += 1
            node = node.own
        return opens, num_chosen

    def chain(self) -> list[int]:
        """The own chain's tokens so far."""
        tokens: list[int] = []
        node = self.root.own
        while node is not None:
            tokens.append(node.token)
            node = node.own
        return tokens

    def unpublished_words(self, epoch: int) -> list[int]:
        """The nodes that were not published yet, as words."""
        news = self.nodes[self.num_published :]
        self.num_published = len(self.nodes)
        return [
            pack_word(epoch, node.is_own, node.parent.number if node.parent else 0, node.token)
            for node in news
        ]

    def wanted(self, length: int | None = None) -> OutcomeNode | None:
        """The node after which a block of that length continues; None once it is complete, or the answer ends."""
        length = self.length if length is None else length
        opens, num_chosen = self.block(length)
        return opens[-1] if opens and num_chosen < length and opens[-1].own is None else None

    def unread(self, tip: OutcomeNode) -> list[OutcomeNode]:
        """The nodes to read for the logits after `tip`, in order."""
        nodes: list[OutcomeNode] = []
        node: OutcomeNode | None = tip
        while node is not None and node.place == UNREAD:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def has_space(self, num_new: int) -> bool:
        """Whether speculative nodes may be read; the answer's own room stays reserved."""
        return self.row.length - self.base + num_new <= self.num_free

    def note_read(self, nodes: Sequence[OutcomeNode], logits: Floats) -> None:
        """The row has read these nodes, in order; logits [T, V] after each."""
        for place, (node, after) in enumerate(zip(nodes, logits, strict=True), self.row.length - len(nodes)):
            node.place, node.logits = place, after
            if node.position <= self.root.position:
                self.base += 1
            else:
                self.read.append(node)

    def advance(self, tokens: Sequence[int], sessions: KVSessions) -> bool:
        """Move the root to the outcome; whether the draft had begun to continue there."""
        path = [self.root]
        for token in tokens:
            node = path[-1]
            after = node.own if node.own is not None and node.own.token == token else node.others.get(token)
            path.append(after if after is not None else self._after(node, token, is_own=True))
        self.root = root = path[-1]
        self.branches = self.end = None
        self.num_published = 0
        alive = {id(root)}
        known, self.nodes = self.nodes, []
        for node in known:
            if id(node.parent) in alive:
                alive.add(id(node))
                self.nodes.append(node)
            elif node not in path:
                node.parent = node.logits = None  # break the cycle so that dropped nodes are freed at once
        for number, node in enumerate(self.nodes, 1):
            node.number = number
        root.number = 0
        kept = [node for node in path[1:] if node.place != UNREAD]
        num_accepted = len(kept)
        kept += [node for node in self.read if id(node) in alive and node is not root]
        sessions.keep_branch(self.row, self.base, [node.place - self.base for node in kept])
        for place, node in enumerate(kept, self.base):
            node.place = place
        self.base += num_accepted
        self.read = kept[num_accepted:]
        for node in path:
            if node.place != UNREAD:
                node.parent = None  # every node attends to what lies before
        return root.own is not None


def last_forced(node: OutcomeNode) -> OutcomeNode:
    """The last of the tokens that the grammar forces after `node`."""
    while node.own is not None and node.forces:
        node = node.own
    return node


def read_nodes(sessions: KVSessions, asked: Sequence[tuple[OutcomeTree, list[OutcomeNode]]]) -> None:
    """One pass over nodes of several trees, parents before children, each tree in its own row.

    `KVSessions.extend` reads a tree within one pass; this continues trees that earlier passes left in the rows.
    """
    arena = sessions.arena
    if len(asked) == 1 and len(asked[0][1]) == 1 and _sees_all(*asked[0]):
        tree, (node,) = asked[0]
        (logits,) = sessions.extend([tree.row], [[node.token]])
        tree.note_read([node], logits)
        return
    longest = max(len(nodes) for _, nodes in asked)
    arena.grow_to(max(tree.row.length + len(nodes) for tree, nodes in asked))
    past = arena.capacity
    ids = np.zeros((arena.num_slots, longest), np.int64)
    positions = np.zeros((arena.num_slots, longest), np.int64)
    mask: Floats = np.empty((arena.num_slots, longest, past + longest), np.float32)
    mask[:, :, :past] = arena.mask[:, :, :past]
    mask[:, :, past:] = np.where(np.eye(longest, dtype=np.bool_), np.float32(0.0), MASKED)
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


def _sees_all(tree: OutcomeTree, nodes: Sequence[OutcomeNode]) -> bool:
    """Whether everything read lies on the node's branch: then an ordinary pass will do."""
    return len(tree.read) == max(nodes[0].position - tree.root.position - 1, 0)


def _hide(mask: Floats, tree: OutcomeTree, nodes: Sequence[OutcomeNode], past: int) -> None:
    """Let each node attend to the accepted text and its own branch: changes the mask [T, S + T] of one row."""
    base = tree.base
    new = {id(node): past + at for at, node in enumerate(nodes)}
    mask[:, base : tree.row.length] = MASKED
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
