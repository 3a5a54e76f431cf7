"""Watches a strategy at work: when the prompt was read, and where the time went. The bench's worker wraps each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from htfi.decoding.draft import DraftTree
from htfi.decoding.sessions import Opened, Sessions, ToRead
from htfi.decoding.stem import Stem
from htfi.decoding.strategy import Outcome, Strategy


class ClockedSessions(Sessions):
    """A draft's sequences; `read_s` is what reading prompts took."""

    read_s = 0.0

    def open_all(self, prompts: Sequence[ToRead]) -> list[Opened]:
        began_s = time.perf_counter()
        opened = super().open_all(prompts)
        self.read_s += time.perf_counter() - began_s
        return opened


@dataclass(slots=True)
class Watch:
    """One request: `began_s` is when its prompt was read; `longest_s` the longest that a draft took."""

    began_s: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    longest_s: float = 0.0


class Watched:
    """A strategy that is `inner`, looked at. For one request at a time; `watch` is that of the last."""

    def __init__(self, inner: Strategy) -> None:
        self._inner = inner
        self._left_s = 0.0
        self.watch = Watch()

    @property
    def name(self) -> str:
        return self._inner.name

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        began_s = time.perf_counter()
        trees = self._inner.speculate(stems, lengths)
        taken_s = time.perf_counter() - began_s
        self.watch.draft_s += taken_s
        self.watch.longest_s = max(self.watch.longest_s, taken_s)
        return trees

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        began_s = time.perf_counter()
        self._inner.verifying(stems, trees)
        self._left_s = time.perf_counter()
        self.watch.draft_s += self._left_s - began_s

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        now_s = time.perf_counter()
        watch = self.watch
        if not watch.began_s:  # the first token comes of the prompt alone
            watch.began_s = now_s
        else:
            watch.verify_s += now_s - self._left_s
        self._inner.settle(stem, tree, outcome)

    def leave(self, stem: Stem) -> None:
        self._inner.leave(stem)
