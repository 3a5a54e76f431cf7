"""Prompt look-up: guesses what followed the same words earlier, in the prompt or in recent answers. No draft network.

Counts of what followed grammar a distribution, so the target's noise ranks them as it ranks a draft's logits. They are
blended from the shortest context to the longest by Witten and Bell's rule (1991): a context seen often decides almost
alone, one seen once decides half, and unseen contexts fall back to how common a token is.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import SamplingParams, SamplingPosition, rank_positions
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategies.tree import RankAcceptance, TreeBuilder, TreeDraftConfig
from htfi.decoding.strategy import DraftStrategy, DraftVerification, StrategyParts
from htfi.domain.errors import InvalidInput

_Counts = dict[tuple[int, ...], dict[int, int]]


class NgramCounts:
    """Counts of one text or of several. `order` is the longest context."""

    def __init__(self, order: int) -> None:
        self.order = order
        self._after: _Counts = {}

    def add(self, text: Sequence[int], begin: int = 0) -> None:
        """Count the tokens of a text from `begin` on, each after those before it."""
        order, counts = self.order, self._after
        text = tuple(text)
        for place in range(max(begin, 1), len(text)):
            token = text[place]
            for size in range(1, min(order, place) + 1):
                found = counts.setdefault(text[place - size : place], {})
                found[token] = found.get(token, 0) + 1

    def remove(self, text: Sequence[int], begin: int = 0) -> None:
        """Undo `add` for the same text."""
        text = tuple(text)
        for place in range(max(begin, 1), len(text)):
            for size in range(1, min(self.order, place) + 1):
                context, token = text[place - size : place], text[place]
                found = self._after[context]
                found[token] -= 1
                if not found[token]:
                    del found[token]
                    if not found:
                        del self._after[context]

    def after(self, context: tuple[int, ...]) -> dict[int, int]:
        return self._after.get(context, {})


class UnigramCounts:
    """How common each token is [V], whatever comes before."""

    def __init__(self, vocab_size: int) -> None:
        self._counts = np.full(vocab_size, 0.01)
        self._logs: NDArray[np.float32] | None = None

    def add(self, tokens: Sequence[int], num: float = 1.0) -> None:
        """Count each token `num` times; −1.0 removes it."""
        np.add.at(self._counts, tokens, num)
        self._logs = None

    def logs(self) -> NDArray[np.float32]:
        """The logarithms of their shares [V]."""
        logs = self._logs
        if logs is None:
            logs = self._logs = np.log(self._counts / self._counts.sum()).astype(np.float32)
        return logs


def blended_log_probs(
    usual: UnigramCounts, books: Sequence[NgramCounts], context: Sequence[int]
) -> NDArray[np.float32]:
    """Log probabilities [V] of the next token after a context, from what followed it in `books`."""
    unseen, seen = 1.0, dict[int, float]()  # the share left to unigrams; what contexts add
    whole = tuple(context)
    for size in range(1, min(max(book.order for book in books), len(whole)) + 1):
        counts: dict[int, int] = {}
        for book in books:
            for token, num in book.after(whole[-size:]).items():
                counts[token] = counts.get(token, 0) + num
        if not counts:
            break  # a longer context was not seen either
        num_all = sum(counts.values()) + len(counts)
        left = len(counts) / num_all
        unseen *= left
        seen = {token: chance * left for token, chance in seen.items()}
        for token, num in counts.items():
            seen[token] = seen.get(token, 0.0) + num / num_all
    logs = usual.logs() + np.float32(log(unseen))
    for token, chance in seen.items():
        logs[token] = log(chance + exp(logs[token]))
    return logs


@dataclass(frozen=True, slots=True)
class LookupConfig:
    """`order`: the longest context compared; `num_recent_tokens`: of other requests' answers, 0 for none."""

    order: int = 4
    num_recent_tokens: int = 16_384
    tree: TreeDraftConfig = field(default_factory=lambda: TreeDraftConfig(num_ranks=2, width=1.5))

    def __post_init__(self) -> None:
        if self.order < 1 or self.num_recent_tokens < 0:
            raise InvalidInput("look-up: order must be ≥ 1, num_recent_tokens ≥ 0")


@dataclass(slots=True)
class _CountedText:
    """Prompt and answer of a sequence as far as they are counted, and the latest tree."""

    sequence: SequenceState
    tokens: list[int]
    own: NgramCounts
    branches: TreeBuilder | None = None


class LookupStrategy:
    """Implements `DraftStrategy` for any target of this vocabulary size."""

    name = "look-up"

    def __init__(self, vocab_size: int, config: LookupConfig | None = None) -> None:
        self.config = config or LookupConfig()
        self.odds = RankAcceptance(self.config.tree.num_ranks)
        self._usual = UnigramCounts(vocab_size)
        self._recent = NgramCounts(self.config.order)
        self._answers: deque[tuple[list[int], int]] = (
            deque()
        )  # with the end of their prompts, and where the answers begin
        self._num_recent = 0
        self._texts: dict[int, _CountedText] = {}

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in sequences]
        texts = [
            self._text(sequence, length, tree)
            for sequence, length, tree in zip(sequences, lengths, trees, strict=True)
            if length > 0 and not sequence.is_done
        ]
        config = self.config.tree
        while texts:
            logits = [after for text in texts for after in self._logits(text)]
            places = [_at_unit_temperature(place) for text in texts for place in _branches(text).places()]
            ranked = iter(rank_positions(logits, places, config.num_ranks))
            for text in texts:
                branches = _branches(text)
                branches.add_level([next(ranked) for _ in branches.tips], self.odds, config)
            texts = [text for text in texts if _branches(text).tips]
        return trees

    def _text(self, sequence: SequenceState, length: int, tree: DraftTree) -> _CountedText:
        known = self._texts.get(id(sequence))
        if known is None:
            known = self._texts[id(sequence)] = _CountedText(sequence, [], NgramCounts(self.config.order))
        num_known, num_prompt = len(known.tokens), len(sequence.tokenized.prompt)
        known.tokens += (
            sequence.tokens[num_known - num_prompt :]
            if num_known
            else [*sequence.tokenized.prompt, *sequence.tokens]
        )
        known.own.add(known.tokens, num_known)
        known.branches = TreeBuilder.of(sequence, length, tree)
        return known

    def _logits(self, text: _CountedText) -> list[Floats]:
        """Logits [V] after each tip."""
        order, branches = self.config.order, _branches(text)
        tree, found = branches.tree, list[Floats]()
        for tip in branches.tips:
            context: list[int] = []
            node = tip.node
            while node >= 0 and len(context) < order:
                context.append(tree.tokens[node])
                node = tree.parents[node]
            accepted = text.tokens[max(len(text.tokens) - order + len(context), 0) :]
            found.append(
                blended_log_probs(self._usual, (text.own, self._recent), [*accepted, *reversed(context)])
            )
        return found

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        del tree
        text = self._texts.get(id(sequence))
        if text is not None and text.branches is not None:
            text.branches.learn(outcome, self.odds)
            text.branches = None

    def finish(self, sequence: SequenceState) -> None:
        self._texts.pop(id(sequence), None)
        num, bound = len(sequence.tokens), self.config.num_recent_tokens
        if not 0 < num <= bound:
            return
        before = sequence.tokenized.prompt[-self.config.order :]
        answer = [*before, *sequence.tokens]
        self._recent.add(answer, len(before))
        self._usual.add(sequence.tokens)
        self._answers.append((answer, len(before)))
        self._num_recent += num
        while self._num_recent > bound:
            old, begin = self._answers.popleft()
            self._recent.remove(old, begin)
            self._usual.add(old[begin:], -1.0)
            self._num_recent -= len(old) - begin


def _branches(text: _CountedText) -> TreeBuilder:
    assert text.branches is not None, "speculate sets them first"
    return text.branches


def _at_unit_temperature(place: SamplingPosition) -> SamplingPosition:
    """The same position at temperature 1: counts come from tokens sampled at the temperature already."""
    return place._replace(sampling=SamplingParams(1.0 if place.sampling.temperature else 0.0))


def build(parts: StrategyParts) -> DraftStrategy:
    """The strategy 'lookup' of the settings."""
    return parts.replayable(lambda: LookupStrategy(parts.vocab_size))
