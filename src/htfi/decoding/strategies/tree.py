"""Tree speculation: the draft follows several branches at once, ranked with the target's own noise.

A level of the tree is one pass of the draft, however many branches it follows. A token is put where the chance that
the target comes by it is worth its place in the target's pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.decoding.draft import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.ranking import Ranked, rank_each
from htfi.decoding.sampling import Place
from htfi.decoding.sessions import Sessions
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.draft_rows import DraftRow, DraftRows
from htfi.decoding.strategies.rank_odds import RankOdds
from htfi.decoding.strategy import Outcome
from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TreeConfig:
    """`num_ranks`: tokens considered after each node; `width`: chosen tokens at most, as a multiple of the depth.

    `least_reach`: a token is put, and a branch followed, where the target comes by it with at least this chance.
    It is what a token costs in the target's pass and the draft's over what a settled one is worth.
    """

    num_ranks: int = 3
    width: float = 2.0
    least_reach: float = 0.2

    def __post_init__(self) -> None:
        if self.num_ranks < 1 or self.width < 1.0 or not 0.0 <= self.least_reach < 1.0:
            raise InvalidInput("tree: num_ranks and width must be ≥ 1, least_reach in [0, 1)")


@dataclass(slots=True)
class _Tip:
    """A node whose next token is open (−1: the settled text), the chance of coming by it, and the draft's logits."""

    node: int
    state: int
    place: int
    reach: float
    put: Sequence[int]  # the nodes that the draft must read to go on from here
    logits: Floats | None = None


@dataclass(slots=True)
class _Growth:
    """A stem's tree on its way; `read` are its nodes that the draft has read, in that order."""

    stem: Stem
    length: int
    drafted: DraftRow
    tips: list[_Tip]
    tree: DraftTree = field(default_factory=DraftTree)
    read: dict[int, int] = field(default_factory=dict[int, int])  # node → its number in the draft's row
    parents: list[int] = field(default_factory=list[int])  # by those numbers
    ranked: dict[int, Ranked] = field(default_factory=dict[int, Ranked])
    num_levels: int = 0
    num_put: int = 0  # chosen tokens

    def places(self) -> list[Place]:
        return [self.stem.place(tip.state, tip.place) for tip in self.tips]

    def spread(self, ranked: Sequence[Ranked], odds: RankOdds, config: TreeConfig) -> None:
        """Put the best tokens after the tips; those worth following are the tips of the next level."""
        found: list[tuple[float, _Tip, int]] = []
        for tip, ranks in zip(self.tips, ranked, strict=True):
            self.ranked[tip.node] = ranks
            chances = odds.of(ranks)
            found += [
                (tip.reach * chance, tip, token) for chance, token in zip(chances, ranks.tokens, strict=True)
            ]
        found.sort(key=lambda one: -one[0])
        self.num_levels += 1
        most = int(config.width * self.length) - (
            self.length - self.num_levels
        )  # the rest has room for one a level
        num_nodes = self.stem.num_left - (self.length - self.num_levels)
        form, tree = self.stem.asked.form, self.tree
        self.tips = []
        for at, (reach, tip, token) in enumerate(found):
            if at and (reach < config.least_reach or self.num_put >= most or len(tree) >= num_nodes):
                break
            first = len(tree)
            node, _ = tree.grow(form, tip.state, token, tip.node)
            self.num_put += 1
            state = tree.states[node]
            if state != form.done and reach >= config.least_reach:
                self.tips.append(
                    _Tip(node, state, tip.place + len(tree) - first, reach, range(first, node + 1))
                )
        if self.num_levels >= self.length:
            self.tips = []

    def next_read(self) -> tuple[list[int], list[int]]:
        """Tokens for the draft to read so that it can go on from the tips, and the parents of all that it read."""
        row, tree = self.drafted.row, self.tree
        room = row.limit - row.length
        tokens: list[int] = []
        tips: list[_Tip] = []
        for tip in self.tips:
            if len(tokens) + len(tip.put) > room:
                continue
            tips.append(tip)
            for node in tip.put:
                self.parents.append(self.read.get(tree.parents[node], -1))
                self.read[node] = len(self.read)
                tokens.append(tree.tokens[node])
        self.tips = tips
        return tokens, self.parents

    def take(self, logits: Floats) -> None:
        """The draft's logits [T, V] after what it was given to read."""
        at = -1
        for tip in self.tips:
            at += len(tip.put)
            tip.logits = logits[at]


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
                stem = stems[at]
                tip = _Tip(-1, stem.state, len(stem.tokens), 1.0, (), level[1])
                growth = _Growth(stem, lengths[at], level[0], [tip], trees[at])
                self._growths[id(stem)] = growth
                live.append(growth)
        while live:
            live = self._spread(live)
            new = [(growth, *growth.next_read()) for growth in live]
            new = [one for one in new if one[1]]
            live = [growth for growth, _, _ in new]
            if live:
                after = self._rows.read_tree(
                    [growth.drafted for growth in live], [ids for _, ids, _ in new], [up for _, _, up in new]
                )
                for growth, logits in zip(live, after, strict=True):
                    growth.take(logits)
        return trees

    def _spread(self, live: Sequence[_Growth]) -> list[_Growth]:
        logits = [tip.logits for growth in live for tip in growth.tips if tip.logits is not None]
        places = [place for growth in live for place in growth.places()]
        ranked = iter(rank_each(logits, places, self.config.num_ranks))
        going: list[_Growth] = []
        for growth in live:
            ranks = [next(ranked) for _ in growth.tips]
            if all(some.tokens for some in ranks):
                growth.spread(ranks, self.odds, self.config)
                going.append(growth)
            else:
                self._forget(growth.stem, wipe=True)
        return going

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        pass

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        growth = self._growths.pop(id(stem), None)
        if growth is None:
            return
        for node in (-1, *outcome.path):
            if node in growth.ranked and outcome.said[node] >= 0:
                self.odds.learn(growth.ranked[node], outcome.said[node])
        self._rows.settle_tree(
            growth.drafted, [growth.read[node] for node in outcome.path if node in growth.read]
        )

    def leave(self, stem: Stem) -> None:
        self._forget(stem)

    def _forget(self, stem: Stem, wipe: bool = False) -> None:
        self._growths.pop(id(stem), None)
        self._rows.leave(stem, wipe)
