"""Tree drafting: the draft follows several branches at once, ranked with the target's own noise.

A level of the tree is one pass of the draft, however many branches it follows. A token is added if the chance that the
target reaches it is worth its place in the target's pass. `RankAcceptance` learns that chance by rank and by gap: how
far a token lies behind the draft's first, noise included, in logits (for the first: how far the second lies behind).
The gap matters far more than the rank: if it is small, draft and target differ easily.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import RankedTokens, SamplingPosition, rank_positions
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.draft_rows import DraftKVRow, DraftKVRows
from htfi.decoding.strategies.sampled import TREE_WIDTHS, SampledStrategy
from htfi.decoding.strategy import DraftStrategy, DraftVerification, StrategyParts
from htfi.domain.errors import InvalidInput

_EDGES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
_MIDDLES = (0.03, 0.09, 0.19, 0.38, 0.75, 1.5, 3.0, 6.0)
_PRIOR_WEIGHT = 8.0  # cases that the prior counts for
_DECAY = 0.998  # per case: drafts are replaced, markets change


class RankAcceptance:
    """How often the target picks the draft's first, second, … token; the last few hundred cases decide."""

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self._hits = [[_PRIOR_WEIGHT * _prior(rank, gap) for gap in _MIDDLES] for rank in range(num_ranks)]
        self._cases = [[_PRIOR_WEIGHT for _ in _MIDDLES] for _ in range(num_ranks)]

    def of(self, ranked: RankedTokens) -> list[float]:
        """The chance of each ranked token that the target picks it."""
        return [
            self._hits[rank][place] / self._cases[rank][place] for rank, place in enumerate(_places(ranked))
        ]

    def learn(self, ranked: RankedTokens, target_token: int) -> None:
        """The target picked `target_token` among tokens that the draft ranked so."""
        for rank, (token, place) in enumerate(zip(ranked.tokens, _places(ranked), strict=True)):
            self._hits[rank][place] = _DECAY * self._hits[rank][place] + (token == target_token)
            self._cases[rank][place] = _DECAY * self._cases[rank][place] + 1.0


def _places(ranked: RankedTokens) -> Sequence[int]:
    gaps = ranked.gaps
    return [bisect(_EDGES, gap) for gap in [gaps[1] if len(gaps) > 1 else 99.0, *gaps[1:]][: len(gaps)]]


def _prior(rank: int, gap: float) -> float:
    """Without data: the first is the surer the farther behind the second is."""
    return 0.5 * exp(-gap) / rank if rank else 1.0 - 0.5 * exp(-gap)


@dataclass(frozen=True, slots=True)
class TreeDraftConfig:
    """`num_ranks`: tokens considered after each node; `width`: chosen tokens at most, as a multiple of the depth.

    `min_reach`: a token beside the first is added, and a branch followed, if the target reaches it with at least this
    chance: the cost of a token in both models' passes over the worth of an accepted one.
    """

    num_ranks: int = 2
    width: float = 2.0
    min_reach: float = 0.2

    def __post_init__(self) -> None:
        if self.num_ranks < 1 or self.width < 1.0 or not 0.0 <= self.min_reach < 1.0:
            raise InvalidInput("tree: num_ranks and width must be ≥ 1, min_reach in [0, 1)")


@dataclass(slots=True)
class TreeTip:
    """A node to draft after (−1: the accepted text), and the chance that the target reaches it.

    `state` is the grammar's state after it, `place` the position to guess; `put` are the nodes since the last tip.
    """

    node: int
    state: int
    place: int
    reach: float
    put: Sequence[int]


@dataclass(slots=True)
class TreeBuilder:
    """The tree of one sequence and the tips of its last level."""

    sequence: SequenceState
    length: int
    tree: DraftTree
    tips: list[TreeTip] = field(default_factory=list[TreeTip])
    ranked: dict[int, RankedTokens] = field(
        default_factory=dict[int, RankedTokens]
    )  # after each node that was a tip
    num_levels: int = 0
    num_put: int = 0  # chosen tokens

    @classmethod
    def of(cls, sequence: SequenceState, length: int, tree: DraftTree) -> "TreeBuilder":
        return cls(sequence, length, tree, [TreeTip(-1, sequence.state, len(sequence.tokens), 1.0, ())])

    def places(self) -> Iterator[SamplingPosition]:
        return (self.sequence.sampling_position(tip.state, tip.place) for tip in self.tips)

    def add_level(
        self, ranked: Sequence[RankedTokens], odds: RankAcceptance, config: TreeDraftConfig
    ) -> None:
        """Add the likeliest tokens after the tips; those worth following are the next level's tips."""
        found: list[tuple[float, TreeTip, int]] = []
        for tip, ranks in zip(self.tips, ranked, strict=True):
            self.ranked[tip.node] = ranks
            chances = zip(odds.of(ranks), ranks.tokens, strict=True)
            found += [(tip.reach * chance, tip, token) for chance, token in chances]
        found.sort(key=lambda one: -one[0])
        self.num_levels += 1
        to_come = self.length - self.num_levels  # levels; each keeps room for a token
        most, num_nodes = int(config.width * self.length) - to_come, self.sequence.num_left - to_come
        self.tips = []
        for reach, tip, token in found:
            pays = reach >= config.min_reach
            if self.num_put and not (pays and self.num_put < most and len(self.tree) < num_nodes):
                break
            self._put(tip, token, reach, pays and to_come > 0)

    def _put(self, tip: TreeTip, token: int, reach: float, goes_on: bool) -> None:
        tree, grammar = self.tree, self.sequence.tokenized.grammar
        first = len(tree)
        node, put = tree.add_with_forced(grammar, tip.state, token, tip.node)
        self.num_put += 1
        state = tree.states[node]
        if goes_on and state != grammar.done:
            self.tips.append(TreeTip(node, state, tip.place + len(put), reach, range(first, node + 1)))

    def learn(self, outcome: DraftVerification, odds: RankAcceptance) -> None:
        """Learn the target's choices along the accepted path."""
        for node in (-1, *outcome.path):
            if node in self.ranked and outcome.target_tokens[node] >= 0:
                odds.learn(self.ranked[node], outcome.target_tokens[node])


@dataclass(slots=True)
class _TreeGrowth:
    """A sequence's branches, the draft's logits [V] after each tip, and the nodes that the draft has read."""

    branches: TreeBuilder
    drafted: DraftKVRow
    logits: list[Floats]
    read: dict[int, int] = field(default_factory=dict[int, int])  # node → its number in the draft's row
    parents: list[int] = field(default_factory=list[int])  # by those numbers

    def next_read(self) -> list[int]:
        """Tokens that the draft must read to continue from the tips, for as many tips as fit."""
        tree, max_nodes = self.branches.tree, self.drafted.row.limit - self.drafted.row.length
        tokens: list[int] = []
        tips: list[TreeTip] = []
        for tip in self.branches.tips:
            if len(tokens) + len(tip.put) > max_nodes:
                continue
            tips.append(tip)
            for node in tip.put:
                self.parents.append(self.read.get(tree.parents[node], -1))
                self.read[node] = len(self.read)
                tokens.append(tree.tokens[node])
        self.branches.tips = tips
        return tokens

    def take(self, logits: Floats) -> None:
        """Store the draft's logits [T, V] after the tokens that it read."""
        self.logits, last = [], -1
        for tip in self.branches.tips:
            last += len(tip.put)
            self.logits.append(logits[last])


class TreeStrategy:
    """Implements `DraftStrategy` with a draft network's sequences, all branches of all sequences side by side."""

    name = "tree"

    def __init__(self, sessions: KVSessions, config: TreeDraftConfig | None = None) -> None:
        self.config = config or TreeDraftConfig()
        self.odds = RankAcceptance(self.config.num_ranks)
        self._rows = DraftKVRows(sessions)
        self._growths: dict[int, _TreeGrowth] = {}

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in sequences]
        asked = [at for at, length in enumerate(lengths) if length > 0 and not sequences[at].is_done]
        levels = self._rows.catch_up([sequences[at] for at in asked]) if asked else []
        live: list[_TreeGrowth] = []
        for at, level in zip(asked, levels, strict=True):
            if level is not None:
                branches = TreeBuilder.of(sequences[at], lengths[at], trees[at])
                growth = self._growths[id(sequences[at])] = _TreeGrowth(branches, level[0], [level[1]])
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

    def _spread(self, live: Sequence[_TreeGrowth]) -> list[_TreeGrowth]:
        """Add a level; the trees for which the draft's logits are finite."""
        logits = [after for growth in live for after in growth.logits]
        places = [place for growth in live for place in growth.branches.places()]
        ranked = iter(rank_positions(logits, places, self.config.num_ranks))
        going: list[_TreeGrowth] = []
        for growth in live:
            ranks = [next(ranked) for _ in growth.logits]
            if all(some.tokens for some in ranks):
                growth.branches.add_level(ranks, self.odds, self.config)
                going.append(growth)
            else:
                self._forget(growth.branches.sequence, wipe=True)
        return going

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        del tree
        growth = self._growths.pop(id(sequence), None)
        if growth is not None:
            growth.branches.learn(outcome, self.odds)
            branch = [growth.read[node] for node in outcome.path if node in growth.read]
            self._rows.accept_branch(growth.drafted, branch)

    def finish(self, sequence: SequenceState) -> None:
        self._forget(sequence)

    def _forget(self, sequence: SequenceState, wipe: bool = False) -> None:
        self._growths.pop(id(sequence), None)
        self._rows.finish(sequence, wipe)


def build(parts: StrategyParts) -> DraftStrategy:
    """The strategy 'tree' of the settings."""
    sessions = parts.draft_sessions()
    if parts.samples_drafts:
        return SampledStrategy(sessions, TREE_WIDTHS)
    return parts.replayable(lambda: TreeStrategy(sessions))
