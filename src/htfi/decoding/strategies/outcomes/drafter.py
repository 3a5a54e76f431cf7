"""The draft's side of speculative-speculative decoding: it drafts blocks, and drafts on for ranked outcomes meanwhile.

One step is one pass of the draft. A process of its own steps until an outcome arrives; tests step by hand. It writes
what chain drafting would write: the same draft, with the target's own noise. Source: Saguaro, "Speculative speculative
decoding"; ranking by the shared noise is D2's.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import sample_positions
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.outcomes.ranking import (
    NUM_RANKS,
    DraftPassTimes,
    RankRates,
    choose_fan_out,
    outcome_chances,
    rank_outcomes,
)
from htfi.decoding.strategies.outcomes.tree import (
    NUM_WORDS,
    UNREAD,
    OutcomeBranch,
    OutcomeNode,
    OutcomeTree,
    last_forced,
    read_nodes,
)
from htfi.domain.errors import InvalidInput

RANKINGS = ("noise", "probability")
_MIN_LIKELY = 0.25
_PASS_SHARE = 0.3  # of a verification's time: an outcome waits for the pass under way
_PendingBranches = list[tuple[OutcomeTree, OutcomeBranch]]


@dataclass(frozen=True, slots=True)
class FanOut:
    """Bounds of speculation: `max_outcomes` drafted side by side, none below `min_probability`, `max_nodes` nodes
    beyond the accepted text. `first_budget_ms` stands for a verification's time until one was measured.
    """

    max_outcomes: int = 16
    min_probability: float = 0.003
    max_nodes: int = 160
    first_budget_ms: float = 2.0


class OutcomeDrafter:
    """Trees of outcomes by slot, one per sequence. `clock` (seconds) feeds the fan-out, which decides how soon a block
    is ready and never its tokens. Raises InvalidInput for an unknown ranking.
    """

    def __init__(
        self,
        sessions: KVSessions,
        ranked_by: str = "noise",
        fan: FanOut | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if ranked_by not in RANKINGS:
            raise InvalidInput(f"outcomes are ranked by {' or '.join(RANKINGS)}, not by '{ranked_by}'")
        self.sessions = sessions
        self.trees: dict[int, OutcomeTree] = {}
        self.fan = fan or FanOut()
        self.times = DraftPassTimes()
        self.budget_ms = self.fan.first_budget_ms
        self._by_noise = ranked_by == "noise"
        self._clock = clock
        self._survival = AcceptanceCurves()
        self._refused, self._after = RankRates.refused(ranked_by), RankRates.after(ranked_by)
        self._ready_s: dict[int, float] = {}  # when a block was delivered

    def join(self, slot: int, sequence: SequenceState) -> bool:
        """Read a sequence's text; False without room for it."""
        self.finish(slot)
        asked = sequence.tokenized
        limit = asked.max_length + self.fan.max_nodes
        if self.sessions.refusal(asked.max_length) is not None or not self.sessions.has_space(limit):
            return False
        opened = self.sessions.open([*asked.prompt, *sequence.tokens], limit, asked.num_shared)
        self.trees[slot] = OutcomeTree(sequence, opened.row, opened.logits, self.fan.max_nodes)
        return True

    def ask(self, slot: int, length: int) -> None:
        """The next block, or the one being verified, has `length` chosen tokens; 0 asks for none."""
        tree = self.trees[slot]
        if tree.length != length:
            tree.length, tree.branches, tree.end = length, None, None
        self._ready_s[slot] = self._clock()

    def verified(self, slot: int, tokens: Sequence[int]) -> bool:
        """The outcome: the accepted tokens. Whether a block was begun for it."""
        tree = self.trees[slot]
        begun_s = self._ready_s.pop(slot, None)
        if begun_s is not None and tree.length and tree.wanted() is None:
            self.budget_ms += 0.1 * (1e3 * (self._clock() - begun_s) - self.budget_ms)
            self._learn(tree, tokens)
        return tree.advance(tokens, self.sessions)

    def finish(self, slot: int, wipe: bool = False) -> None:
        tree = self.trees.pop(slot, None)
        if tree is not None:
            self.sessions.close(tree.row, wipe)

    def step(self) -> bool:
        """One pass of the draft: for requested blocks, else for outcomes. False if nothing is left to do."""
        waited: _PendingBranches = []
        for tree in self.trees.values():
            if (tip := tree.wanted()) is not None:
                waited.append((tree, OutcomeBranch(1.0, tree.root, -1, tip)))
        asked = waited or self._outcomes()
        if asked:
            self._advance(asked)
        if waited:
            now_s = self._clock()
            self._ready_s |= dict.fromkeys(self._ready_s, now_s)
        return bool(asked)

    def _advance(self, asked: _PendingBranches) -> None:
        """Read up to the tip of each branch and append the draft's own choice."""
        unread: dict[int, tuple[OutcomeTree, dict[int, OutcomeNode]]] = {}
        for tree, branch in asked:
            nodes = unread.setdefault(id(tree), (tree, {}))[1]
            nodes |= {id(node): node for node in tree.unread(_tip(branch))}
        to_read = [(tree, list(nodes.values())) for tree, nodes in unread.values() if nodes]
        if to_read:
            began_s = self._clock()
            read_nodes(self.sessions, to_read)
            self.times.learn(sum(len(nodes) for _, nodes in to_read), 1e3 * (self._clock() - began_s))
        choosing = [(tree, branch) for tree, branch in asked if self._chooses(tree, branch)]
        if not choosing:
            return
        tips = [_tip(branch) for _, branch in choosing]
        places = [tree.place_of(tip) for (tree, _), tip in zip(choosing, tips, strict=True)]
        for (tree, branch), tip, token in zip(
            choosing, tips, sample_positions([_logits(tip) for tip in tips], places), strict=True
        ):
            if token < 0:
                self._give_up(tree)
            else:
                branch.tip = tree.grow(tip, token, is_own=True)
                branch.num_chosen += 1

    def _chooses(self, tree: OutcomeTree, branch: OutcomeBranch) -> bool:
        """Without noise not after the end of a block: then its next choice is only one of the ranked."""
        tip = _tip(branch)
        return tip.own is None and tree.is_open(tip) and (self._by_noise or tip is not tree.end)

    def _give_up(self, tree: OutcomeTree) -> None:
        """A logit is not finite: stop drafting for this sequence."""
        for slot in [slot for slot, known in self.trees.items() if known is tree]:
            self.finish(slot, wipe=True)

    def _outcomes(self) -> _PendingBranches:
        """The likeliest outcomes not yet drafted for, of all sequences, as many as pay off side by side."""
        going: list[tuple[float, OutcomeTree, OutcomeBranch]] = []
        for tree in self.trees.values():
            if (
                not tree.length
                or not tree.has_space(2 * self.fan.max_outcomes)
                or len(tree.nodes) > NUM_WORDS // 2
            ):
                continue
            if tree.branches is None:
                if (likely := self._onwards(tree)) is not None:
                    going.append((likely.probability, tree, likely))
                    continue
                tree.branches = self._refusals(tree)
            if tree.end is not None and tree.end.place != UNREAD:
                tree.branches = self._followers(tree, tree.end, tree.branches)
                tree.end = None
            found = 0
            for branch in tree.branches:
                if found == self.fan.max_outcomes:
                    break
                if self._goes_on(tree, branch):
                    going.append((branch.probability, tree, branch))
                    found += 1
        if len(self.trees) > 1:
            going.sort(key=lambda each: -each[0])
        num = choose_fan_out(
            [chance for chance, _, _ in going[: self.fan.max_outcomes]],
            self.times,
            _PASS_SHARE * self.budget_ms,
        )
        return [(tree, branch) for _, tree, branch in going[:num]]

    def _onwards(self, tree: OutcomeTree) -> OutcomeBranch | None:
        """The likeliest outcome of a good draft: all is accepted and the target continues as the draft would. It is
        drafted for before the others are ranked.
        """
        chance = self._reach(tree, tree.length)[-1]
        if not self._by_noise or chance < _MIN_LIKELY:
            return None
        tip = tree.wanted(2 * tree.length + 1)
        return None if tip is None else OutcomeBranch(chance, tree.root, -1, tip)

    def _refusals(self, tree: OutcomeTree) -> list[OutcomeBranch]:
        """The target's possible tokens in place of each drafted one, and the block's end, which must be read first."""
        opens, num_chosen = tree.block()
        self._rank(tree, opens[:num_chosen])
        reach = self._reach(tree, num_chosen)
        chances = outcome_chances(reach, self._refused.rates, ())
        branches = [
            OutcomeBranch(chance, node, token)
            for node, by_rank in zip(opens[:num_chosen], chances, strict=False)
            for token, chance in zip(_instead(node), by_rank, strict=False)
            if chance >= self.fan.min_probability
        ]
        if num_chosen < len(opens):
            tree.end = opens[num_chosen]
            branches.append(OutcomeBranch(reach[-1], tree.end, -1, tree.end))
        return self._sorted(branches)

    def _followers(
        self, tree: OutcomeTree, end: OutcomeNode, branches: list[OutcomeBranch]
    ) -> list[OutcomeBranch]:
        """The target's possible tokens after the whole block."""
        self._rank(tree, [end])
        chances = [self._reach(tree, tree.length)[-1] * rate for rate in self._after.rates]
        followers = [
            OutcomeBranch(chance, end, token) for token, chance in zip(self._next(end), chances, strict=False)
        ]
        return self._sorted([branch for branch in branches if branch.token >= 0] + followers)

    def _sorted(self, branches: list[OutcomeBranch]) -> list[OutcomeBranch]:
        likely = [branch for branch in branches if branch.probability >= self.fan.min_probability]
        return sorted(likely, key=lambda branch: -branch.probability)

    def _reach(self, tree: OutcomeTree, num_chosen: int) -> list[float]:
        """P(at least j drafted tokens accepted), j = 0 … num_chosen."""
        curve = [1.0, *self._survival.curve(tree.sequence.tokenized.request.kind)]
        return [curve[min(at, len(curve) - 1)] for at in range(num_chosen + 1)]

    def _rank(self, tree: OutcomeTree, nodes: Sequence[OutcomeNode]) -> None:
        nodes = [node for node in nodes if node.ranked is None]
        if nodes:
            places = [tree.place_of(node) for node in nodes]
            by_rank = rank_outcomes([_logits(node) for node in nodes], places, NUM_RANKS + 1, self._by_noise)
            for node, tokens in zip(nodes, by_rank, strict=True):
                node.ranked = tokens

    def _next(self, end: OutcomeNode) -> list[int]:
        """Candidates after a whole block: the draft's own next choice first, if that is informative."""
        if self._by_noise and end.own is not None:
            return [end.own.token, *_instead(end)]
        return list(end.ranked or ())

    def _goes_on(self, tree: OutcomeTree, branch: OutcomeBranch) -> bool:
        """Whether to draft on for a branch; begins it if necessary."""
        if branch.token < 0:
            return _tip(branch).place == UNREAD
        if branch.tip is None:
            own = branch.at.own
            known = (
                own if own is not None and own.token == branch.token else branch.at.others.get(branch.token)
            )
            branch.tip = last_forced(known) if known else tree.grow(branch.at, branch.token, is_own=False)
        while branch.tip.own is not None and branch.num_chosen < tree.length:
            branch.tip = last_forced(branch.tip.own)
            branch.num_chosen += 1
        return branch.num_chosen < tree.length and tree.is_open(branch.tip)

    def _learn(self, tree: OutcomeTree, tokens: Sequence[int]) -> None:
        """Learn how far the block was accepted, and the rank of the target's token where it was not."""
        opens, num_chosen = tree.block()
        num_accepted = 0
        for at, node in enumerate(opens):
            place = node.position - tree.root.position
            if place >= len(tokens):
                break
            if at < num_chosen and node.own is not None and node.own.token == tokens[place]:
                num_accepted += 1
                continue
            if node.ranked is not None:
                among, rates = (
                    (_instead(node), self._refused) if at < num_chosen else (self._next(node), self._after)
                )
                rates.learn(among.index(tokens[place]) if tokens[place] in among else -1)
            break
        self._survival.learn(tree.sequence.tokenized.request.kind, num_chosen, num_accepted)


def _tip(branch: OutcomeBranch) -> OutcomeNode:
    assert branch.tip is not None, "a branch is begun before it is continued"
    return branch.tip


def _logits(node: OutcomeNode) -> Floats:
    assert node.logits is not None, "a node is read before its next token is sampled"
    return node.logits


def _instead(node: OutcomeNode) -> list[int]:
    """The target's candidates where it rejects the drafted token: never that token itself."""
    drafted = node.own.token if node.own is not None else -1
    return [token for token in node.ranked or () if token != drafted]
