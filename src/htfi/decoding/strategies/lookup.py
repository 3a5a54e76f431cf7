"""Prompt look-up: no draft network, but what followed the same words earlier, in the prompt or in late answers.

The counts of what followed are a law of their own, so that the target's noise ranks them as it ranks a draft's
logits: where two tokens followed, the guess is the one that the target would pick if it were of the same mind.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.decoding.draft import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.ranking import rank_each
from htfi.decoding.sampling import Place, Sampling
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.branches import Branches, TreeConfig
from htfi.decoding.strategies.ngrams import Ngrams, Usual, blend
from htfi.decoding.strategies.rank_odds import RankOdds
from htfi.decoding.strategy import Outcome
from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class LookupConfig:
    """`order`: the longest context compared; `num_recent_tokens`: of other requests' answers, 0 for none."""

    order: int = 4
    num_recent_tokens: int = 16_384
    tree: TreeConfig = field(default_factory=lambda: TreeConfig(num_ranks=2, width=1.5))

    def __post_init__(self) -> None:
        if self.order < 1 or self.num_recent_tokens < 0:
            raise InvalidInput("look-up: order must be ≥ 1, num_recent_tokens ≥ 0")


@dataclass(slots=True)
class _Text:
    """Prompt and answer of a stem as far as they are counted, and the tree that was guessed last."""

    stem: Stem
    tokens: list[int]
    own: Ngrams
    branches: Branches | None = None


class Lookup:
    """Implements `Strategy` for any target of this size of vocabulary."""

    name = "look-up"

    def __init__(self, vocab_size: int, config: LookupConfig | None = None) -> None:
        self.config = config or LookupConfig()
        self.odds = RankOdds(self.config.tree.num_ranks)
        self._usual = Usual(vocab_size)
        self._recent = Ngrams(self.config.order)
        self._answers: deque[tuple[list[int], int]] = (
            deque()
        )  # with the end of their prompts; where they begin
        self._num_recent = 0
        self._texts: dict[int, _Text] = {}

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in stems]
        texts = [
            self._text(stem, length, tree)
            for stem, length, tree in zip(stems, lengths, trees, strict=True)
            if length > 0 and not stem.is_done
        ]
        config = self.config.tree
        while texts:
            logits = [after for text in texts for after in self._logits(text)]
            places = [_open(place) for text in texts for place in _branches(text).places()]
            ranked = iter(rank_each(logits, places, config.num_ranks))
            for text in texts:
                branches = _branches(text)
                branches.spread([next(ranked) for _ in branches.tips], self.odds, config)
            texts = [text for text in texts if _branches(text).tips]
        return trees

    def _text(self, stem: Stem, length: int, tree: DraftTree) -> _Text:
        known = self._texts.get(id(stem))
        if known is None:
            known = self._texts[id(stem)] = _Text(stem, [], Ngrams(self.config.order))
        num_known, num_prompt = len(known.tokens), len(stem.asked.prompt)
        known.tokens += (
            stem.tokens[num_known - num_prompt :] if num_known else [*stem.asked.prompt, *stem.tokens]
        )
        known.own.add(known.tokens, num_known)
        known.branches = Branches.of(stem, length, tree)
        return known

    def _logits(self, text: _Text) -> list[Floats]:
        """After each tip, [V]."""
        order, branches = self.config.order, _branches(text)
        tree, found = branches.tree, list[Floats]()
        for tip in branches.tips:
            context: list[int] = []
            node = tip.node
            while node >= 0 and len(context) < order:
                context.append(tree.tokens[node])
                node = tree.parents[node]
            settled = text.tokens[max(len(text.tokens) - order + len(context), 0) :]
            found.append(blend(self._usual, (text.own, self._recent), [*settled, *reversed(context)]))
        return found

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        pass

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        del tree
        text = self._texts.get(id(stem))
        if text is not None and text.branches is not None:
            text.branches.learn(outcome, self.odds)
            text.branches = None

    def leave(self, stem: Stem) -> None:
        self._texts.pop(id(stem), None)
        num, bound = len(stem.tokens), self.config.num_recent_tokens
        if not 0 < num <= bound:
            return
        before = stem.asked.prompt[-self.config.order :]
        answer = [*before, *stem.tokens]
        self._recent.add(answer, len(before))
        self._usual.add(stem.tokens)
        self._answers.append((answer, len(before)))
        self._num_recent += num
        while self._num_recent > bound:
            old, begin = self._answers.popleft()
            self._recent.remove(old, begin)
            self._usual.add(old[begin:], -1.0)
            self._num_recent -= len(old) - begin


def _branches(text: _Text) -> Branches:
    assert text.branches is not None, "speculate sets them first"
    return text.branches


def _open(place: Place) -> Place:
    """The same place for counts of tokens, which were drawn at the temperature already."""
    return place._replace(sampling=Sampling(1.0 if place.sampling.temperature else 0.0))
