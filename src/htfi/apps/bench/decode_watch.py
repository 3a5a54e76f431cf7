"""Watches a strategy at work: what it drafted, what stood, where the time went. Workers of benches wrap theirs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.decoding.draft import DraftTree, depths
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
    """One request: `began_s` is when its prompt was read, `offered[d]` and `stood[d]` count rounds by depth."""

    began_s: float = 0.0
    num_rounds: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    draft_s: float = 0.0
    verify_s: float = 0.0
    offered: list[int] = field(default_factory=list[int])
    stood: list[int] = field(default_factory=list[int])


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
        self.watch.draft_s += time.perf_counter() - began_s
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
            _count(watch, tree, outcome)
        self._inner.settle(stem, tree, outcome)

    def leave(self, stem: Stem) -> None:
        self._inner.leave(stem)


def _count(watch: Watch, tree: DraftTree, outcome: Outcome) -> None:
    watch.num_rounds += 1
    watch.num_drafted += len(tree)
    watch.num_accepted += len(outcome.path)
    deepest = int(depths(tree.parents).max()) + 1 if len(tree) else 0
    for counts, depth in ((watch.offered, deepest), (watch.stood, len(outcome.path))):
        counts.extend([0] * (deepest - len(counts)))
        for place in range(depth):
            counts[place] += 1
