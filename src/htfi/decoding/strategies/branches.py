"""A tree of guesses on its way, level by level: which tokens are put, and which branches are followed.

Strategies that know logits for what comes next, a draft's or counts', grow one for each stem.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from htfi.decoding.draft import DraftTree
from htfi.decoding.ranking import Ranked
from htfi.decoding.sampling import Place
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.rank_odds import RankOdds
from htfi.decoding.strategy import Outcome
from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TreeConfig:
    """`num_ranks`: tokens considered after each node; `width`: chosen tokens at most, as a multiple of the depth.

    `least_reach`: a token beside the first is put, and a branch followed, where the target comes by it with at least
    this chance: what a token costs in the passes of target and draft over what a settled one is worth.
    """

    num_ranks: int = 2
    width: float = 2.0
    least_reach: float = 0.2

    def __post_init__(self) -> None:
        if self.num_ranks < 1 or self.width < 1.0 or not 0.0 <= self.least_reach < 1.0:
            raise InvalidInput("tree: num_ranks and width must be ≥ 1, least_reach in [0, 1)")


@dataclass(slots=True)
class Tip:
    """A node after which a token is to be guessed (−1: the settled text), and the chance of coming by it.

    `state` is the form's after it, `place` that of the token to guess; `put` are the nodes since the last tip.
    """

    node: int
    state: int
    place: int
    reach: float
    put: Sequence[int]


@dataclass(slots=True)
class Branches:
    """The tree of one stem and the tips of its last level."""

    stem: Stem
    length: int
    tree: DraftTree
    tips: list[Tip] = field(default_factory=list[Tip])
    ranked: dict[int, Ranked] = field(default_factory=dict[int, Ranked])  # after each node that was a tip
    num_levels: int = 0
    num_put: int = 0  # chosen tokens

    @classmethod
    def of(cls, stem: Stem, length: int, tree: DraftTree) -> "Branches":
        return cls(stem, length, tree, [Tip(-1, stem.state, len(stem.tokens), 1.0, ())])

    def places(self) -> Iterator[Place]:
        return (self.stem.place(tip.state, tip.place) for tip in self.tips)

    def spread(self, ranked: Sequence[Ranked], odds: RankOdds, config: TreeConfig) -> None:
        """Put the likeliest tokens after the tips; those worth following are the tips of the next level."""
        found: list[tuple[float, Tip, int]] = []
        for tip, ranks in zip(self.tips, ranked, strict=True):
            self.ranked[tip.node] = ranks
            chances = zip(odds.of(ranks), ranks.tokens, strict=True)
            found += [(tip.reach * chance, tip, token) for chance, token in chances]
        found.sort(key=lambda one: -one[0])
        self.num_levels += 1
        to_come = self.length - self.num_levels  # levels; each is left room for a token
        most, num_nodes = int(config.width * self.length) - to_come, self.stem.num_left - to_come
        self.tips = []
        for reach, tip, token in found:
            pays = reach >= config.least_reach
            if self.num_put and not (pays and self.num_put < most and len(self.tree) < num_nodes):
                break
            self._put(tip, token, reach, pays and to_come > 0)

    def _put(self, tip: Tip, token: int, reach: float, goes_on: bool) -> None:
        tree, form = self.tree, self.stem.asked.form
        first = len(tree)
        node, put = tree.grow(form, tip.state, token, tip.node)
        self.num_put += 1
        state = tree.states[node]
        if goes_on and state != form.done:
            self.tips.append(Tip(node, state, tip.place + len(put), reach, range(first, node + 1)))

    def learn(self, outcome: Outcome, odds: RankOdds) -> None:
        """What the target said wherever it came by."""
        for node in (-1, *outcome.path):
            if node in self.ranked and outcome.said[node] >= 0:
                odds.learn(self.ranked[node], outcome.said[node])
