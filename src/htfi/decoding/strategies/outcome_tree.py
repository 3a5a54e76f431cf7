"""One stem's outcome cache: what the draft has written beyond the settled text, for this round alone.

Its own chain is the block that is handed out; beside it hang the tokens that the target may say instead, each with
the draft's own chain after it. Settling keeps what follows the outcome and forgets the rest. Its drafter owns it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.decoding.kv import Row
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import Place
from htfi.decoding.sessions import Sessions
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.outcome_words import word

UNREAD = -1


@dataclass(slots=True, eq=False)
class Node:
    """A token after `parent`. `position` counts from the prompt's first token; `place` is where the row holds it."""

    token: int
    parent: "Node | None"
    state: int  # of the form, after it
    position: int
    is_own: bool
    forces: bool  # the form allows one token after it
    number: int = 0  # in the tree, from 1; the root has 0
    place: int = UNREAD
    logits: Floats | None = None
    own: "Node | None" = None
    others: dict[int, "Node"] = field(default_factory=dict[int, "Node"])
    ranked: list[int] | None = None


@dataclass(slots=True, eq=False)
class Branch:
    """An outcome and the draft's own chain after it, `num_chosen` tokens so far; `tip` is its last node.

    `token` after `at` is what the target says where the draft's own chain breaks off; −1 stands for the block's end,
    of which nothing is known before it is read.
    """

    chance: float
    at: Node
    token: int
    tip: Node | None = None  # None: not begun
    num_chosen: int = 0


class OutcomeTree:
    """`root` is the last settled token. The row holds `base` tokens that every node sees, then those of `read`."""

    def __init__(self, stem: Stem, row: Row, logits: Floats, room: int) -> None:
        self.stem = stem
        self.form = stem.asked.form
        self.row = row
        self.room = room
        self.base = row.length
        self.read: list[Node] = []
        self.nodes: list[Node] = []
        last = row.length - 1
        token = stem.tokens[-1] if stem.tokens else stem.asked.prompt[-1]
        self.root = Node(token, None, stem.state, last, True, False, place=last, logits=logits)
        self.length = 0
        self.num_told = 0  # of the nodes, to whoever reads them
        self.branches: list[Branch] | None = None  # outcomes, likeliest first; None: not ranked
        self.end: Node | None = None  # of the block: what may follow is ranked once it is read

    def place_of(self, node: Node) -> Place:
        """Where the token after `node` is chosen."""
        return self.stem.place(node.state, node.position + 1 - len(self.stem.asked.prompt))

    def is_open(self, node: Node) -> bool:
        """Whether the form leaves a choice after `node`."""
        return node.state != self.form.done and not node.forces

    def grow(self, node: Node, token: int, is_own: bool) -> Node:
        """Put a chosen token after `node`, and what it forces; the last of them."""
        known = node.others.pop(token, None) if is_own else None
        if known is not None:
            known.is_own = True
            node.own = known
            self.num_told = 0  # it was told as another's word
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

    def _add(self, parent: Node, token: int, is_own: bool) -> Node:
        node = self._after(parent, token, is_own)
        self.nodes.append(node)
        node.number = len(self.nodes)
        return node

    def _after(self, parent: Node, token: int, is_own: bool) -> Node:
        state = self.form.advance(parent.state, token)
        return Node(token, parent, state, parent.position + 1, is_own, self._forces(state))

    def _forces(self, state: int) -> bool:
        return state != self.form.done and self.form.steps[state].forced >= 0

    def block(self, length: int | None = None) -> tuple[list[Node], int]:
        """Where the own chain leaves the form's choice open, from the root on, and how many tokens are chosen there:
        at most `length`, so that the last place may be the block's end."""
        length = self.length if length is None else length
        opens: list[Node] = []
        num_chosen = 0
        node: Node | None = self.root
        while node is not None:
            if self.is_open(node):
                opens.append(node)
                if node.own is None or num_chosen == length:
                    break
                num_chosen += 1
            node = node.own
        return opens, num_chosen

    def chain(self) -> list[int]:
        """The own chain's tokens, as far as they are there."""
        tokens: list[int] = []
        node = self.root.own
        while node is not None:
            tokens.append(node.token)
            node = node.own
        return tokens

    def untold(self, epoch: int) -> list[int]:
        """The nodes that were not told yet, as words."""
        news = self.nodes[self.num_told :]
        self.num_told = len(self.nodes)
        return [
            word(epoch, node.is_own, node.parent.number if node.parent else 0, node.token) for node in news
        ]

    def wanted(self, length: int | None = None) -> Node | None:
        """After which node a block of that length goes on; None once it is whole, or the answer ends."""
        length = self.length if length is None else length
        opens, num_chosen = self.block(length)
        return opens[-1] if opens and num_chosen < length and opens[-1].own is None else None

    def unread(self, tip: Node) -> list[Node]:
        """What must be read for the logits after `tip`, in order."""
        nodes: list[Node] = []
        node: Node | None = tip
        while node is not None and node.place == UNREAD:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def has_room(self, num_new: int) -> bool:
        """Whether nodes that nobody waits for may be read: the answer's own room is left alone."""
        return self.row.length - self.base + num_new <= self.room

    def note_read(self, nodes: Sequence[Node], logits: Floats) -> None:
        """The row has read these, in order; logits [T, V] after each."""
        for place, (node, after) in enumerate(zip(nodes, logits, strict=True), self.row.length - len(nodes)):
            node.place, node.logits = place, after
            if node.position <= self.root.position:
                self.base += 1
            else:
                self.read.append(node)

    def settle(self, tokens: Sequence[int], sessions: Sessions) -> bool:
        """Go down to the outcome; whether the draft had begun to write on from there."""
        path = [self.root]
        for token in tokens:
            node = path[-1]
            after = node.own if node.own is not None and node.own.token == token else node.others.get(token)
            path.append(after if after is not None else self._after(node, token, is_own=True))
        self.root = root = path[-1]
        self.branches = self.end = None
        self.num_told = 0
        alive = {id(root)}
        known, self.nodes = self.nodes, []
        for node in known:
            if id(node.parent) in alive:
                alive.add(id(node))
                self.nodes.append(node)
            elif node not in path:
                node.parent = node.logits = None  # no circle is left: what is forgotten is freed at once
        for number, node in enumerate(self.nodes, 1):
            node.number = number
        root.number = 0
        kept = [node for node in path[1:] if node.place != UNREAD]
        num_settled = len(kept)
        kept += [node for node in self.read if id(node) in alive and node is not root]
        sessions.keep(self.row, self.base, [node.place - self.base for node in kept])
        for place, node in enumerate(kept, self.base):
            node.place = place
        self.base += num_settled
        self.read = kept[num_settled:]
        for node in path:
            if node.place != UNREAD:
                node.parent = None  # what lies before is seen by all
        return root.own is not None


def last_forced(node: Node) -> Node:
    """Where the tokens end that the form forces after `node`."""
    while node.own is not None and node.forces:
        node = node.own
    return node
