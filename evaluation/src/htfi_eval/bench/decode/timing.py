"""Watches a strategy at work: when the prompt was read, and where the time went. The bench's worker wraps each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions, PrefilledRow, PromptToPrefill
from htfi.decoding.strategy import DraftStrategy, DraftVerification


class TimedSessions(KVSessions):
    """A draft's sequences; `read_s` is what reading prompts took."""

    read_s = 0.0

    def open_all(self, prompts: Sequence[PromptToPrefill]) -> list[PrefilledRow]:
        began_s = time.perf_counter()
        opened = super().open_all(prompts)
        self.read_s += time.perf_counter() - began_s
        return opened


@dataclass(slots=True)
class StrategyTiming:
    """One request: `began_s` is when its prompt was read; `longest_s` the longest that a draft took."""

    began_s: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    longest_s: float = 0.0


class TimedStrategy:
    """A strategy that is `inner`, looked at. For one request at a time; `watch` is that of the last."""

    def __init__(self, inner: DraftStrategy) -> None:
        self._inner = inner
        self._left_s = 0.0
        self.timing = StrategyTiming()

    @property
    def name(self) -> str:
        return self._inner.name

    def speculate(self, stems: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        began_s = time.perf_counter()
        trees = self._inner.speculate(stems, lengths)
        taken_s = time.perf_counter() - began_s
        self.timing.draft_s += taken_s
        self.timing.longest_s = max(self.timing.longest_s, taken_s)
        return trees

    def verifying(self, stems: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        began_s = time.perf_counter()
        self._inner.verifying(stems, trees)
        self._left_s = time.perf_counter()
        self.timing.draft_s += self._left_s - began_s

    def settle(self, stem: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        now_s = time.perf_counter()
        watch = self.timing
        if not watch.began_s:  # the first token comes of the prompt alone
            watch.began_s = now_s
        else:
            watch.verify_s += now_s - self._left_s
        self._inner.settle(stem, tree, outcome)

    def leave(self, stem: SequenceState) -> None:
        self._inner.leave(stem)
