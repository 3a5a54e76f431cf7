"""Tree speculation: the draft follows several branches at once, ranked with the target's own noise.

A level of the tree is one pass of the draft, however many branches it follows. A token is put where the chance that
the target comes by it is worth its place in the target's pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.decoding.draft import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.ranking import rank_each
from htfi.decoding.sessions import Sessions
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.branches import Branches, Tip, TreeConfig
from htfi.decoding.strategies.draft_rows import DraftRow, DraftRows
from htfi.decoding.strategies.rank_odds import RankOdds
from htfi.decoding.strategy import Outcome


@dataclass(slots=True)
class _Growth:
    """A stem's branches, the draft's logits [V] after each tip, and which nodes the draft has read."""

    branches: Branches
    drafted: DraftRow
    logits: list[Floats]
    read: dict[int, int] = field(default_factory=dict[int, int])  # node → its number in the draft's row
    parents: list[int] = field(default_factory=list[int])  # by those numbers

    def next_read(self) -> list[int]:
        """Tokens that the draft must read to go on from the tips; as many tips as there is room for."""
        tree, room = self.branches.tree, self.drafted.row.limit - self.drafted.row.length
        tokens: list[int] = []
        tips: list[Tip] = []
        for tip in self.branches.tips:
            if len(tokens) + len(tip.put) > room:
                continue
            tips.append(tip)
            for node in tip.put:
                self.parents.append(self.read.get(tree.parents[node], -1))
                self.read[node] = len(self.read)
                tokens.append(tree.tokens[node])
        self.branches.tips = tips
        return tokens

    def take(self, logits: Floats) -> None:
        """The draft's logits [T, V] after what it was given to read."""
        self.logits, last = [], -1
        for tip in self.branches.tips:
            last += len(tip.put)
            self.logits.append(logits[last])


class Tree:
    """Implements `Strategy` with a draft network's sequences, all branches of all stems side by side."""

    name = "tree"

    def __init__(self, sessions: Sessions, config: TreeConfig | None = None) -> None:
        self.config = config or TreeConfig()
        self.odds = RankOdds(self.config.num_ranks)
        self._rows = DraftRows(sessions)
        self._growths: dict[int, _Growth] = {}

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in stems]
        asked = [at for at, length in enumerate(lengths) if length > 0 and not stems[at].is_done]
        levels = self._rows.level([stems[at] for at in asked]) if asked else []
        live: list[_Growth] = []
        for at, level in zip(asked, levels, strict=True):
            if level is not None:
                branches = Branches.of(stems[at], lengths[at], trees[at])
                growth = self._growths[id(stems[at])] = _Growth(branches, level[0], [level[1]])
                live.append(growth)
        while live:
            live = self._spread(live)
            read = [growth.next_read() for growth in live]
            live = [growth for growth, tokens in zip(live, read, strict=True) if tokens]
            if live:
                rows, parents = [growth.drafted for growth in live], [growth.parents for growth in live]
                after = self._rows.read_tree(rows, [tokens for tokens in read if tokens], parents)
                for growth, logits in zip(live, after, strict=True):
                    growth.take(logits)
        return trees

    def _spread(self, live: Sequence[_Growth]) -> list[_Growth]:
        """Put a level; those that the draft has finite logits for."""
        logits = [after for growth in live for after in growth.logits]
        places = [place for growth in live for place in growth.branches.places()]
        ranked = iter(rank_each(logits, places, self.config.num_ranks))
        going: list[_Growth] = []
        for growth in live:
            ranks = [next(ranked) for _ in growth.logits]
            if all(some.tokens for some in ranks):
                growth.branches.spread(ranks, self.odds, self.config)
                going.append(growth)
            else:
                self._forget(growth.branches.stem, wipe=True)
        return going

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        pass

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        del tree
        growth = self._growths.pop(id(stem), None)
        if growth is not None:
            growth.branches.learn(outcome, self.odds)
            branch = [growth.read[node] for node in outcome.path if node in growth.read]
            self._rows.settle_tree(growth.drafted, branch)

    def leave(self, stem: Stem) -> None:
        self._forget(stem)

    def _forget(self, stem: Stem, wipe: bool = False) -> None:
        self._growths.pop(id(stem), None)
        self._rows.leave(stem, wipe)
